//! The sixteen candle intervals, aligned to UTC. Weeks begin on Monday; months are calendar months.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Milliseconds since 1970.
pub type Millis = i64;

pub const SECOND: Millis = 1_000;
pub const MINUTE: Millis = 60 * SECOND;
pub const HOUR: Millis = 60 * MINUTE;
pub const DAY: Millis = 24 * HOUR;

const WEEK: Millis = 7 * DAY;
/// 1970-01-05 was the first Monday.
const FIRST_MONDAY: Millis = 4 * DAY;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    name: &'static str,
    /// `None` for a calendar month.
    length: Option<Millis>,
}

const fn fixed(name: &'static str, length: Millis) -> Interval {
    Interval { name, length: Some(length) }
}

impl Interval {
    pub const ALL: [Self; 16] = [
        fixed("1s", SECOND),
        fixed("1m", MINUTE),
        fixed("3m", 3 * MINUTE),
        fixed("5m", 5 * MINUTE),
        fixed("15m", 15 * MINUTE),
        fixed("30m", 30 * MINUTE),
        fixed("1h", HOUR),
        fixed("2h", 2 * HOUR),
        fixed("4h", 4 * HOUR),
        fixed("6h", 6 * HOUR),
        fixed("8h", 8 * HOUR),
        fixed("12h", 12 * HOUR),
        fixed("1d", DAY),
        fixed("3d", 3 * DAY),
        fixed("1w", WEEK),
        Self { name: "1M", length: None },
    ];

    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Whether candles are made from seconds and not from minutes.
    pub const fn is_second(self) -> bool {
        matches!(self.length, Some(SECOND))
    }

    /// When the candle that contains `time` opened.
    pub fn open_of(self, time: Millis) -> Millis {
        match self.length {
            Some(WEEK) => time - (time - FIRST_MONDAY).rem_euclid(WEEK),
            Some(length) => time - time.rem_euclid(length),
            None => month_open(time),
        }
    }

    /// When the candle after the one opened at `open` opens.
    pub fn next_open(self, open: Millis) -> Millis {
        match self.length {
            Some(length) => open.saturating_add(length),
            // 31 days later is always in the next month.
            None => self.open_of(open.saturating_add(31 * DAY)),
        }
    }
}

impl FromStr for Interval {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|interval| interval.name == text).ok_or(())
    }
}

fn month_open(time: Millis) -> Millis {
    let Ok(instant) = Timestamp::from_millisecond(time) else {
        return time;
    };
    let date = instant.to_zoned(TimeZone::UTC).date();
    Date::new(date.year(), date.month(), 1)
        .and_then(|first| first.to_zoned(TimeZone::UTC))
        .map_or(time, |first| first.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Millis {
        text.parse::<Timestamp>().expect("a timestamp").as_millisecond()
    }

    fn open(interval: &str, time: &str) -> Millis {
        interval.parse::<Interval>().expect("an interval").open_of(millis(time))
    }

    #[test]
    fn weeks_begin_on_monday() {
        // 2026-11-15 is a Sunday.
        assert_eq!(open("1w", "2026-11-15T20:21:40Z"), millis("2026-11-09T00:00:00Z"));
        assert_eq!(open("1w", "2026-11-16T00:00:00Z"), millis("2026-11-16T00:00:00Z"));
    }

    #[test]
    fn months_are_calendar_months() {
        let month: Interval = "1M".parse().expect("an interval");
        assert_eq!(open("1M", "2024-02-29T23:59:59Z"), millis("2024-02-01T00:00:00Z"));
        assert_eq!(month.next_open(millis("2024-02-01T00:00:00Z")), millis("2024-03-01T00:00:00Z"));
        assert_eq!(month.next_open(millis("2026-12-01T00:00:00Z")), millis("2027-01-01T00:00:00Z"));
    }

    #[test]
    fn upper_and_lower_case_differ() {
        assert_eq!("1m".parse::<Interval>().map(Interval::name), Ok("1m"));
        assert_eq!("1M".parse::<Interval>().map(Interval::name), Ok("1M"));
        assert!("1H".parse::<Interval>().is_err());
    }

    proptest::proptest! {
        #[test]
        fn time_lies_in_its_candle(time in 0i64..4_000_000_000_000, index in 0usize..16) {
            let interval = Interval::ALL[index];
            let open = interval.open_of(time);
            let next = interval.next_open(open);
            proptest::prop_assert!(open <= time && time < next);
            proptest::prop_assert_eq!(interval.open_of(open), open);
            proptest::prop_assert_eq!(interval.open_of(next), next);
        }
    }
}
