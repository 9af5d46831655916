//! Books, trades and candles for the tests of this folder.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::book::{Depth, Level};
use crate::model::{Aggressor, Candle, Millis, Trade};
use crate::number::{Notional, Price, Quantity};

pub fn price(text: &str) -> Price {
    text.parse::<Price>().expect("a price")
}

pub fn quantity(text: &str) -> Quantity {
    text.parse::<Quantity>().expect("a quantity")
}

pub fn money(text: &str) -> Notional {
    text.parse::<Notional>().expect("money")
}

pub fn level(at: &(&str, &str)) -> Level {
    Level { price: price(at.0), quantity: quantity(at.1) }
}

/// A book of which everything is known.
pub fn depth(bids: &[(&str, &str)], asks: &[(&str, &str)]) -> Depth {
    Depth { bids: bids.iter().map(level).collect(), asks: asks.iter().map(level).collect() }
}

/// The same book, known only down and up to these prices.
pub fn known_to(mut depth: Depth, bid: Option<&str>, ask: Option<&str>) -> Depth {
    (depth.bids.reach, depth.asks.reach) = (bid.map(price), ask.map(price));
    depth
}

/// One trade with its own id.
pub fn trade(id: u64, time: Millis, at: &str, size: &str, aggressor: Aggressor) -> Trade {
    Trade { price: price(at), quantity: quantity(size), time, aggressor, first_id: id, last_id: id }
}

/// A minute's candle: open, high, low, close, and volume.
pub fn minute(index: i64, ohlc: [&str; 4], volume: &str) -> Candle {
    let [open, high, low, close] = ohlc.map(price);
    let volume = quantity(volume);
    let quote_volume = close.times(volume).expect("money");
    Candle {
        open_time: index * 60_000,
        close_time: index * 60_000 + 59_999,
        open,
        high,
        low,
        close,
        volume,
        quote_volume,
        trades: u64::from(!volume.is_zero()),
    }
}

/// Books that are not crossed, with at least one level a side.
pub fn books() -> impl Strategy<Value = Depth> {
    let side = || vec((0..5_000i64, 1..1_000_000_000_000i128), 1..60);
    (10_000..i64::from(u32::MAX), side(), side(), 1..500i64).prop_map(|(middle, bids, asks, gap)| {
        let level =
            |price, quantity| Level { price: Price::from_units(price), quantity: Quantity::from_units(quantity) };
        Depth {
            bids: bids.into_iter().map(|(down, q)| level(middle - down, q)).collect(),
            asks: asks.into_iter().map(|(up, q)| level(middle + gap + up, q)).collect(),
        }
    })
}

/// Trades in order of time and id, without gaps.
pub fn trades() -> impl Strategy<Value = Vec<Trade>> {
    let one = (0..90_000i64, 1..2_000i64, 1..1_000_000_000i128, any::<bool>(), 0..4u64);
    vec(one, 1..120).prop_map(|all| {
        let (mut time, mut id) = (0, 1);
        let made = all.into_iter().map(|(pause, price, quantity, bought, more)| {
            time += pause;
            let first_id = id;
            id += more + 1;
            Trade {
                price: Price::from_units(price * 1_000_000),
                quantity: Quantity::from_units(quantity),
                time,
                aggressor: if bought { Aggressor::Buyer } else { Aggressor::Seller },
                first_id,
                last_id: first_id + more,
            }
        });
        made.collect()
    })
}
