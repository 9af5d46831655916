//! Order flow: who traded with whom in the last seconds.

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Provenance, or_reason, or_unknown};
use crate::analytics::flow::trade_flow;
use crate::analytics::impact::{impact_samples, kyle_lambda};
use crate::analytics::{Standing, Window};
use crate::feed::{SAMPLE_EVERY_MS, Watch};
use crate::market::{Market, NOT_KEPT, Origin};
use crate::model::{Millis, Symbol};
use crate::number::Quantity;
use crate::symbols::{AnalyticsKind, Kind};
use crate::tape::Tape;

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
    let records = match reading.origin {
        Origin::Stream => "single trades",
        Origin::Rest => "aggregates: the fills of one order at one price",
    };
    answer
        .with_field("orders_per_sec_counts", &records)?
        .with_field("order_flow_imbalance", &pressure(market, &symbol, window_secs))?
        .with_field("price_impact", &impact(market, &symbol))
}

/// How much trading moved the mid, over as long as it was watched.
fn impact(market: &Market, symbol: &Symbol) -> Value {
    let Some(tracked) = market.feed.lookup(&symbol.name) else {
        return json!({"kyle_lambda": null, "reason": NOT_KEPT});
    };
    impact_of(&tracked.watch, &tracked.tape)
}

fn impact_of(watch: &Watch, tape: &Tape) -> Value {
    let history = watch.history();
    let recent = tape.recent(history.first().map_or(0, |sample| sample.time));
    let known_from = recent.complete_from.unwrap_or(Millis::MAX);
    let (mut samples, mut secs) = (Vec::new(), 0);
    // A stretch across a gap would have the price's change, and not the trades that made it.
    for stretch in history.split(|sample| sample.mid().is_none() || sample.time < known_from) {
        let mids: Vec<(Millis, f64)> = stretch.iter().filter_map(|at| Some((at.time, at.mid()?))).collect();
        secs += mids
            .last()
            .zip(mids.first())
            .map_or(0, |(last, first)| (last.0 - first.0) / 1_000);
        samples.extend(impact_samples(&mids, recent.trades()));
    }
    match kyle_lambda(&samples) {
        Ok(lambda) => json!({
            "kyle_lambda": lambda,
            "sampling_secs": SAMPLE_EVERY_MS / 1_000,
            "window_secs": secs,
        }),
        Err(reason) => json!({"kyle_lambda": null, "reason": reason}),
    }
}

/// What best prices and sizes did meanwhile; known of books that were watched as long.
fn pressure(market: &Market, symbol: &Symbol, window_secs: u32) -> Value {
    let tracked = market.feed.lookup(&symbol.name);
    let beats = tracked.map(|tracked| {
        let now = market.clock.monotonic();
        tracked.pulse.beats(now, u64::from(window_secs))
    });
    match beats {
        Some(beats) if beats.seconds > 0 && beats.has_quotes => json!({
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::fixture::{depth, trade};
    use crate::feed::{Beats, BookView};
    use crate::model::Aggressor::{Buyer, Seller};
    use crate::moment::Moment;

    /// Every two seconds one or two are bought or sold, and the mid moves by half as much.
    #[test]
    fn what_trading_moves_is_found_again_and_gaps_are_left_out() {
        let (watch, tape) = (Watch::new(None), Tape::new(900_000));
        tape.opened(0);
        let received = Moment::now(&tribune_core::SystemClock);
        let mut halves = 200;
        for step in 0..30_u64 {
            let time = step as i64 * SAMPLE_EVERY_MS;
            if step == 15 {
                watch.interrupted(time - 1);
            }
            let (size, aggressor) = if step % 3 == 0 { (2, Seller) } else { (1, Buyer) };
            halves += if aggressor == Buyer { size } else { -size };
            let size = size.to_string();
            tape.push(trade(step + 1, time, "100", &size, aggressor), false);
            let price = |above: i64| format!("{}.{}", (halves + above) / 2, 5 * ((halves + above) % 2));
            let view = BookView {
                symbol: "BTCUSDT".into(),
                depth: depth(&[(&price(-1), "1")], &[(&price(1), "1")]),
                last_update_id: step,
                exchange_time: None,
                received,
            };
            watch.look(&view, &tape, Beats::default(), time);
        }
        let told = impact_of(&watch, &tape);
        // 30 moments in two stretches of 15.
        assert_eq!(told["kyle_lambda"]["samples"], 28, "{told}");
        assert_eq!(told["kyle_lambda"]["lambda_quote_per_base"], 0.5, "{told}");
        assert_eq!(told["kyle_lambda"]["r_squared"], 1.0);
        assert_eq!((&told["sampling_secs"], &told["window_secs"]), (&json!(2), &json!(56)));
    }
}
