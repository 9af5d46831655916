//! Depth messages like those of the exchange's combined streams: about 1.5 KB, most changes near the best prices, a best
//! price that moves every few messages, and as many removals as new levels.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fastrand::Rng;
use tribune_binance::{Level, Price, Quantity, Snapshot};

/// In hundredths of the quote asset.
type Ticks = i64;
/// In 10⁻⁵ of the base asset; 0 removes.
type Amount = u64;

/// 97,123.45.
const FIRST_BID: Ticks = 9_712_345;
/// The best price stays this near to the first one, so that a snapshot's levels never run out.
const FARTHEST: Ticks = 60;
const LONGEST_MOVE: Ticks = 5;
/// A thousand levels of a busy symbol reach some 33 basis points: one tick in three has orders.
const LONGEST_GAP: Ticks = 5;
/// Update ids that one message covers.
pub const IDS: u64 = 40;
/// Of the first message of every book.
const FIRST_TIME: i64 = 1_760_000_000_000;

/// The prices with orders. Bids are at or below the best bid, asks above it.
#[derive(Clone)]
pub struct Book {
    best_bid: Ticks,
    bids: BTreeSet<Ticks>,
    asks: BTreeSet<Ticks>,
}

/// What one message changes.
pub struct Change {
    pub best_bid: Ticks,
    bids: BTreeMap<Ticks, Amount>,
    asks: BTreeMap<Ticks, Amount>,
}

/// A seeded book and its changes.
pub struct Flow {
    random: Rng,
    levels: usize,
    pub book: Book,
}

impl Flow {
    /// With about this many levels a side.
    pub fn new(levels: usize, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut side = |best: Ticks, outwards: Ticks| {
            let mut price = best;
            let mut next = || {
                let taken = price;
                price += outwards * random.i64(1..=LONGEST_GAP);
                taken
            };
            (0..levels).map(|_| next()).collect()
        };
        let book = Book { best_bid: FIRST_BID, bids: side(FIRST_BID, -1), asks: side(FIRST_BID + 1, 1) };
        Self { random, levels, book }
    }

    pub fn next(&mut self) -> Change {
        let to = if self.random.u8(0..10) < 6 {
            self.book.best_bid
        } else {
            let wanted = self.book.best_bid + self.random.i64(-LONGEST_MOVE..=LONGEST_MOVE);
            wanted.clamp(FIRST_BID - FARTHEST, FIRST_BID + FARTHEST)
        };
        self.change_to(to)
    }

    /// This many changes, and a few that return to the first best price, so that the cycle can repeat.
    pub fn cycle(&mut self, length: usize) -> Vec<Change> {
        let home = self.book.best_bid;
        let mut changes: Vec<Change> = (0..length).map(|_| self.next()).collect();
        while self.book.best_bid != home {
            let way = (home - self.book.best_bid).clamp(-LONGEST_MOVE, LONGEST_MOVE);
            changes.push(self.change_to(self.book.best_bid + way));
        }
        changes
    }

    fn change_to(&mut self, best_bid: Ticks) -> Change {
        let mut change = Change { best_bid, bids: self.changes(best_bid, -1), asks: self.changes(best_bid + 1, 1) };
        // All levels between the old and the new best price are updated, so that no following book can cross.
        for passed in self.book.best_bid + 1..=best_bid {
            change.asks.insert(passed, 0);
        }
        for passed in best_bid + 1..=self.book.best_bid {
            change.bids.insert(passed, 0);
        }
        change.bids.insert(best_bid, self.amount());
        change.asks.insert(best_bid + 1, self.amount());
        self.book.apply(&change);
        change
    }

    fn changes(&mut self, best: Ticks, outwards: Ticks) -> BTreeMap<Ticks, Amount> {
        let wanted = self.random.usize(18..=28);
        let mut changes = BTreeMap::new();
        while changes.len() < wanted {
            let price = best + outwards * self.distance();
            let held = if outwards < 0 { &self.book.bids } else { &self.book.asks };
            let grown = held.len() > self.levels;
            let removed = match held.contains(&price) {
                true => self.random.u8(0..10) < if grown { 6 } else { 4 },
                // Levels added and removed within one message are included.
                false => grown || self.random.u8(0..10) < 2,
            };
            changes.insert(price, if removed { 0 } else { self.amount() });
        }
        changes
    }

    /// Distance from the best price: half of the changes within 20 ticks, most others within 200.
    fn distance(&mut self) -> Ticks {
        let whole = self.levels as Ticks * (LONGEST_GAP + 1) / 2;
        match self.random.u8(0..20) {
            0..11 => self.random.i64(0..20),
            11..18 => self.random.i64(0..200),
            _ => self.random.i64(0..whole),
        }
    }

    fn amount(&mut self) -> Amount {
        let size = self.random.u32(0..6);
        self.random.u64(1..10 * 10u64.pow(size))
    }
}

impl Book {
    fn apply(&mut self, change: &Change) {
        self.best_bid = change.best_bid;
        for (side, changes) in [(&mut self.bids, &change.bids), (&mut self.asks, &change.asks)] {
            for (price, amount) in changes {
                match amount {
                    0 => side.remove(price),
                    _ => side.insert(*price),
                };
            }
        }
    }

    /// The same book with its best bid at this price, without levels that would cross.
    pub fn with_best(&self, best_bid: Ticks) -> Self {
        let mut book = self.clone();
        book.best_bid = best_bid;
        book.bids.retain(|price| *price < best_bid);
        book.asks.retain(|price| *price > best_bid + 1);
        book.bids.insert(best_bid);
        book.asks.insert(best_bid + 1);
        book
    }

