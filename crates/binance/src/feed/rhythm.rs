//! How often a book changes, and when its silence is worth a check.

use std::time::{Duration, Instant};

/// Updates after which the usual interval is known.
const ENOUGH: u32 = 20;
/// A book that is usually lively is not called stale before this.
const MIN_PATIENCE: Duration = Duration::from_secs(3);
/// A silence of this many usual intervals is unusual, and of the second many it is wrong.
const UNUSUAL: f64 = 5.0;
const WRONG: f64 = 20.0;
/// However quiet a book usually is, the exchange is asked after this long whether it has changed. Each time that it has
/// not, the next question comes after twice as long, up to the second.
const ASK_AFTER: Duration = Duration::from_secs(15);
const ASK_AFTER_AT_MOST: Duration = Duration::from_secs(120);
const MOST_QUIET: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Rhythm {
    /// The last update, or the snapshot if none came since.
    updated: Option<Instant>,
    /// When the exchange last confirmed that there was none.
    assured: Option<Instant>,
    /// Mean seconds between updates.
    usual: f64,
    updates: u32,
    /// How often in a row silence turned out to be a quiet market; an exponent of two.
    doublings: u32,
}

impl Rhythm {
    /// A snapshot was taken.
    pub(super) fn begin(&mut self, now: Instant) {
        self.updated = Some(now);
    }

    pub(super) fn update(&mut self, now: Instant) {
        if let Some(before) = self.updated.max(self.assured) {
            let seconds = now.duration_since(before).as_secs_f64();
            let share = if self.updates < ENOUGH { 0.3 } else { 0.05 };
            self.usual += share * (seconds - self.usual);
        }
        self.updates = self.updates.saturating_add(1);
        self.updated = Some(now);
        self.doublings = 0;
    }

    /// The exchange says that nothing has changed.
    pub(super) fn assure(&mut self, now: Instant) {
        self.assured = Some(now);
        self.doublings = (self.doublings + 1).min(MOST_QUIET.ilog2());
    }

    /// How many times longer than usual a silence may last.
    pub(super) fn quiet(&self) -> u32 {
        1 << self.doublings
    }

    /// Since the last update or confirmation.
    fn silence(&self, now: Instant) -> Option<Duration> {
        let last = self.updated.max(self.assured)?;
        Some(now.duration_since(last))
    }

    /// How long nothing came, if so long that something must be wrong.
    pub(super) fn overdue(&self, now: Instant) -> Option<Duration> {
        let patience = self.times_usual(WRONG)? * self.quiet();
        self.silence(now).filter(|silence| *silence >= patience)
    }

    /// So many usual intervals, once the usual one is known.
    fn times_usual(&self, times: f64) -> Option<Duration> {
        let usual = Duration::from_secs_f64((self.usual * times).min(3600.0));
        (self.updates >= ENOUGH).then_some(usual.max(MIN_PATIENCE))
    }

    /// Whether it has been silent for so long that the exchange is asked, although the market may just be quiet.
    pub(super) fn is_worth_a_question(&self, now: Instant) -> bool {
        let first = self.times_usual(UNUSUAL).map_or(ASK_AFTER, |usual| usual.min(ASK_AFTER));
        let patience = (first * self.quiet()).min(ASK_AFTER_AT_MOST);
        self.silence(now).is_some_and(|silence| silence >= patience)
    }

    pub(super) fn usual_millis(&self) -> f64 {
        self.usual * 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lively_book_is_overdue_sooner() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut lively = Rhythm::default();
        lively.begin(start);
        (1..=30).for_each(|turn| lively.update(at(turn * 100)));
        assert_eq!(lively.overdue(at(5_900)), None);
        assert_eq!(lively.overdue(at(6_000)), Some(Duration::from_secs(3)));
        lively.assure(at(6_000));
        assert_eq!(lively.overdue(at(11_900)), None, "it was quiet: it is given twice as long");
        assert!(lively.overdue(at(12_000)).is_some());
        lively.update(at(12_100));
        assert!(lively.overdue(at(22_000)).is_some(), "an update ends the quiet");

        let mut slow = Rhythm::default();
        slow.begin(start);
        (1..=60).for_each(|turn| slow.update(at(turn * 1_000)));
        assert!(!slow.is_worth_a_question(at(64_000)) && slow.is_worth_a_question(at(65_000)));
        assert_eq!(slow.overdue(at(79_000)), None);
        assert!(slow.overdue(at(80_000)).is_some());

        let mut quiet = Rhythm::default();
        quiet.begin(start);
        quiet.update(at(1_000));
        assert_eq!(quiet.overdue(at(3_600_000)), None, "nobody knows what is usual");
        assert!(!quiet.is_worth_a_question(at(15_900)));
        assert!(quiet.is_worth_a_question(at(16_000)));
        let mut asked = at(16_000);
        for turn in 0..20 {
            quiet.assure(asked);
            let next = asked + ASK_AFTER * 2u32.pow(turn + 1).min(8);
            assert!(quiet.is_worth_a_question(next) && !quiet.is_worth_a_question(next - MIN_PATIENCE));
            asked = next;
        }
    }
}
