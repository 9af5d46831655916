//! Hand-computed reports, and properties of all reports.

mod golden;
mod properties;
mod states;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::*;
use crate::tests::fixture::valid;
use tribune_binance::testing::{depth, money, price, quantity};
use tribune_binance::{Aggressor, BookState, BookView, Depth, Trade};

/// 2025-06-15T15:06:40.000Z.
const T0: Millis = 1_750_000_000_000;

/// One symbol of a feed that a test drives. Its exchange has the same clock.
struct Scene {
    start: Instant,
    symbol: Symbol,
    published: Published,
    day: Option<Day>,
}

impl Scene {
    fn new() -> Self {
        let start = Instant::now();
        let begin = Moment { wall: Timestamp::from_millisecond(T0).expect("a time"), monotonic: start };
        Self {
            start,
            symbol: Symbol { tick_size: Some(price("0.01")), ..Symbol::named("BTCUSDT", "BTC", "USDT") },
            published: Published::new(Arc::from("BTCUSDT"), true, 0, begin),
            day: None,
        }
    }

    fn at(&self, millis: u64) -> Moment {
        Moment {
            wall: Timestamp::from_millisecond(T0 + millis as i64).expect("a time"),
            monotonic: self.start + Duration::from_millis(millis),
        }
    }

    fn show(&self, depth: Depth, millis: u64) {
        let now = self.at(millis);
        let view = BookView { depth, last_update_id: 42, exchange_time: Some(T0 + millis as i64 - 50), received: now };
        self.published.publish(view, BookState::Live, None);
        self.published.confirm(now.monotonic);
    }

    fn set(&self, state: BookState, reason: &str, millis: u64) {
        self.published.set_status(state, Some(reason.to_owned()), self.at(millis));
    }

    /// An order that was matched with several others, at a time after the start.
    fn trade(&self, ids: (u64, u64), millis: i64, at: &str, size: &str, aggressor: Aggressor) {
        let trade = Trade {
            price: price(at),
            quantity: quantity(size),
            time: T0 + millis,
            aggressor,
            first_id: ids.0,
            last_id: ids.1,
        };
        assert!(self.published.tape.push(trade, true));
    }

    fn inputs(&self, millis: u64) -> Inputs<'_> {
        Inputs {
            symbol: &self.symbol,
            published: &self.published,
            day: self.day,
            now: self.at(millis),
            exchange_now: T0 + millis as i64,
            simulated: None,
            old_for: Duration::ZERO,
        }
    }

    fn slow(&self, millis: u64) -> Slow {
        slow(&self.inputs(millis))
    }

    /// With everything computed now, and checked against the schema.
    fn report(&self, millis: u64) -> Report {
        self.report_with(&self.slow(millis), millis)
    }

    fn report_with(&self, slow: &Slow, millis: u64) -> Report {
        let report = report(&self.inputs(millis), slow, (&NodeId::from("node-1"), 7, 3));
        valid(&report);
        report
    }
}

/// Mid 100, spread 10 basis points.
fn three_levels() -> Depth {
    depth(&[("99.95", "2"), ("99.80", "3"), ("99.00", "10")], &[("100.05", "1"), ("100.25", "4")])
}

fn day(scene: &Scene) -> Day {
    Day {
        last: price("100"),
        open: price("96"),
        high: price("101.5"),
        low: price("95.25"),
        volume: quantity("50000"),
        quote_volume: money("5000000"),
        exchange_time: Some(T0 + 550),
        received: scene.at(600),
    }
}
