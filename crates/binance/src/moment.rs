//! Moments by both clocks, and values with their times.

use std::time::Instant;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use tribune_clock::Clock;

use crate::model::Millis;

/// One moment by both clocks: wall time for people, monotonic time for ages, which a correction of the wall clock does
/// not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub wall: Timestamp,
    pub monotonic: Instant,
}

impl Moment {
    pub fn now(clock: &dyn Clock) -> Self {
        Self { wall: clock.now(), monotonic: clock.monotonic() }
    }

    pub fn age_ms(&self, clock: &dyn Clock) -> u64 {
        let age = clock.monotonic().saturating_duration_since(self.monotonic);
        u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
    }
}

/// With milliseconds, in UTC.
pub fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// A time as people write it: a timestamp, a day, seconds or milliseconds since 1970.
pub fn parse_time(text: &str) -> Option<Millis> {
    let text = text.trim();
    if let Ok(number) = text.parse::<Millis>() {
        // Before 1973 in milliseconds there was no exchange: these are seconds.
        let is_seconds = (1..100_000_000_000).contains(&number);
        return Some(if is_seconds { number * 1_000 } else { number });
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_millisecond());
    }
    let written = text.parse::<DateTime>().ok();
    let day = || text.parse::<Date>().ok().map(|day| day.at(0, 0, 0, 0));
    let time = written.or_else(day)?.to_zoned(TimeZone::UTC).ok()?;
    Some(time.timestamp().as_millisecond())
}

/// A value with its times and origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped<T> {
    pub value: T,
    /// When it was true by the exchange's clock, where the exchange says so.
    pub exchange_time: Option<Millis>,
    /// When it was requested: the value is from then or later.
    pub sent: Moment,
    /// When its first bytes were there: ages count from then.
    pub received: Moment,
    /// It comes from a simulated or replayed exchange.
    pub simulated: bool,
}

impl<T> Stamped<T> {
    pub fn age_ms(&self, clock: &dyn Clock) -> u64 {
        self.received.age_ms(clock)
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Stamped<U> {
        Stamped {
            value: change(self.value),
            exchange_time: self.exchange_time,
            sent: self.sent,
            received: self.received,
            simulated: self.simulated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ManualClock;

    #[test]
    fn ages_grow_with_the_monotonic_clock() {
        let clock = ManualClock::at(1_000);
        let stamped = Stamped {
            value: 7,
            exchange_time: Some(900),
            sent: Moment::now(&clock),
            received: Moment::now(&clock),
            simulated: true,
        };
        clock.advance_ms(1_234);
        assert_eq!(stamped.age_ms(&clock), 1_234);
        let text = stamped.map(|value| value.to_string());
        assert_eq!((text.value.as_str(), text.age_ms(&clock), text.simulated), ("7", 1_234, true));
        // Another clock's past is no negative age.
        let earlier = ManualClock::at(0);
        let later = Moment { wall: clock.now(), monotonic: earlier.monotonic() + std::time::Duration::from_secs(1) };
        assert_eq!(later.age_ms(&earlier), 0);
    }
}
