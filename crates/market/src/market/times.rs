//! The exchange's time, and its candles.

use super::Market;
use tribune_analytics::Published;
use tribune_binance::{Candle, Interval, KlinesQuery, Millis, Moment, Shared, Stamped, Symbol};

impl Market {
    pub fn exchange_now(&self) -> Millis {
        self.feed.health.exchange_millis(self.clock.now())
    }

    /// What it was at a past moment.
    pub(crate) fn exchange_time_of(&self, moment: &Moment) -> Millis {
        let age = moment.age_ms(&*self.clock);
        self.feed.health.exchange_millis_before(self.clock.now(), age)
    }

    /// The exchange's time up to which trades of the symbol are known.
    pub(crate) fn heard_until(&self, tracked: &Published) -> Millis {
        self.exchange_time_of(&self.last_confirmed(tracked))
    }

    /// The newest candles; the last may still be open.
    pub(crate) async fn newest_candles(&self, symbol: &Symbol, interval: Interval, limit: u32) -> Shared<Vec<Candle>> {
        self.rest.klines(&symbol.name, &KlinesQuery::newest(interval, limit)).await
    }

    /// The candles that were closed when they were requested: the last one may have closed since, with other figures.
    pub(crate) fn closed<'a>(&self, klines: &'a Stamped<Vec<Candle>>) -> &'a [Candle] {
        closed_at(&klines.value, self.exchange_time_of(&klines.sent))
    }
}

/// The candles that are over at `now`, of candles in order of time.
fn closed_at(candles: &[Candle], now: Millis) -> &[Candle] {
    let over = candles.partition_point(|candle| candle.close_time < now);
    &candles[..over]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::minute;

    #[test]
    fn candle_closes_after_its_last_millisecond() {
        let minutes = [0, 1].map(|index| minute(index, ["1", "1", "1", "1"], "1"));
        let closed = |now| closed_at(&minutes, now).len();
        assert_eq!((closed(59_999), closed(60_000), closed(119_999), closed(120_000)), (0, 1, 1, 2));
    }
}
