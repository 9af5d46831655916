//! How the connections are, and the exchange's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::link::Link;
use crate::model::Millis;
use crate::rest::{Rest, Simulation};

/// Events arrive within a moment: a larger difference means that the clocks differ.
const NOTABLE_DRIFT_MS: Millis = 1_000;
/// An event further ahead of our estimate of the exchange's clock than this is not believed.
const MAX_AHEAD_MS: Millis = 10_000;

/// How the streams are, and the exchange's time.
pub struct Health {
    /// Knows how far the exchange's clock is ahead of ours.
    rest: Rest,
    links: Mutex<Vec<Arc<Link>>>,
    /// The latest time of an event, by the exchange's clock.
    latest: AtomicI64,
    /// How far the last event was from what the exchange's clock was thought to say.
    drift_ms: AtomicI64,
}

impl Health {
    pub(super) fn new(rest: Rest) -> Self {
        Self { rest, links: Mutex::default(), latest: AtomicI64::new(0), drift_ms: AtomicI64::new(0) }
    }

    pub(super) fn link(&self, now: Instant) -> Arc<Link> {
        let link = Arc::new(Link::new(now));
        link.is_missing();
        self.links.lock().push(link.clone());
        link
    }

    /// The exchange's time, from ours.
    fn reckoned(&self, now: Timestamp) -> Millis {
        now.as_millisecond().saturating_add(self.rest.clock_offset_ms().unwrap_or(0))
    }

    /// A replay's clock has a pace of its own, and stops.
    fn is_replay(&self) -> bool {
        self.rest.simulation() == Some(Simulation::Replay)
    }

    /// Notes an event of this exchange time; returns how far behind the exchange's clock it was. Less than a second is
    /// within what clocks and routes differ by.
    pub(super) fn note_event(&self, time: Millis, now: Timestamp) -> Duration {
        let drift_ms = time.saturating_sub(self.reckoned(now));
        self.drift_ms.store(drift_ms, Ordering::Relaxed);
        self.latest.fetch_max(time, Ordering::Relaxed);
        let has_clock = self.rest.clock_offset_ms().is_some() && !self.is_replay();
        match drift_ms <= -NOTABLE_DRIFT_MS && has_clock {
            true => Duration::from_millis(drift_ms.unsigned_abs()),
            false => Duration::ZERO,
        }
    }

    /// Whether event times differ notably from our idea of the exchange's clock.
    pub fn has_drifted(&self) -> bool {
        self.drift_ms.load(Ordering::Relaxed).abs() >= NOTABLE_DRIFT_MS
    }

    /// The exchange's time now: never before the latest event. In a replay, that of the latest event.
    pub fn exchange_millis(&self, now: Timestamp) -> Millis {
        let (reckoned, latest) = (self.reckoned(now), self.latest.load(Ordering::Relaxed));
        if latest > 0 && self.is_replay() {
            return latest;
        }
        let is_likely = latest.saturating_sub(reckoned) <= MAX_AHEAD_MS;
        if is_likely { reckoned.max(latest) } else { reckoned }
    }

    /// The exchange's time `age_ms` ago. How much of a replay that was is not known.
    pub fn exchange_millis_before(&self, now: Timestamp, age_ms: u64) -> Millis {
        let passed = if self.is_replay() { 0 } else { age_ms };
        self.exchange_millis(now).saturating_sub_unsigned(passed)
    }

    /// `None` while every connection that is needed is there.
    pub fn trouble(&self) -> Option<String> {
        self.links.lock().iter().find_map(|link| link.trouble())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ManualClock, Reply, Server, client, client_by};
    use tribune_clock::Clock as _;

    #[test]
    fn connected_shard_does_not_hide_another() {
        let health = Health::new(client("http://127.0.0.1:1", |_| ()));
        let (one, other) = (health.link(Instant::now()), health.link(Instant::now()));
        one.set_trouble(None);
        other.is_missing();
        assert_eq!(health.trouble().as_deref(), Some("not connected yet"));
        other.set_trouble(None);
        assert_eq!(health.trouble(), None);
        other.set_trouble(Some("the line is cut"));
        one.set_trouble(None);
        other.is_missing();
        assert_eq!(health.trouble().as_deref(), Some("the line is cut"));
        other.set_trouble(None);
        assert_eq!(health.trouble(), None, "no connection is needed");
    }

    #[tokio::test]
    async fn late_events_lag_and_early_ones_are_the_time() {
        let replay = std::sync::atomic::AtomicBool::new(false);
        let server = Server::start(move |_| {
            let time = Reply::json(&serde_json::json!({"serverTime": 1_000_000}));
            match replay.swap(true, Ordering::SeqCst) {
                false => time,
                true => time.header("x-tribune-simulated", "replay"),
            }
        })
        .await;
        let clock = Arc::new(ManualClock::at(500_000));
        let rest = client_by(clock.clone(), &server.url, |_| ());
        let health = Health::new(rest.clone());
        let now = || clock.now();
        assert_eq!(health.note_event(400_000, now()), Duration::ZERO, "no clock to compare with");
        rest.server_time().await.expect("the time");
        assert_eq!(health.exchange_millis(now()), 1_000_000);
        assert_eq!(health.note_event(993_800, now()), Duration::from_millis(6_200));
        assert!(health.has_drifted());
        assert_eq!(health.note_event(999_100, now()), Duration::ZERO, "what ways differ by");
        assert_eq!(health.note_event(1_005_000, now()), Duration::ZERO, "a clock that is ahead does not lag");
        assert_eq!(health.exchange_millis(now()), 1_005_000);
        assert_eq!(health.exchange_millis_before(now(), 1_000), 1_004_000);
        health.note_event(2_000_000, now());
        assert_eq!(health.exchange_millis(now()), 1_000_000, "too far ahead");

        rest.server_time().await.expect("the time");
        assert_eq!(health.exchange_millis(now()), 2_000_000, "a replay is where its events are");
        assert_eq!(health.exchange_millis_before(now(), 1_000), 2_000_000);
        assert_eq!(health.note_event(1_900_000, now()), Duration::ZERO, "at its own pace");
    }
}
