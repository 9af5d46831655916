//! Lines of one file in the order of their times, where a recorder that listens on several connections wrote them
//! slightly out of it. Lines of one stream keep the order in which they were sent, whatever their times say.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::lines::{Line, Place};
use crate::clock::Nanos;

/// Two lines that are each up to a second off can be two seconds from their order.
const WINDOW: Nanos = 2_000_000_000;
/// More is not held back, however many lines a file has for two seconds.
const MAX_LINES: usize = 100_000;
const MAX_BYTES: usize = 64 << 20;

/// Where a line says what it is: at its beginning.
const HEAD: usize = 256;
/// Streams whose order is kept.
const MAX_STREAMS: usize = 100_000;

/// A line and when its turn is.
#[derive(Debug)]
pub struct Ranked {
    pub turn: Nanos,
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
    streams: HashMap<u64, Sent>,
}

/// The last line of a stream.
#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u64,
    turn: Nanos,
}

impl Sorter {
    /// A line that is much too late keeps the place it has: its time says nothing about the lines around it.
    pub fn push(&mut self, line: Line) {
        let late = line.time < self.newest.saturating_sub(WINDOW);
        let turn = if late { self.newest } else { line.time };
        let turn = self.after_its_stream(&line.json, turn);
        self.newest = self.newest.max(turn);
        self.bytes += line.json.len();
        self.held.push(Reverse(Ranked { turn, line }));
    }

    /// A line that was sent after another of its stream has its turn after it.
    fn after_its_stream(&mut self, json: &str, turn: Nanos) -> Nanos {
        let Some((stream, number)) = stream_and_number(json) else {
            return turn;
        };
        if let Some(last) = self.streams.get_mut(&stream) {
            if number < last.number {
                return turn;
            }
            let turn = turn.max(last.turn);
            *last = Sent { number, turn };
            return turn;
        }
        if self.streams.len() < MAX_STREAMS {
            self.streams.insert(stream, Sent { number, turn });
        }
        turn
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

/// Which stream a line is of, and a number that does not decrease in it: the time of the event, else its update id.
fn stream_and_number(json: &str) -> Option<(u64, u64)> {
    let head = &json[..json.floor_char_boundary(HEAD)];
    let mut hasher = DefaultHasher::new();
    match text_field(head, "\"stream\"") {
        Some(stream) => stream.hash(&mut hasher),
        None => (text_field(head, "\"e\""), text_field(head, "\"s\"")?).hash(&mut hasher),
    }
    let number = ["\"E\"", "\"u\"", "\"lastUpdateId\""]
        .iter()
        .find_map(|field| number_field(head, field))?;
    Some((hasher.finish(), number))
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = head.split_once(name)?;
    rest.trim_start().strip_prefix(':').map(str::trim_start)
}

fn text_field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let (text, _) = field(head, name)?.strip_prefix('"')?.split_once('"')?;
    Some(text)
}

fn number_field(head: &str, name: &str) -> Option<u64> {
    let rest = field(head, name)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
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

    fn trade(number: u64) -> String {
        format!(r#"{{"stream": "btcusdt@trade", "data": {{"e": "trade", "E": {number}, "s": "BTCUSDT"}}}}"#)
    }

    fn order(lines: &[(Nanos, String)]) -> Vec<u64> {
        let mut sorter = Sorter::default();
        for (number, (time, json)) in (0..).zip(lines) {
            let (place, json) = (Place { file: 0, line: number }, json.clone());
            let time = *time;
            sorter.push(Line { place, time, json });
        }
        std::iter::from_fn(|| sorter.pop())
            .map(|ranked| ranked.line.place.line)
            .collect()
    }

    #[test]
    fn lines_of_a_stream_keep_their_order_and_others_go_by_time() {
        let other = |number: u64| format!(r#"{{"e":"depthUpdate","E":{number},"s":"BTCUSDT"}}"#);
        let clock_steps_back = [
            (50, trade(1)),
            (60, other(1)),
            (40, trade(2)),
            (45, other(2)),
            (70, trade(3)),
        ];
        assert_eq!(order(&clock_steps_back), [0, 2, 1, 3, 4]);
        let written_late = [(50, trade(5)), (40, trade(4)), (60, trade(6))];
        assert_eq!(order(&written_late), [1, 0, 2], "their numbers and their times agree");
    }

    #[test]
    fn what_a_line_is_of_is_at_its_beginning() {
        let of = |json: &str| stream_and_number(json).map(|(_, number)| number);
        assert_eq!(of(&trade(7)), Some(7));
        assert_eq!(of(r#"{"u":9,"s":"BTCUSDT","b":"1"}"#), Some(9));
        assert_eq!(of(r#"{"lastUpdateId":9,"bids":[]}"#), None, "a snapshot has no stream");
        assert_eq!(of(r#"{"stream":"a@depth5","data":{"lastUpdateId":9}}"#), Some(9));
        assert_eq!(of("{}"), None);
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
