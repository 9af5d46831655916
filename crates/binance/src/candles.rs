//! When candles begin and end, in UTC.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::model::{Candle, Interval, Millis};

const DAY: Millis = 86_400_000;
/// The first Monday after 1 January 1970, a Thursday.
const FIRST_MONDAY: Millis = 4 * DAY;

/// The first millisecond of the candle that `time` belongs to; `None` beyond the calendar.
///
/// Weeks begin on Monday, months on their first day; everything else, three days too, is counted from 1970.
pub fn open_time(interval: Interval, time: Millis) -> Option<Millis> {
    match interval {
        Interval::Mo1 => month(time, 0),
        Interval::W1 => floor(time, FIRST_MONDAY, interval.millis()),
        _ => floor(time, 0, interval.millis()),
    }
}

/// The last millisecond of the candle that `time` belongs to.
pub fn close_time(interval: Interval, time: Millis) -> Option<Millis> {
    let next = match interval {
        Interval::Mo1 => month(time, 1)?,
        _ => open_time(interval, time)?.checked_add(interval.millis())?,
    };
    next.checked_sub(1)
}

/// The candles that are over at `now`, of candles in order of time.
pub fn closed_at(candles: &[Candle], now: Millis) -> &[Candle] {
    let over = candles.partition_point(|candle| candle.close_time < now);
    &candles[..over]
}

fn floor(time: Millis, origin: Millis, length: Millis) -> Option<Millis> {
    let into = time.checked_sub(origin)?.rem_euclid(length);
    time.checked_sub(into)
}

/// The first moment of the month that is `later` months after that of `time`.
fn month(time: Millis, later: i64) -> Option<Millis> {
    let date = Timestamp::from_millisecond(time).ok()?.to_zoned(TimeZone::UTC).date();
    let first = date.first_of_month().checked_add(later.months()).ok()?;
    Some(first.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::minute;
    use proptest::prelude::*;

    fn at(text: &str) -> Millis {
        text.parse::<Timestamp>().expect("a time").as_millisecond()
    }

    #[test]
    fn candles_begin_where_the_exchange_has_them() {
        let time = at("2024-02-29T13:47:59.999Z"); // a Thursday
        let opened =
            |interval| Timestamp::from_millisecond(open_time(interval, time).expect("open")).expect("time").to_string();
        assert_eq!(opened(Interval::S1), "2024-02-29T13:47:59Z");
        assert_eq!(opened(Interval::M15), "2024-02-29T13:45:00Z");
        assert_eq!(opened(Interval::H8), "2024-02-29T08:00:00Z");
        assert_eq!(opened(Interval::D1), "2024-02-29T00:00:00Z");
        // Day 19782 of 1970's count; 19782 = 3·6594: a three-day candle begins that very day.
        assert_eq!(opened(Interval::D3), "2024-02-29T00:00:00Z");
        assert_eq!(opened(Interval::W1), "2024-02-26T00:00:00Z");
        assert_eq!(opened(Interval::Mo1), "2024-02-01T00:00:00Z");
        assert_eq!(close_time(Interval::Mo1, time), Some(at("2024-02-29T23:59:59.999Z")));
        assert_eq!(close_time(Interval::W1, time), Some(at("2024-03-03T23:59:59.999Z")));
    }

    #[test]
    fn candle_closes_after_its_last_millisecond() {
        let minutes = [0, 1].map(|index| minute(index, ["1", "1", "1", "1"], "1"));
        let closed = |now| closed_at(&minutes, now).len();
        assert_eq!((closed(59_999), closed(60_000), closed(119_999), closed(120_000)), (0, 1, 1, 2));
    }

    proptest! {
        #[test]
        fn every_moment_is_in_one_candle(time in -60_000_000_000_000i64..200_000_000_000_000) {
            for &interval in Interval::ALL {
                let (open, close) = (open_time(interval, time).expect("open"), close_time(interval, time).expect("close"));
                prop_assert!(open <= time && time <= close);
                prop_assert_eq!(open_time(interval, close), Some(open));
                prop_assert_eq!(open_time(interval, close + 1), Some(close + 1));
            }
        }

        #[test]
        fn no_time_makes_it_panic(time in any::<i64>()) {
            for &interval in Interval::ALL {
                let _ = (open_time(interval, time), close_time(interval, time));
            }
        }
    }
}
