//! What a search result says of a document: the figures that are at hand, without asking the exchange.

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::analytics::Window;
use crate::analytics::flow::trade_flow;
use crate::analytics::quotes::quotes;
use crate::answers::{pair_name, written};
use crate::feed::{BookView, Day};
use crate::market::Market;
use crate::model::{Symbol, SymbolStatus};
use crate::symbols::{AnalyticsKind, Kind};

const FLOW_SECS: u32 = 60;

pub(crate) struct Brief {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) as_of: Timestamp,
}

pub(crate) fn brief(market: &Market, symbol: &Symbol, kind: Kind) -> Brief {
    let day = market.feed.board.lookup(&symbol.name);
    let view = market.feed.lookup(&symbol.name).and_then(|tracked| tracked.live());
    let price = || price(symbol, day.as_ref());
    let (title, figures) = match kind {
        Kind::Ticker => ("price and last 24 hours".to_owned(), price()),
        Kind::OrderBook => (
            "order book".to_owned(),
            best(symbol, view.as_deref()).unwrap_or_else(price),
        ),
        Kind::OrderBookL1 => (
            "best bid and ask".to_owned(),
            best(symbol, view.as_deref()).unwrap_or_else(price),
        ),
        Kind::OrderBookL2 => (
            "order book depth".to_owned(),
            best(symbol, view.as_deref()).unwrap_or_else(price),
        ),
        Kind::Klines(interval) => (format!("{interval} candles"), price()),
        Kind::Trades => (
            "recent trades".to_owned(),
            last_trade(market, symbol).unwrap_or_else(price),
        ),
        Kind::ExchangeInfo => ("trading rules".to_owned(), rules(symbol)),
        Kind::Report => ("market report".to_owned(), price()),
        Kind::Analytics(kind) => {
            let title = match kind {
                AnalyticsKind::OrderFlow => "order flow",
                AnalyticsKind::VolumeProfile => "volume profile",
                AnalyticsKind::Anomalies => "market anomalies",
                AnalyticsKind::LiquidityVacuums => "liquidity vacuums",
                AnalyticsKind::Health => "market health",
            };
            let flow = match kind {
                AnalyticsKind::OrderFlow => flow(market, symbol),
                _ => None,
            };
            (title.to_owned(), flow.unwrap_or_else(price))
        }
    };
    let figures = match symbol.status {
        SymbolStatus::Trading => figures,
        _ => format!("{} is not traded now. {}", symbol.name, rules(symbol)),
    };
    let label = if market.simulated().is_some() { "SIMULATED " } else { "" };
    // Said first, because snippets are cut.
    let stale = match market.current_trouble() {
        Some(_) if !matches!(kind, Kind::ExchangeInfo) => "STALE (the exchange does not answer as it should): ",
        _ => "",
    };
    let received = match (&view, &day) {
        (Some(view), _) => view.received.wall,
        (None, Some(day)) => day.received.wall,
        (None, None) => market.clock.now(),
    };
    Brief {
        title: format!("{label}{} {title} ({})", symbol.name, pair_name(symbol)),
        text: format!("{label}{stale}{figures} As of {}.", written(received)),
        as_of: received,
    }
}

/// `BTCUSDT: last price 97000.1 USDT, +1.52% in 24 hours; high …`
fn price(symbol: &Symbol, day: Option<&Day>) -> String {
    let Some(day) = day else {
        return format!("{}: no price is known yet; fetch it.", symbol.name);
    };
    format!(
        "{}: last price {} {quote}, {}% in 24 hours; high {}, low {}, volume {} {quote}.",
        symbol.name,
        day.last,
        change(day).map_or_else(|| "unknown".to_owned(), |change| format!("{change:+}")),
        day.high,
        day.low,
        day.quote_volume.decimal().round_dp(0),
        quote = symbol.quote,
    )
}

fn change(day: &Day) -> Option<Decimal> {
    let (last, open) = (day.last.decimal(), day.open.decimal());
    let share = (last - open).checked_div(open)?;
    Some((share * Decimal::ONE_HUNDRED).round_dp(2))
}

fn best(symbol: &Symbol, view: Option<&BookView>) -> Option<String> {
    let quotes = quotes(&view?.depth).ok()?;
    let (bid, ask) = (quotes.best_bid?, quotes.best_ask?);
    Some(format!(
        "{}: best bid {} for {}, best ask {} for {} {}; spread {} bps.",
        symbol.name, bid.price, bid.quantity_base, ask.price, ask.quantity_base, symbol.base, quotes.spread_bps?
    ))
}

fn last_trade(market: &Market, symbol: &Symbol) -> Option<String> {
    let trade = market.feed.lookup(&symbol.name)?.tape.last()?;
    Some(format!(
        "{}: last trade {} {} at {} {}.",
        symbol.name, trade.quantity, symbol.base, trade.price, symbol.quote
    ))
}

fn flow(market: &Market, symbol: &Symbol) -> Option<String> {
    let tracked = market.feed.lookup(&symbol.name)?;
    let window = Window::last(FLOW_SECS, market.exchange_now());
    let trades = tracked.tape.since(window.start_ms);
    let complete = trades.complete_from.is_some_and(|from| from <= window.start_ms);
    let flow = trade_flow(&trades.trades, window, trades.complete_from?).ok()?;
    complete.then(|| {
        format!(
            "{}, last {FLOW_SECS} s: buyers took {} {base}, sellers gave {} {base}, net {} {base}.",
            symbol.name,
            flow.buy_volume_base,
            flow.sell_volume_base,
            flow.net_flow_base,
            base = symbol.base
        )
    })
}

fn rules(symbol: &Symbol) -> String {
    let told = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    format!(
        "{}: status {}; price step {}, quantity step {}, smallest order {} {}.",
        symbol.name,
        symbol.status_text,
        told(symbol.tick_size.map(|price| price.to_string())),
        told(symbol.step_size.map(|quantity| quantity.to_string())),
        told(symbol.min_notional.map(|money| money.to_string())),
        symbol.quote,
    )
}
