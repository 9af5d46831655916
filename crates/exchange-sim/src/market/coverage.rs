//! Of which time all trades are known: since when, and without which. Trades have consecutive ids, so that those between
//! two that are not consecutive are missing, and happened between the two.

use std::collections::BTreeMap;

use crate::interval::Millis;

/// Holes that are kept; of the time before the oldest of more nothing is said to be known.
const MAX_HOLES: usize = 1_000;

/// A trade may be told of so long before it comes itself.
const IN_FLIGHT: Millis = 2_000;

/// Missing trades up to the id `last`, and when they happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    last: u64,
    pub from: Millis,
    pub to: Millis,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    id: u64,
    time: Millis,
}

/// Ids between known ones that were never seen, by the first of them.
#[derive(Debug, Clone, Default)]
pub struct Holes {
    missing: BTreeMap<u64, Hole>,
    first: Option<Seen>,
    last: Option<Seen>,
    /// Holes up to here are no longer kept.
    forgotten: Millis,
}

impl Holes {
    /// Trades `first..=last` were seen, in whatever order.
    pub fn note(&mut self, first: u64, last: u64, time: Millis) {
        let seen = |id| Seen { id, time };
        let (Some(lowest), Some(highest)) = (self.first, self.last) else {
            (self.first, self.last) = (Some(seen(first)), Some(seen(last)));
            return;
        };
        if first > highest.id {
            self.insert(highest.id + 1, first - 1, highest.time, time);
            self.last = Some(seen(last));
        } else if last < lowest.id {
            self.insert(last + 1, lowest.id - 1, time, lowest.time);
            self.first = Some(seen(first));
        } else {
            self.fill(first, last, time);
            if last > highest.id {
                self.last = Some(seen(last));
            }
        }
    }

    /// Whether any trade was seen.
    pub const fn saw_any(&self) -> bool {
        self.first.is_some()
    }

    /// Others tell of a trade: if it came long after the last that was seen, those up to it are missing.
    pub fn go_on_to(&mut self, id: u64, time: Millis) {
        if let Some(last) = self.last
            && time > last.time.saturating_add(IN_FLIGHT)
        {
            self.insert(last.id + 1, id, last.time, time);
        }
    }

    /// Others have seen trades before the first that was seen here: these are missing.
    pub fn begin_with(&mut self, others: &Self) {
        if let (Some(first), Some(theirs)) = (self.first, others.first)
            && theirs.id < first.id
        {
            self.insert(theirs.id, first.id - 1, theirs.time, first.time);
        }
    }

    fn insert(&mut self, first: u64, last: u64, from: Millis, to: Millis) {
        if first > last {
            return;
        }
        let (from, to) = (from.min(to), from.max(to));
        self.missing.insert(first, Hole { last, from, to });
        if self.missing.len() > MAX_HOLES
            && let Some((_, oldest)) = self.missing.pop_first()
        {
            self.forgotten = self.forgotten.max(oldest.to);
        }
    }

    /// What comes late is missing no more.
    fn fill(&mut self, first: u64, last: u64, time: Millis) {
        let Some((&start, &hole)) = self.missing.range(..=last).next_back() else {
            return;
        };
        if hole.last < first {
            return;
        }
        self.missing.remove(&start);
        if start < first {
            self.insert(start, first - 1, hole.from, time);
        }
        if hole.last > last {
            self.insert(last + 1, hole.last, time, hole.to);
        }
    }

    fn touch(&self, start: Millis, end: Millis) -> bool {
        let touches = |hole: &Hole| hole.from < end && hole.to >= start;
        start <= self.forgotten && self.forgotten > 0 || self.missing.values().any(touches)
    }
}

#[derive(Debug, Clone)]
pub struct Coverage {
    pub since: Millis,
    /// Whether trades are known at all.
    pub trades: bool,
    pub holes: Holes,
}

impl Default for Coverage {
    /// All that ever traded.
    fn default() -> Self {
        Self {
            since: 0,
            trades: true,
            holes: Holes::default(),
        }
    }
}

impl Coverage {
    /// Whether every trade that there ever was is known.
    pub const fn is_all(&self) -> bool {
        self.trades && self.since == 0
    }

    /// Whether every trade from `start` to before `end` is known.
    pub fn is_whole(&self, start: Millis, end: Millis) -> bool {
        self.trades && start >= self.since && !self.holes.touch(start, end)
    }

    /// The latest part of a time, both ends included, of which every trade is known: it may be short.
    pub fn latest_whole(&self, start: Millis, now: Millis) -> (Millis, Millis) {
        let begun = self.holes.missing.values().filter(|hole| hole.from < now);
        let open = begun.clone().find(|hole| hole.to > now);
        let end = open.map_or(now, |hole| hole.from);
        let over = begun.filter(|hole| hole.to <= end).map(|hole| hole.to).max();
        let start = start.max(self.since).max(self.holes.forgotten);
        (start.max(over.unwrap_or(start)), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(seen: &[(u64, u64, Millis)]) -> Holes {
        let mut holes = Holes::default();
        seen.iter()
            .for_each(|(first, last, time)| holes.note(*first, *last, *time));
        holes
    }

    #[test]
    fn a_jump_of_ids_is_a_hole_between_two_times() {
        let coverage = Coverage {
            holes: holes(&[(1, 1, 100), (2, 4, 200), (9, 9, 500), (10, 10, 600)]),
            ..Coverage::default()
        };
        assert!(coverage.is_whole(0, 200));
        assert!(!coverage.is_whole(150, 201));
        assert!(!coverage.is_whole(300, 400));
        assert!(!coverage.is_whole(500, 600));
        assert!(coverage.is_whole(501, 900));
        assert_eq!(coverage.latest_whole(0, 150), (0, 150));
        assert_eq!(coverage.latest_whole(0, 300), (0, 200), "within the hole");
        assert_eq!(coverage.latest_whole(0, 700), (500, 700));
    }

    #[test]
    fn what_comes_late_fills_it() {
        let mut holes = holes(&[(1, 1, 100), (5, 5, 500)]);
        holes.note(3, 3, 300);
        assert!(holes.touch(150, 160) && holes.touch(350, 360));
        holes.note(2, 2, 200);
        assert!(!holes.touch(150, 160) && holes.touch(350, 360));
        holes.note(4, 4, 400);
        holes.note(4, 4, 400);
        assert!(holes.missing.is_empty());
        holes.note(0, 0, 50);
        assert!(holes.missing.is_empty());
    }

    #[test]
    fn others_may_know_of_more() {
        let mut mine = holes(&[(5, 5, 10_000)]);
        mine.go_on_to(6, 11_000);
        assert!(mine.missing.is_empty(), "it may be on its way");
        mine.go_on_to(5, 20_000);
        assert!(mine.missing.is_empty());
        mine.go_on_to(9, 20_000);
        assert!(mine.touch(15_000, 15_001));
        mine.begin_with(&holes(&[(3, 4, 5_000), (5, 6, 10_000)]));
        assert!(mine.touch(6_000, 6_001) && !mine.touch(4_000, 5_000));
    }

    #[test]
    fn of_what_is_forgotten_nothing_is_said() {
        let seen: Vec<(u64, u64, Millis)> = (0..2_000u64).map(|n| (2 * n, 2 * n, 10 * n as Millis)).collect();
        let holes = holes(&seen);
        assert_eq!(holes.missing.len(), MAX_HOLES);
        assert!(holes.touch(5, 6) && !holes.touch(30_000, 40_000));
    }
}
