//! Candles from before the simulation, by a seeded walk that ends at the price at which it begins.

use super::catalogue::Listing;
use crate::interval::{MINUTE, Millis};
use crate::market::candles::Candle;
use crate::number::{Price, Quantity};

/// How much a price moves in a minute, as a share of it.
const MOVE_PER_MINUTE: f64 = 0.0006;

/// Minutes that traded, oldest first, up to but without `until`, and the id that the next trade has.
pub fn walk(listing: &Listing, seed: u64, until: Millis, minutes: usize) -> (Vec<Candle>, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let until = until - until.rem_euclid(MINUTE);
    let mut candles = Vec::new();
    // Backwards in time: each minute closes where the one after it opened.
    let mut close = listing.price;
    for back in 1..=minutes {
        let trades = trade_count(&mut random, listing.trades_per_minute);
        if trades == 0 {
            continue;
        }
        let candle = minute(listing, &mut random, until - back as Millis * MINUTE, close, trades);
        close = candle.open;
        candles.push(candle);
    }
    candles.reverse();
    let next_trade = number_trades(&mut candles);
    (candles, next_trade)
}

fn trade_count(random: &mut fastrand::Rng, mean: f64) -> u64 {
    if mean < 1.0 {
        u64::from(random.f64() < mean)
    } else {
        random.u64((mean * 0.5) as u64..=(mean * 1.5) as u64)
    }
}

fn minute(listing: &Listing, random: &mut fastrand::Rng, open_time: Millis, close: Price, trades: u64) -> Candle {
    let tick = listing.symbol.tick;
    let open = if trades == 1 {
        close
    } else {
        nudged(random, close, tick)
    };
    let (top, bottom) = (open.max(close), open.min(close));
    // With two trades there is no room for a high or a low beyond them.
    let (high, low) = if trades < 4 {
        (top, bottom)
    } else {
        (
            nudged(random, top, tick).max(top),
            nudged(random, bottom, tick).min(bottom),
        )
    };
    let step = listing.symbol.step;
    let each = (listing.typical_order * crate::number::UNIT / i128::from(close) / step).max(1);
    let steps = each * i128::from(trades) * i128::from(random.u32(50..150)) / 100;
    let volume: Quantity = steps.max(i128::from(trades)) * step;
    let bought: Quantity = volume / step * i128::from(random.u32(30..=70)) / 100 * step;
    // The average price lies within the candle, and is a price: the money is exact.
    let average = (low + high) / 2;
    let average = (average - average % tick).clamp(low, high);
    Candle {
        open_time,
        open,
        high,
        low,
        close,
        volume,
        quote_volume: i128::from(average) * volume,
        trades,
        buy_volume: bought,
        buy_quote_volume: i128::from(average) * bought,
        first_trade: 0,
        last_trade: 0,
    }
}

/// Another price nearby, on a tick and above nothing. Which tick is left to chance in proportion: always the lower
/// one would be a drift, the steeper the coarser the ticks.
fn nudged(random: &mut fastrand::Rng, price: Price, tick: Price) -> Price {
    let share = (random.f64() + random.f64() + random.f64() - 1.5) * MOVE_PER_MINUTE;
    let ticks = price as f64 * (1.0 + share) / tick as f64 + random.f64();
    (ticks as Price).max(1) * tick
}

fn number_trades(candles: &mut [Candle]) -> u64 {
    let mut next = 1;
    for candle in candles {
        candle.first_trade = next;
        candle.last_trade = next + candle.trades - 1;
        next = candle.last_trade + 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::catalogue;

    #[test]
    fn a_history_is_plausible_and_ends_at_the_price() {
        for listing in catalogue::well_known() {
            let (candles, next_trade) = walk(&listing, 5, 1_700_000_012_345, 1_000);
            let last = candles.last().expect("candles");
            assert_eq!(last.close, listing.price, "{}", listing.symbol.name);
            assert_eq!(next_trade, last.last_trade + 1);
            for (candle, next) in candles.iter().zip(&candles[1..]) {
                assert_eq!(candle.close, next.open);
                assert!(candle.low <= candle.open.min(candle.close) && candle.high >= candle.open.max(candle.close));
                assert!(candle.low > 0 && candle.volume >= candle.buy_volume && candle.buy_volume > 0);
                assert!(candle.low as i128 * candle.volume <= candle.quote_volume);
                assert!(candle.quote_volume <= candle.high as i128 * candle.volume);
            }
        }
    }

    #[test]
    fn no_symbol_drifts_far_in_a_day() {
        for listing in catalogue::well_known() {
            let (candles, _) = walk(&listing, 5, 1_700_000_000_000, 1_440);
            let ratio = candles[0].open as f64 / listing.price as f64;
            assert!((0.8..1.25).contains(&ratio), "{} {ratio}", listing.symbol.name);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_history() {
        let listing = &catalogue::well_known()[0];
        assert_eq!(
            walk(listing, 5, 1_700_000_000_000, 50),
            walk(listing, 5, 1_700_000_000_000, 50)
        );
        assert_ne!(
            walk(listing, 5, 1_700_000_000_000, 50),
            walk(listing, 6, 1_700_000_000_000, 50)
        );
    }
}
