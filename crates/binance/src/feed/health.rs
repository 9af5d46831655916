//! How the connections are, and the exchange's clock.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::model::Millis;

/// Events arrive within a moment: a larger difference means that the clocks differ.
const NOTABLE_DRIFT_MS: Millis = 1_000;
/// A clock that moved by less than the second between two readings at least the first apart has stopped.
const READINGS_APART_MS: Millis = 1_000;
const STOPPED_WITHIN_MS: Millis = 100;
/// An event further ahead of the clocks than this is not believed.
const MAX_AHEAD_MS: Millis = 24 * 3600 * 1000;

/// Why a shard has no connection; `None` while it has one or needs none.
#[derive(Debug, Default)]
pub(super) struct Link(Mutex<Option<String>>);

impl Link {
    pub(super) fn set(&self, trouble: Option<&str>) {
        *self.lock() = trouble.map(ToOwned::to_owned);
    }

    /// A connection is needed and not there yet. Why an earlier one failed says more.
    pub(super) fn is_missing(&self) {
        self.lock().get_or_insert_with(|| "not connected yet".to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the streams are, for the operator.
#[derive(Debug, Default)]
pub struct Health {
    links: Mutex<Vec<Arc<Link>>>,
    /// How far the exchange's clock is ahead of ours.
    offset_ms: AtomicI64,
    /// The latest time of an event, by the exchange's clock.
    latest: AtomicI64,
    /// How far the last event was from what the exchange's clock was thought to say.
    drift_ms: AtomicI64,
    /// The exchange's clock is known and runs at the normal pace, which a replay's does not.
    has_clock: AtomicBool,
    /// How many readings of it there were.
    readings: AtomicU64,
    /// The last reading of the exchange's clock, and our time then; zero before the first.
    reading: AtomicI64,
    read_at: AtomicI64,
    /// It has not moved since the reading before: a replay is at its end.
    is_stopped: AtomicBool,
}

impl Health {
    /// The link of one more shard.
    pub(super) fn link(&self) -> Arc<Link> {
        let link = Arc::<Link>::default();
        link.is_missing();
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.push(link.clone());
        link
    }

    /// How far behind the exchange's clock an event was; less than a second is within what clocks and routes differ by.
    fn lag(&self, drift_ms: Millis) -> Duration {
        let behind = drift_ms.saturating_neg();
        match u64::try_from(behind) {
            Ok(behind) if behind >= NOTABLE_DRIFT_MS.unsigned_abs() && self.has_clock.load(Ordering::Relaxed) => {
                Duration::from_millis(behind)
            }
            _ => Duration::ZERO,
        }
    }

    /// Whether the exchange's time can be computed from ours.
    pub fn has_clock(&self) -> bool {
        self.has_clock.load(Ordering::Relaxed)
    }

    pub fn set_has_clock(&self, has: bool) {
        self.has_clock.store(has, Ordering::Relaxed);
    }

    /// A reading of the exchange's clock: how far it is ahead of ours, at this time of ours.
    pub fn set_offset_ms(&self, offset: Millis, now: Timestamp) {
        self.offset_ms.store(offset, Ordering::Relaxed);
        let reckoned = now.as_millisecond().saturating_add(offset);
        // If the clock was set back, times recorded before are in the future: ignore them.
        if self.latest.load(Ordering::Relaxed) > reckoned.saturating_add(NOTABLE_DRIFT_MS) {
            self.latest.store(reckoned, Ordering::Relaxed);
        }
        self.drift_ms.store(0, Ordering::Relaxed);
        self.readings.fetch_add(1, Ordering::Relaxed);
        self.note_reading(reckoned, now.as_millisecond());
    }

    fn note_reading(&self, reading: Millis, now: Millis) {
        let before = self.reading.swap(reading, Ordering::Relaxed);
        let apart = now.saturating_sub(self.read_at.load(Ordering::Relaxed));
        if before == 0 || apart >= READINGS_APART_MS {
            let moved = reading.saturating_sub(before).saturating_abs();
            self.is_stopped.store(moved < STOPPED_WITHIN_MS, Ordering::Relaxed);
            self.read_at.store(now, Ordering::Relaxed);
        }
    }

    /// How many readings of the exchange's clock there were: events that are late by a new reading are really late.
    pub(super) fn readings(&self) -> u64 {
        self.readings.load(Ordering::Relaxed)
    }

    /// Notes an event of this exchange time; returns how far behind it was.
    pub(super) fn note_event(&self, time: Millis, now: Timestamp) -> Duration {
        let reckoned = now.as_millisecond().saturating_add(self.offset_ms.load(Ordering::Relaxed));
        let drift_ms = time.saturating_sub(reckoned);
        self.drift_ms.store(drift_ms, Ordering::Relaxed);
        self.latest.fetch_max(time, Ordering::Relaxed);
        self.lag(drift_ms)
    }

    /// Whether event times differ notably from our idea of the exchange's clock.
    pub fn has_drifted(&self) -> bool {
        self.drift_ms.load(Ordering::Relaxed).abs() >= NOTABLE_DRIFT_MS
    }

    /// The exchange's time now: never before the latest event.
    pub fn exchange_millis(&self, now: Timestamp) -> Millis {
        let offset = self.offset_ms.load(Ordering::Relaxed);
        let reckoned = now.as_millisecond().saturating_add(offset);
        let clock = match self.replayed_until() {
            Some(until) => until.min(reckoned),
            None => reckoned,
        };
        let latest = self.latest.load(Ordering::Relaxed);
        let is_likely = latest.saturating_sub(clock) <= MAX_AHEAD_MS;
        if is_likely { clock.max(latest) } else { clock }
    }

    /// The exchange's time `age_ms` ago, which is the same if its clock has stopped.
    pub fn exchange_millis_before(&self, now: Timestamp, age_ms: u64) -> Millis {
        let passed = if self.is_at_end() { 0 } else { age_ms };
        self.exchange_millis(now).saturating_sub_unsigned(passed)
    }

    fn is_at_end(&self) -> bool {
        !self.has_clock() && self.is_stopped.load(Ordering::Relaxed)
    }

    /// A replay's clock has another pace and stops: once events have reached its last reading, or it has stopped, time
    /// does not go beyond that reading.
    fn replayed_until(&self) -> Option<Millis> {
        let reading = Some(self.reading.load(Ordering::Relaxed));
        let reading = reading.filter(|reading| *reading != 0 && !self.has_clock())?;
        let has_events = reading <= self.latest.load(Ordering::Relaxed).saturating_add(NOTABLE_DRIFT_MS);
        (has_events || self.is_at_end()).then_some(reading)
    }

    /// `None` while every connection that is needed is there.
    pub fn trouble(&self) -> Option<String> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().find_map(|link| link.lock().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connected_shard_does_not_hide_another() {
        let health = Health::default();
        let (one, other) = (health.link(), health.link());
        one.set(None);
        other.is_missing();
        assert_eq!(health.trouble().as_deref(), Some("not connected yet"));
        other.set(None);
        assert_eq!(health.trouble(), None);
        other.set(Some("the line is cut"));
        one.set(None);
        other.is_missing();
        assert_eq!(health.trouble().as_deref(), Some("the line is cut"));
        other.set(None);
        assert_eq!(health.trouble(), None, "nobody needs it");
    }

    #[test]
    fn replay_clock_stops_with_the_replay() {
        let health = Health::default();
        let at = |millis| Timestamp::from_millisecond(millis).expect("a time");
        health.set_offset_ms(500_000, at(1_000_000));
        assert_eq!(health.exchange_millis(at(1_002_000)), 1_502_000, "nothing else is known");
        // Played at half the pace: what events say counts, not what would have passed by ours.
        health.note_event(1_501_000, at(1_002_000));
        assert_eq!(health.exchange_millis(at(1_002_000)), 1_501_000);
        // Its last event; the clock is read once more, and has stopped a little later.
        health.note_event(1_502_000, at(1_004_000));
        health.set_offset_ms(497_200, at(1_005_000));
        for later in [1_005_000, 1_009_900] {
            assert_eq!(health.exchange_millis(at(later)), 1_502_200);
        }
        health.set_offset_ms(492_205, at(1_010_000));
        assert_eq!(health.exchange_millis(at(1_014_900)), 1_502_205);
        assert_eq!(health.exchange_millis_before(at(1_014_900), 60_000), 1_502_205, "it stood then");
        // A clock that runs is reckoned with, whatever came.
        health.set_has_clock(true);
        assert_eq!(health.exchange_millis(at(1_014_900)), 1_507_105);
        assert_eq!(health.exchange_millis_before(at(1_014_900), 1_000), 1_506_105);
    }

    #[test]
    fn replay_without_events_follows_its_clock() {
        let health = Health::default();
        let at = |millis| Timestamp::from_millisecond(millis).expect("a time");
        health.set_offset_ms(0, at(1_000_000));
        health.note_event(1_000_000, at(1_000_000));
        // Its streams ended long ago, and it goes on.
        health.set_offset_ms(0, at(1_060_000));
        assert_eq!(health.exchange_millis(at(1_063_000)), 1_063_000);
    }

    #[test]
    fn old_events_lag() {
        let health = Health::default();
        let now = Timestamp::from_millisecond(1_000_000).expect("a time");
        health.set_offset_ms(2_000, now);
        let lag = |drift_ms: Millis| health.note_event(1_002_000 + drift_ms, now);
        assert_eq!(lag(-6_200), Duration::ZERO, "no clock to compare with");
        health.set_has_clock(true);
        assert_eq!(lag(-6_200), Duration::from_millis(6_200));
        assert_eq!(lag(-900), Duration::ZERO, "what ways differ by");
        assert_eq!(lag(5_000), Duration::ZERO, "a clock that is ahead does not lag");
    }
}
