//! Price levels of an order book, and the id of its last update.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::number::{self, Price, Quantity};

/// Limits that clients ask for: a snapshot's side with exactly this many levels was cut off there.
const LIMITS: [usize; 8] = [5, 10, 20, 50, 100, 500, 1_000, 5_000];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    Bid,
    Ask,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::Bid, Self::Ask];

    pub const fn opposite(self) -> Self {
        match self {
            Self::Bid => Self::Ask,
            Self::Ask => Self::Bid,
        }
    }

    /// A price of this side as a number that grows from the best to the worst. The rank of a rank is the price.
    const fn rank(self, price: Price) -> Price {
        match self {
            Self::Bid => -price,
            Self::Ask => price,
        }
    }

    /// Whether a level of this side is at `limit` or better.
    pub const fn reaches(self, price: Price, limit: Price) -> bool {
        self.rank(price) <= self.rank(limit)
    }
}

pub type Level = (Price, Quantity);

/// `[["price","quantity"],…]`
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Level>, D::Error> {
    let level = |(price, quantity): (&str, &str)| {
        let level = number::parse_price(price).zip(number::parse(quantity));
        level.ok_or_else(|| serde::de::Error::custom(format_args!("[`{price}`, `{quantity}`] is not a level")))
    };
    let pairs: Vec<(&str, &str)> = Vec::deserialize(deserializer)?;
    pairs.into_iter().map(level).collect()
}

/// Price levels of both sides.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    /// By rank.
    sides: [BTreeMap<Price, Quantity>; 2],
    /// Where the snapshot was cut off, if it was: nothing is known of levels behind that.
    ends: [Option<Price>; 2],
    pub last_update_id: u64,
}

impl Levels {
    pub fn new(last_update_id: u64, bids: &[Level], asks: &[Level]) -> Self {
        let mut levels = Self { last_update_id, ..Self::default() };
        for (side, side_levels) in Side::BOTH.into_iter().zip([bids, asks]) {
            for (price, quantity) in side_levels {
                levels.set(side, *price, *quantity);
            }
        }
        levels
    }

    /// A recorded snapshot, which the `limit` of its request may have cut off.
    pub fn snapshot(last_update_id: u64, bids: &[Level], asks: &[Level]) -> Self {
        let mut levels = Self::new(last_update_id, bids, asks);
        levels.ends = Side::BOTH.map(|side| {
            let is_cut = LIMITS.contains(&levels.count(side));
            levels.worst(side).filter(|_| is_cut)
        });
        levels
    }

    /// Sets the quantity at a price; zero removes the level, if there is one.
    pub fn set(&mut self, side: Side, price: Price, quantity: Quantity) {
        let levels = &mut self.sides[side as usize];
        if quantity == 0 {
            levels.remove(&side.rank(price));
        } else {
            levels.insert(side.rank(price), quantity);
        }
    }

    pub fn quantity(&self, side: Side, price: Price) -> Quantity {
        self.sides[side as usize].get(&side.rank(price)).copied().unwrap_or(0)
    }

    pub fn count(&self, side: Side) -> usize {
        self.sides[side as usize].len()
    }

    /// The levels of a side, best first.
    pub fn side(&self, side: Side) -> impl Iterator<Item = Level> {
        let levels = self.sides[side as usize].iter();
        levels.map(move |(rank, quantity)| (side.rank(*rank), *quantity))
    }

    pub fn best(&self, side: Side) -> Option<Level> {
        self.side(side).next()
    }

    pub fn worst(&self, side: Side) -> Option<Price> {
        self.sides[side as usize].last_key_value().map(|(rank, _)| side.rank(*rank))
    }

    /// The best level of each side.
    pub fn top(&self) -> [Option<Level>; 2] {
        Side::BOTH.map(|side| self.best(side))
    }

    /// A side's best level, zero if it is empty; `None` if there may be an unknown better one.
    pub fn known_best(&self, side: Side) -> Option<Level> {
        let best = self.best(side);
        match self.ends[side as usize] {
            None => Some(best.unwrap_or_default()),
            Some(end) => best.filter(|(price, _)| side.reaches(*price, end)),
        }
    }

