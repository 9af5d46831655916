//! The newest trades.

use super::flow::taker_sums;
use super::prelude::*;
use tribune_analytics::{TradeFlow, trade_flow};
use tribune_binance::{Aggressor, Trade};

/// How far back the tape is read for the newest trades.
const RECENT: Millis = 5 * 60 * 1000;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecentTrades {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// Absent where there are none.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    list: Option<List>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct List {
    trades_used: usize,
    summary: Known<TradeFlow>,
    standing: Standing,
    trades_listed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    trades_cut: Option<String>,
    /// Newest first.
    trades: Table<Trade>,
}

impl Row for Trade {
    const COLUMNS: &'static [&'static str] = &["time_ms", "price", "quantity_base", "aggressor", "id"];
    fn cells(&self) -> impl Serialize {
        (self.time, self.price, self.quantity, self.aggressor, self.last_id)
    }
}

pub async fn load(market: &Market, symbol: &str, limit: usize) -> Result<Answer> {
    let symbol = market.symbol(symbol).await?;
    let limit = u32::try_from(limit).unwrap_or(1_000).clamp(1, 1_000);
    let trades = market.rest.trades(&symbol.name, limit).await.map_err(exchange_error)?;
    let newest = trades.value.last().map(|trade| trade.time);
    let provenance = Provenance::new(market, Origin::Rest, newest, trades.received);
    Answer::new(Kind::Trades, &symbol, provenance, RecentTrades::new(&trades.value))
}

/// The newest trades of the stream without gaps, if there are at least so many.
pub(crate) fn at_hand(market: &Market, symbol: &Symbol, least: usize) -> Option<Answer> {
    let tracked = market.feed.lookup(&symbol.name)?;
    tracked.live()?;
    let recent = tracked.tape.recent(market.exchange_now() - RECENT);
    let complete_from = recent.complete_from?;
    // Missing trades between those that are listed would not be seen.
    let whole: Vec<Trade> = recent.trades().filter(|trade| trade.time >= complete_from).copied().collect();
    let list = &whole[whole.len().saturating_sub(super::DOCUMENT_TRADES)..];
    let newest = list.last().filter(|_| list.len() >= least)?.time;
    let provenance = Provenance::new(market, Origin::Stream, Some(newest), market.last_confirmed(&tracked));
    Answer::new(Kind::Trades, symbol, provenance, RecentTrades::new(list)).ok()
}

impl RecentTrades {
    /// Of a list, oldest first.
    fn new(list: &[Trade]) -> Self {
        let Some((first, last)) = list.first().zip(list.last()) else {
            return Self { reason: Some("the exchange has no trades"), list: None };
        };
        let window = Window { start_ms: first.time.saturating_sub(1), end_ms: last.time };
        let trades = Table::fitted(list.iter().rev().copied().collect(), Keep::First);
        let list = List {
            trades_used: list.len(),
            summary: trade_flow(list, window, window.start_ms).into(),
            standing: Standing::Exact,
            trades_listed: trades.0.len(),
            trades_cut: Keep::First.cut(trades.0.len(), list.len()),
            trades,
        };
        Self { reason: None, list: Some(list) }
    }
}

impl Figures for RecentTrades {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, base, quote) = (about.name(), about.base(), about.quote());
        let list = self.list.as_ref();
        let Some((list, last)) = list.and_then(|list| Some((list, list.trades.0.first()?))) else {
            return vec![format!("{name}: the exchange has no trades.")];
        };
        let (size, price, count) = (last.quantity, last.price, list.trades_used);
        let who = match last.aggressor {
            Aggressor::Buyer => "taker buy",
            Aggressor::Seller => "taker sell",
        };
        let flow = list.summary.value();
        let within = flow.map(|flow| format!(" within {:.1} s", flow.window.seconds())).unwrap_or_default();
        let newest = format!("{name}: last trade {size} {base} at {price} {quote} ({who}); {count} trades{within}.");
        let flow = flow.map(|flow| format!("{}.", capitalised(&taker_sums(flow, about))));
        std::iter::once(newest).chain(flow).collect()
    }
}
