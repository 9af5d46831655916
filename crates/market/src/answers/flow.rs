//! Order flow: who traded with whom in the last seconds.

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Provenance, or_reason, or_unknown};
use crate::analytics::flow::trade_flow;
use crate::analytics::{Standing, Window};
use crate::market::{Market, NOT_KEPT};
use crate::model::Symbol;
use crate::number::Quantity;
use crate::symbols::{AnalyticsKind, Kind};

pub async fn order_flow(market: &Market, symbol: &str, window_secs: u32) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let reading = market.trades(&symbol, window_secs).await?;
    let window = Window::last(window_secs, reading.until);
    let flow = trade_flow(&reading.trades, window, reading.complete_from);
    let newest = reading.trades.last().map(|trade| trade.time);
    let provenance = Provenance::new(market, reading.origin, newest, reading.received);
    let kind = Kind::Analytics(AnalyticsKind::OrderFlow);
    let mut answer = Answer::new(kind, &symbol, "order flow", provenance)?;
    answer = match &flow {
        Ok(flow) if flow.trades == 0 => {
            answer.figure(format!("{}: no trades in the last {window_secs} s.", symbol.name))
        }
        Ok(flow) => answer
            .figure(format!(
                "{}, last {window_secs} s: buyers took {} {base}, sellers gave {} {base}: net {} {base} ({} {quote}).",
                symbol.name,
                flow.buy_volume_base,
                flow.sell_volume_base,
                flow.net_flow_base,
                flow.net_flow_quote,
                base = symbol.base,
                quote = symbol.quote,
            ))
            .figure(format!(
                "{} trades ({} by buyers, {} by sellers), {} orders a second in the last 10 s; VWAP {} {}.",
                flow.trades,
                flow.buy_trades,
                flow.sell_trades,
                or_unknown(flow.orders_per_sec),
                or_unknown(flow.vwap),
                symbol.quote,
            )),
        Err(reason) => answer.figure(format!("{}: order flow is not known: {reason}.", symbol.name)),
    };
    answer = match &flow {
        Ok(flow) => answer.with(flow)?,
        Err(_) => answer.with_field("flow", &or_reason(&flow))?,
    };
    answer.with_field("order_flow_imbalance", &pressure(market, &symbol, window_secs))
}

/// What best prices and sizes did meanwhile; known of books that were watched as long.
fn pressure(market: &Market, symbol: &Symbol, window_secs: u32) -> Value {
    let tracked = market.feed.lookup(&symbol.name);
    let beats = tracked.map(|tracked| {
        let now = market.clock.monotonic();
        tracked.pulse.beats(now, u64::from(window_secs))
    });
    match beats {
        Some(beats) if beats.seconds > 0 && beats.quotes > 0 => json!({
            "ofi_base": Quantity::from_units(beats.ofi_units),
            "window_secs": beats.seconds,
            "changes": beats.quotes,
            "complete": beats.seconds >= u64::from(window_secs),
            "standing": Standing::Sound,
            "note": "of the best levels (Cont, Kukanov, Stoikov); describes the same seconds, does not predict",
        }),
        Some(_) => json!({
            "ofi_base": null,
            "reason": "the book has not been watched yet; it is from now on",
        }),
        None => json!({"ofi_base": null, "reason": NOT_KEPT}),
    }
}