    /// How many levels of a side can be shown; `None` if too few are known. A cut side shows one of the limits again,
    /// by which clients recognise the cut.
    pub fn known_count(&self, side: Side, limit: usize) -> Option<usize> {
        let Some(end) = self.ends[side as usize] else {
            return Some(limit);
        };
        let known = self.side(side).take_while(|(price, _)| side.reaches(*price, end)).count();
        let cut = LIMITS.into_iter().rev().find(|cut| *cut <= known)?;
        Some(cut.min(limit))
    }

    /// The best `limit` levels of each side; no level between them is missing.
    pub fn truncated(&self, limit: usize) -> Self {
        let [bids, asks] = Side::BOTH.map(|side| self.side(side).take(limit).collect::<Vec<_>>());
        Self::new(self.last_update_id, &bids, &asks)
    }

    /// `{"lastUpdateId":…,"bids":…,"asks":…}` with so many levels, the shape of snapshots and of partial depth streams.
    pub fn json(&self, bids: usize, asks: usize) -> String {
        let mut text = String::with_capacity(64 + (bids.min(5_000) + asks.min(5_000)) * 32);
        text.push_str("{\"lastUpdateId\":");
        text.push_str(&self.last_update_id.to_string());
        text.push_str(",\"bids\":");
        push_levels(&mut text, self.side(Side::Bid).take(bids));
        text.push_str(",\"asks\":");
        push_levels(&mut text, self.side(Side::Ask).take(asks));
        text.push('}');
        text
    }
}

/// Appends `[["price","quantity"],…]`.
pub fn push_levels(text: &mut String, levels: impl Iterator<Item = Level>) {
    text.push('[');
    for (index, (price, quantity)) in levels.enumerate() {
        text.push_str(if index == 0 { "[\"" } else { ",[\"" });
        number::push(text, i128::from(price));
        text.push_str("\",\"");
        number::push(text, quantity);
        text.push_str("\"]");
    }
    text.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bids at 100, 99, …; asks at 101, 102, ….
    fn book(bids: i64, asks: i64) -> Levels {
        let bids: Vec<Level> = (0..bids).map(|index| (100 - index, 1)).collect();
        let asks: Vec<Level> = (0..asks).map(|index| (101 + index, 1)).collect();
        Levels::snapshot(1, &bids, &asks)
    }

    #[test]
    fn json_has_the_exchange_shape() {
        let bids = [(100_000_000, 200_000_000), (200_000_000, 1)];
        let levels = Levels::new(7, &bids, &[(300_000_000, 5), (400_000_000, 0)]);
        assert_eq!(
            levels.json(1, 1),
            r#"{"lastUpdateId":7,"bids":[["2.00000000","0.00000001"]],"asks":[["3.00000000","0.00000005"]]}"#
        );
    }

    #[test]
    fn round_number_of_levels_is_a_cut() {
        let levels = book(20, 19);
        assert_eq!(levels.ends, [Some(81), None]);
        assert_eq!(levels.known_count(Side::Bid, 5_000), Some(20));
        assert_eq!(levels.known_count(Side::Bid, 7), Some(7));
        assert_eq!(levels.known_count(Side::Ask, 5_000), Some(5_000));
    }

    #[test]
    fn cut_side_shrinks_to_the_next_limit() {
        let mut levels = book(10, 3);
        levels.set(Side::Bid, 50, 1);
        assert_eq!(levels.known_count(Side::Bid, 100), Some(10), "a level behind the end does not count");
        levels.set(Side::Bid, 100, 0);
        assert_eq!(levels.known_count(Side::Bid, 100), Some(5));
        (95..100).for_each(|price| levels.set(Side::Bid, price, 0));
        assert_eq!(levels.known_count(Side::Bid, 100), None, "four are left");
        assert_eq!(levels.known_best(Side::Bid), Some((94, 1)));
        (91..95).for_each(|price| levels.set(Side::Bid, price, 0));
        assert_eq!(levels.known_best(Side::Bid), None, "the best bid may be one that was never seen");
        assert_eq!(levels.known_best(Side::Ask), Some((101, 1)));
    }
}
