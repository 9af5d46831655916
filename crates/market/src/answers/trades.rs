//! The newest trades.

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Keep, Provenance, Table, or_reason};
use crate::analytics::Window;
use crate::analytics::flow::trade_flow;
use crate::market::{Market, Origin};
use crate::model::{Aggressor, Millis, Symbol, Trade};
use crate::symbols::Kind;

const COLUMNS: &[&str] = &["time_ms", "price", "quantity_base", "aggressor", "id"];

/// How far back the newest trades are looked for on the tape.
const RECENT: Millis = 5 * 60 * 1000;

pub async fn trades(market: &Market, symbol: &str, limit: usize) -> Result<Answer> {
    let symbol = market.symbol(symbol).await?;
    let limit = u32::try_from(limit).unwrap_or(1_000).clamp(1, 1_000);
    let trades = market.rest.trades(&symbol.name, limit).await?;
    let newest = trades.value.last().map(|trade| trade.time);
    let provenance = Provenance::new(market, Origin::Rest, newest, trades.received);
    told(&symbol, &trades.value, provenance)
}

/// The newest of the stream, without asking the exchange; `None` where the stream has not brought as many yet.
pub(crate) fn streamed(market: &Market, symbol: &Symbol, limit: usize) -> Option<Result<Answer>> {
    let tracked = market.feed.lookup(&symbol.name)?;
    tracked.live()?;
    let window = tracked.tape.since(market.exchange_now() - RECENT);
    let complete_from = window.complete_from?;
    let list = &window.trades[window.trades.len().checked_sub(limit)?..];
    let newest = list.last()?.time;
    // A hole between those that are listed would not be seen.
    if list.first()?.time < complete_from {
        return None;
    }
    let provenance = Provenance::new(market, Origin::Stream, Some(newest), market.last_word(&tracked));
    Some(told(symbol, list, provenance))
}

fn told(symbol: &Symbol, list: &[Trade], provenance: Provenance) -> Result<Answer> {
    let answer = Answer::new(Kind::Trades, symbol, "recent trades", provenance)?;
    let (Some(first), Some(last)) = (list.first(), list.last()) else {
        return answer
            .figure(format!("{}: the exchange has no trades.", symbol.name))
            .with_field("reason", &"the exchange has no trades of it");
    };
    let window = Window {
        start_ms: first.time.saturating_sub(1),
        end_ms: last.time,
    };
    let flow = trade_flow(list, window, window.start_ms);
    let mut answer = answer.figure(format!(
        "{}: last trade {} {} at {} {} ({}); {} trades within {:.1} s.",
        symbol.name,
        last.quantity,
        symbol.base,
        last.price,
        symbol.quote,
        match last.aggressor {
            Aggressor::Buyer => "a buyer took it",
            Aggressor::Seller => "a seller gave it",
        },
        list.len(),
        window.seconds(),
    ));
    if let Ok(flow) = &flow {
        answer = answer.figure(format!(
            "Buyers took {} {base}, sellers gave {} {base}: net {} {base}.",
            flow.buy_volume_base,
            flow.sell_volume_base,
            flow.net_flow_base,
            base = symbol.base
        ));
    }
    Ok(answer
        .with(&json!({
            "trades_used": list.len(),
            "summary": or_reason(&flow),
            "standing": "exact",
        }))?
        .table(Table {
            name: "trades",
            columns: COLUMNS,
            rows: list.iter().rev().map(row).collect(),
            keep: Keep::First,
            left_out: 0,
        }))
}

fn row(trade: &Trade) -> Vec<Value> {
    vec![
        json!(trade.time),
        json!(trade.price),
        json!(trade.quantity),
        json!(trade.aggressor),
        json!(trade.last_id),
    ]
}
