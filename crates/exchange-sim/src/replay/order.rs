//! Lines of one file in the order of their times, where a recorder that listens on several connections wrote them
//! slightly out of it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::lines::{Line, Place};
use crate::clock::Nanos;

/// Two lines that are each up to a second off can be two seconds from their order.
const WINDOW: Nanos = 2_000_000_000;
/// More is not held back, however many lines a file has for two seconds.
const MAX_LINES: usize = 100_000;
const MAX_BYTES: usize = 64 << 20;

/// A line and when its turn is.
#[derive(Debug)]
pub struct Ranked {
    turn: Nanos,
    pub line: Line,
}

impl Ranked {
    const fn rank(&self) -> (Nanos, Place) {
        (self.turn, self.line.place)
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// Holds lines back for as long as earlier ones may follow.
#[derive(Debug, Default)]
pub struct Sorter {
    held: BinaryHeap<Reverse<Ranked>>,
    bytes: usize,
    newest: Nanos,
}

impl Sorter {
    /// A line that is much too late keeps the place it has: its time says nothing about the lines around it.
    pub fn push(&mut self, line: Line) {
        let late = line.time < self.newest.saturating_sub(WINDOW);
        let turn = if late { self.newest } else { line.time };
        self.newest = self.newest.max(turn);
        self.bytes += line.json.len();
        self.held.push(Reverse(Ranked { turn, line }));
    }

    /// The next line, if no earlier one is to be expected.
    pub fn pop_settled(&mut self) -> Option<Ranked> {
        let Reverse(first) = self.held.peek()?;
        let settled = first.turn <= self.newest.saturating_sub(WINDOW);
        let full = self.held.len() > MAX_LINES || self.bytes > MAX_BYTES;
        if settled || full { self.pop() } else { None }
    }

    /// The next line, when all have been pushed.
    pub fn pop(&mut self) -> Option<Ranked> {
        let Reverse(first) = self.held.pop()?;
        self.bytes -= first.line.json.len();
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn sorted(times: &[Nanos]) -> Vec<(Nanos, u64)> {
        let mut sorter = Sorter::default();
        let mut out = Vec::new();
        for (number, time) in (0..).zip(times) {
            let place = Place { file: 0, line: number };
            let json = "{}".to_owned();
            sorter.push(Line {
                place,
                time: *time,
                json,
            });
            out.extend(std::iter::from_fn(|| sorter.pop_settled()));
        }
        out.extend(std::iter::from_fn(|| sorter.pop()));
        assert_eq!(sorter.bytes, 0);
        out.iter()
            .map(|ranked| (ranked.line.time, ranked.line.place.line))
            .collect()
    }

    #[test]
    fn what_is_much_too_late_keeps_its_place() {
        let [a, b, c] = [10, 11, 12].map(|seconds| seconds * SECOND);
        assert_eq!(sorted(&[a, c, b]), [(a, 0), (b, 2), (c, 1)]);
        assert_eq!(sorted(&[a, c, 170, b]), [(a, 0), (b, 3), (c, 1), (170, 2)]);
        assert_eq!(sorted(&[a, a]), [(a, 0), (a, 1)]);
    }

    #[test]
    fn no_more_is_held_back_than_there_is_room_for() {
        let mut sorter = Sorter::default();
        for number in 0..10 {
            let place = Place { file: 0, line: number };
            let json = "x".repeat(MAX_BYTES / 8);
            sorter.push(Line { place, time: 1, json });
            while sorter.pop_settled().is_some() {}
        }
        assert!(sorter.bytes <= MAX_BYTES);
    }

    proptest::proptest! {
        #[test]
        fn lines_up_to_a_second_off_come_in_order(jitter in proptest::collection::vec(-SECOND..=SECOND, 0..100)) {
            let times: Vec<Nanos> = (100i64..).zip(&jitter).map(|(index, off)| index * SECOND / 10 + off).collect();
            let mut expected: Vec<(Nanos, u64)> = times.iter().copied().zip(0..).collect();
            expected.sort_unstable();
            proptest::prop_assert_eq!(sorted(&times), expected);
        }
    }
}