    fn best_first(&self, limit: usize) -> (Vec<Ticks>, Vec<Ticks>) {
        let bids = self.bids.iter().rev().take(limit).copied().collect();
        (bids, self.asks.iter().take(limit).copied().collect())
    }

    pub fn snapshot(&self, last_update_id: u64, limit: usize) -> Snapshot {
        let levels = |side: Vec<Ticks>| {
            let level = |price: Ticks| Level {
                price: Price::from_units(price * 1_000_000),
                quantity: Quantity::from_units(i128::from(resting(price)) * 1_000),
            };
            side.into_iter().map(level).collect()
        };
        let (bids, asks) = self.best_first(limit);
        Snapshot { last_update_id, bids: levels(bids), asks: levels(asks), limit }
    }

    /// The answer of `/api/v3/depth`.
    pub fn snapshot_json(&self, last_update_id: u64, limit: usize) -> String {
        let (bids, asks) = self.best_first(limit);
        let levels = |side: Vec<Ticks>| levels(side.into_iter().map(|price| (price, resting(price))));
        format!(r#"{{"lastUpdateId":{last_update_id},"bids":{},"asks":{}}}"#, levels(bids), levels(asks))
    }
}

/// What rests at a price of a snapshot.
const fn resting(price: Ticks) -> Amount {
    1 + (price as u64).wrapping_mul(2_654_435_761) % 9_999_999
}

impl Change {
    /// The part of the message that does not depend on symbol, time and ids.
    pub fn levels(&self) -> String {
        let side = |side: &BTreeMap<Ticks, Amount>| levels(side.iter().map(|(price, amount)| (*price, *amount)));
        format!(r#""b":{},"a":{}"#, side(&self.bids), side(&self.asks))
    }
}

fn levels(side: impl Iterator<Item = (Ticks, Amount)>) -> String {
    let mut text = String::from("[");
    for (price, amount) in side {
        if text.len() > 1 {
            text.push(',');
        }
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            r#"["{}.{:02}000000","{}.{:05}000"]"#,
            price / 100,
            price % 100,
            amount / 100_000,
            amount % 100_000
        );
    }
    text.push(']');
    text
}

/// Message `number` of a symbol, counted from 0; it covers the ids after those of the message before.
pub fn message(symbol: &str, number: u64, levels: &str) -> String {
    format!(
        r#"{{"stream":"{}@depth@100ms","data":{{"e":"depthUpdate","E":{},"s":"{symbol}","U":{},"u":{},{levels}}}}}"#,
        symbol.to_ascii_lowercase(),
        FIRST_TIME + number as i64 * 100,
        number * IDS + 1,
        (number + 1) * IDS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::feed::event::{Event, decode};
    use tribune_binance::{LocalBook, Outcome};

    /// Applies the changes in turn and gives the bytes and levels of all messages.
    fn follow(book: &mut LocalBook, changes: &[Change], first: u64) -> (usize, usize) {
        let (mut bytes, mut levels) = (0, 0);
        for (number, change) in (first..).zip(changes) {
            let text = message("BTCUSDT", number, &change.levels());
            let Ok(Event::Depth { symbol, diff }) = decode(&text) else { panic!("{text}") };
            assert_eq!(symbol, "BTCUSDT");
            assert_eq!((diff.first_id, diff.last_id), (number * IDS + 1, (number + 1) * IDS));
            bytes += text.len();
            levels += diff.bids.len() + diff.asks.len();
            assert_eq!(book.event(diff), Ok(Outcome::Applied), "message {number}");
            let best = (book.depth().bids.best(), book.depth().asks.best());
            let best = [best.0, best.1].map(|level| level.expect("a level").price.units() / 1_000_000);
            assert_eq!(best, [change.best_bid, change.best_bid + 1]);
        }
        (bytes, levels)
    }

    #[test]
    fn messages_have_the_real_shape_and_are_the_book_they_come_from() {
        for size in [1_000, 5_000] {
            let mut flow = Flow::new(size, 7);
            let mut book = LocalBook::new(10_000);
            book.snapshot(flow.book.snapshot(0, size)).expect("a snapshot");
            let changes: Vec<Change> = (0..3_000).map(|_| flow.next()).collect();
            let (bytes, levels) = follow(&mut book, &changes, 0);
            assert!((1_300..1_800).contains(&(bytes / changes.len())), "{bytes} bytes");
            assert!((40..60).contains(&(levels / changes.len())), "{levels} levels");
            let prices: Vec<Ticks> = book.depth().asks.iter().map(|level| level.price.units() / 1_000_000).collect();
            assert!(prices.iter().eq(&flow.book.asks));
            assert!((size * 9 / 10..size * 11 / 10).contains(&prices.len()), "{}", prices.len());
            assert!((size * 9 / 10..size * 11 / 10).contains(&book.depth().bids.len()));
        }
    }

    #[test]
    fn a_cycle_can_be_followed_for_ever_from_any_of_its_messages() {
        let mut flow = Flow::new(1_200, 3);
        let first = flow.book.clone();
        let changes = flow.cycle(200);
        for joined in [0usize, 77, 150] {
            let best = joined.checked_sub(1).map_or(first.best_bid, |before| changes[before].best_bid);
            let mut book = LocalBook::new(6_000);
            let snapshot = first.with_best(best).snapshot(joined as u64 * IDS, 1_000);
            assert_eq!((snapshot.bids.len(), snapshot.asks.len()), (1_000, 1_000));
            book.snapshot(snapshot).expect("a snapshot");
            follow(&mut book, &changes[joined..], joined as u64);
            follow(&mut book, &changes, changes.len() as u64);
            follow(&mut book, &changes, 2 * changes.len() as u64);
        }
    }
}
