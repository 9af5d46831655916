//! Order-flow imbalance of the best levels, and price impact.

use crate::kinds::prelude::*;
use tribune_analytics::{EVERY_MS as SAMPLE_EVERY_MS, KyleLambda, Watch, impact_samples, kyle_lambda};
use tribune_binance::{Beats, Tape};

/// A connection without data for this long is silent.
const SILENT_SECS: u64 = 2;

/// Order-flow imbalance of the best levels; known for books that were tracked during the window.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Pressure {
    Watched {
        ofi_base: Quantity,
        window_secs: u64,
        changes: u64,
        complete: bool,
        standing: Standing,
        note: &'static str,
    },
    Missing {
        ofi_base: (),
        reason: String,
    },
}

/// Price impact since the book has been tracked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Impact {
    Fitted { kyle_lambda: KyleLambda, sampling_secs: i64, window_secs: i64 },
    Missing { kyle_lambda: (), reason: String },
}

impl Impact {
    pub(super) fn load(market: &Market, symbol: &Symbol) -> Self {
        match market.feed.lookup(&symbol.name) {
            Some(tracked) => Self::of(&tracked.watch, &tracked.tape),
            None => Self::Missing { kyle_lambda: (), reason: NOT_KEPT.to_owned() },
        }
    }

    fn of(watch: &Watch, tape: &Tape) -> Self {
        let history = watch.history();
        let recent = tape.recent(history.first().map_or(0, |sample| sample.time));
        let known_from = recent.complete_from.unwrap_or(Millis::MAX);
        let (mut samples, mut secs) = (Vec::new(), 0);
        // Across a gap the change of the price is known, but not the trades that made it.
        for stretch in history.split(|sample| sample.mid.is_none() || sample.time < known_from) {
            let mids: Vec<(Millis, f64)> = stretch.iter().filter_map(|at| Some((at.time, at.mid?))).collect();
            let ends = mids.first().zip(mids.last());
            secs += ends.map_or(0, |(first, last)| (last.0 - first.0) / 1_000);
            samples.extend(impact_samples(&mids, recent.trades()));
        }
        match kyle_lambda(&samples) {
            Ok(lambda) => {
                Self::Fitted { kyle_lambda: lambda, sampling_secs: SAMPLE_EVERY_MS / 1_000, window_secs: secs }
            }
            Err(reason) => Self::Missing { kyle_lambda: (), reason: reason.to_string() },
        }
    }
}

impl Pressure {
    pub(super) fn load(market: &Market, symbol: &Symbol, reading: &TradesReading, window_secs: u32) -> Self {
        let Some(tracked) = market.feed.lookup(&symbol.name) else {
            return Self::Missing { ofi_base: (), reason: NOT_KEPT.to_owned() };
        };
        let (now, heard) = (market.clock.monotonic(), tracked.heard());
        // The same seconds as those of the trades, by arrival.
        let end = match reading.origin {
            Origin::Stream => heard,
            Origin::Rest => now,
        };
        let beats = tracked.pulse.beats(end, heard, u64::from(window_secs));
        Self::of(beats, window_secs, now.saturating_duration_since(heard).as_secs())
    }

    fn of(beats: Beats, window_secs: u32, silent_secs: u64) -> Self {
        if beats.quoted_seconds == 0 {
            let reason = match silent_secs {
                0..SILENT_SECS => "the book has only just been tracked".to_owned(),
                secs => format!("no stream data for {secs} s, so these seconds are missing"),
            };
            return Self::Missing { ofi_base: (), reason };
        }
        Self::Watched {
            ofi_base: Quantity::from_units(beats.ofi_units),
            window_secs: beats.quoted_seconds,
            changes: beats.quotes,
            complete: beats.quoted_seconds >= u64::from(window_secs),
            standing: Standing::Sound,
            note: "of the best levels (Cont, Kukanov, Stoikov), over the whole seconds that were watched; describes the \
                   same seconds, does not predict",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::{depth, trade};
    use tribune_binance::{
        Aggressor::{Buyer, Seller},
        BookView, Moment, Observer as _,
    };

    #[test]
    fn unwatched_pressure_is_null_with_a_reason() {
        let told = |beats, window_secs, silent_secs| {
            serde_json::to_value(Pressure::of(beats, window_secs, silent_secs)).expect("JSON")
        };
        let none = told(Beats::default(), 10, 12);
        let reason = "no stream data for 12 s, so these seconds are missing";
        assert_eq!(none, serde_json::json!({"ofi_base": null, "reason": reason}));
        let partly = Beats { quoted_seconds: 4, quotes: 28, ofi_units: 150_000_000, ..Beats::default() };
        let complete = told(partly, 4, 0)["complete"].as_bool();
        let told = told(partly, 10, 6);
        assert_eq!((told["ofi_base"].as_str(), told["window_secs"].as_u64()), (Some("1.5"), Some(4)));
        assert_eq!((told["complete"].as_bool(), told["changes"].as_u64()), (Some(false), Some(28)));
        assert_eq!(complete, Some(true));
    }

    /// Every two seconds one or two are bought or sold, and the mid moves by half as much.
    #[test]
    fn impact_leaves_out_gaps() {
        let (watch, tape) = (Watch::default(), Tape::new(900_000));
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
                depth: depth(&[(&price(-1), "1")], &[(&price(1), "1")]),
                last_update_id: step,
                exchange_time: None,
                received,
            };
            watch.look(&view, &tape, Beats::default(), time);
        }
        let Impact::Fitted { kyle_lambda: lambda, sampling_secs, window_secs } = Impact::of(&watch, &tape) else {
            panic!("a line")
        };
        // 30 moments in two stretches of 15.
        assert_eq!((lambda.samples, lambda.lambda_quote_per_base), (28, Some(0.5)));
        assert_eq!(lambda.r_squared, Some(1.0));
        assert_eq!((sampling_secs, window_secs), (2, 56));
    }
}
