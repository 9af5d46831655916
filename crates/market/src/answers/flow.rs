//! Order flow: who traded with whom in the last seconds.

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Provenance, exchange_time, or_reason, or_unknown};
use crate::analytics::flow::trade_flow;
use crate::analytics::impact::{impact_samples, kyle_lambda};
use crate::analytics::{Standing, Window};
use crate::feed::{Beats, SAMPLE_EVERY_MS, Watch};
use crate::market::{Market, NOT_KEPT, Origin, TradesReading};
use crate::model::{Millis, Symbol};
use crate::number::Quantity;
use crate::symbols::{AnalyticsKind, Kind};
use crate::tape::Tape;

/// The window that is meant where none is given.
pub(crate) const FLOW_SECS: u32 = 60;
/// What `orders_per_sec` counts, whether trades came singly or in the exchange's aggregates.
const ORDERS_COUNTED: &str = "single trades, by their ids; one order may make several";
/// A window that ends longer ago says when.
const NOW_MS: u64 = 1_500;
/// A connection that has brought nothing for as long is silent.
const SILENT_SECS: u64 = 2;

pub async fn order_flow(market: &Market, symbol: &str, window_secs: u32) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let reading = market.trades(&symbol, window_secs).await?;
    let window = Window::last(window_secs, reading.until);
    let flow = trade_flow(&reading.trades, window, reading.complete_from);
    let newest = reading.trades.last().map(|trade| trade.time);
    let provenance = Provenance::new(market, reading.origin, newest, reading.received);
    let kind = Kind::Analytics(AnalyticsKind::OrderFlow);
    let covered = covered(&reading, window);
    let when = in_words(window_secs, covered, window, reading.is_cut, provenance.age_ms);
    let mut answer = Answer::new(kind, &symbol, "order flow", provenance)?;
    answer = match &flow {
        Ok(flow) if flow.trades == 0 => answer.figure(format!("{}: no trades in the {when}.", symbol.name)),
        Ok(flow) => answer
            .figure(format!(
                "{}, {when}: buyers took {} {base}, sellers gave {} {base}: net {} {base} ({} {quote}).",
                symbol.name,
                flow.buy_volume_base,
                flow.sell_volume_base,
                flow.net_flow_base,
                flow.net_flow_quote,
                base = symbol.base,
                quote = symbol.quote,
            ))
            .figure(format!(
                "{} trades ({} by buyers, {} by sellers), {} trades a second in the last 10 s; VWAP {} {}.",
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
    answer
        .with_field("covered_secs", &(covered.millis() as f64 / 1_000.0))?
        .with_field("orders_per_sec_counts", &ORDERS_COUNTED)?
        .with_field(
            "order_flow_imbalance",
            &pressure(market, &symbol, &reading, window_secs),
        )?
        .with_field("price_impact", &impact(market, &symbol))
}

/// The part of the window of which every trade is here.
fn covered(reading: &TradesReading, window: Window) -> Window {
    Window {
        // All from a time on is all after the millisecond before.
        start_ms: reading
            .complete_from
            .saturating_sub(1)
            .clamp(window.start_ms, window.end_ms),
        end_ms: window.end_ms,
    }
}

/// `last 60 s`; and how much of that is there, and when it ended, where either is not as one would think.
fn in_words(asked_secs: u32, covered: Window, window: Window, is_cut: bool, age_ms: u64) -> String {
    let up_to = match exchange_time(window.end_ms).as_str() {
        Some(end) if age_ms >= NOW_MS => format!(" up to {end}"),
        _ => String::new(),
    };
    if covered == window {
        return format!("last {asked_secs} s{up_to}");
    }
    let why = if is_cut {
        "more was traded than can be read at once"
    } else {
        "earlier trades are not known"
    };
    format!(
        "last {:.1} s{up_to}, of the {asked_secs} s asked for ({why})",
        covered.seconds()
    )
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
fn pressure(market: &Market, symbol: &Symbol, reading: &TradesReading, window_secs: u32) -> Value {
    let Some(tracked) = market.feed.lookup(&symbol.name) else {
        return json!({"ofi_base": null, "reason": NOT_KEPT});
    };
    let (now, heard) = (market.clock.monotonic(), tracked.heard());
    // The same seconds as the trades, by when they came.
    let end = match reading.origin {
        Origin::Stream => heard,
        Origin::Rest => now,
    };
    let beats = tracked.pulse.beats(end, heard, u64::from(window_secs));
    pressure_of(beats, window_secs, now.saturating_duration_since(heard).as_secs())
}

fn pressure_of(beats: Beats, window_secs: u32, silent_secs: u64) -> Value {
    if beats.quoted_seconds == 0 {
        let reason = match silent_secs {
            0..SILENT_SECS => "the book has not been watched yet; it is from now on".to_owned(),
            secs => format!("the streams have brought nothing for {secs} s: these seconds were not watched"),
        };
        return json!({"ofi_base": null, "reason": reason});
    }
    json!({
        "ofi_base": Quantity::from_units(beats.ofi_units),
        "window_secs": beats.quoted_seconds,
        "changes": beats.quotes,
        "complete": beats.quoted_seconds >= u64::from(window_secs),
        "standing": Standing::Sound,
        "note": "of the best levels (Cont, Kukanov, Stoikov), over the whole seconds that were watched; describes the \
                 same seconds, does not predict",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::fixture::{depth, trade};
    use crate::feed::BookView;
    use crate::model::Aggressor::{Buyer, Seller};
    use crate::moment::Moment;

    #[test]
    fn a_window_says_what_it_covers_and_when_it_ended() {
        let reading = |complete_from| TradesReading {
            trades: Vec::new(),
            complete_from,
            is_cut: true,
            until: 1_000_000,
            received: Moment::now(&tribune_core::SystemClock),
            origin: Origin::Rest,
        };
        let window = Window::last(300, 1_000_000);
        let told =
            |complete_from, age_ms| in_words(300, covered(&reading(complete_from), window), window, true, age_ms);
        assert_eq!(told(700_001, 20), "last 300 s");
        assert_eq!(told(0, 20), "last 300 s");
        assert_eq!(told(700_000, 1_500), "last 300 s up to 1970-01-01T00:16:40.000Z");
        // From 876,544 on: 123.457 s.
        assert_eq!(
            told(876_544, 20),
            "last 123.5 s, of the 300 s asked for (more was traded than can be read at once)"
        );
    }

    #[test]
    fn pressure_that_was_not_watched_is_not_nothing() {
        let none = pressure_of(Beats::default(), 10, 12);
        assert!(none["ofi_base"].is_null(), "{none}");
        assert_eq!(
            none["reason"],
            "the streams have brought nothing for 12 s: these seconds were not watched"
        );
        let partly = Beats {
            quoted_seconds: 4,
            quotes: 28,
            ofi_units: 150_000_000,
            ..Beats::default()
        };
        let told = pressure_of(partly, 10, 6);
        assert_eq!((&told["ofi_base"], &told["window_secs"]), (&json!("1.5"), &json!(4)));
        assert_eq!((&told["complete"], &told["changes"]), (&json!(false), &json!(28)));
        assert_eq!(pressure_of(partly, 4, 0)["complete"], true);
    }

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
