//! Depth near the price, and its imbalance.

use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{self, Standing, Unavailable};
use super::quotes::Touch;
use tribune_binance::{Depth, Level, Notional, Order, Price, Quantity, Side};

/// Half widths of the bands in an answer, in basis points of the mid.
pub const BANDS_BPS: [u32; 4] = [10, 25, 50, 100];

/// Sizes of the best levels of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopImbalance {
    pub levels_asked: usize,
    pub bid_levels_used: usize,
    pub ask_levels_used: usize,
    pub bid_volume_base: Quantity,
    pub ask_volume_base: Quantity,
    /// (bid − ask)/(bid + ask), from −1 to 1.
    pub imbalance: Option<f64>,
    /// Bid volume over ask volume: above 1 where `imbalance` is above 0.
    pub bid_ask_ratio: Option<f64>,
    /// False if a level between these may be missing.
    pub complete: bool,
    pub standing: Standing,
    pub note: &'static str,
}

/// Over the best `levels` of each side, in the base asset.
pub fn top_imbalance(depth: &Depth, levels: usize) -> Result<TopImbalance, Unavailable> {
    Touch::of(depth)?;
    if levels == 0 {
        return Err(Unavailable::NothingAsked);
    }
    let bids = Top::of(&depth.bids, levels)?;
    let asks = Top::of(&depth.asks, levels)?;
    let (bid, ask) = (bids.volume.units(), asks.volume.units());
    Ok(TopImbalance {
        levels_asked: levels,
        bid_levels_used: bids.levels,
        ask_levels_used: asks.levels,
        bid_volume_base: bids.volume,
        ask_volume_base: asks.volume,
        imbalance: figure::imbalance(bid, ask),
        bid_ask_ratio: figure::ratio(bid, ask),
        complete: bids.complete && asks.complete,
        standing: Standing::Sound,
        note: "short-lived: resting orders come and go many times a second",
    })
}

struct Top {
    levels: usize,
    volume: Quantity,
    /// Whether no level between these may be missing.
    complete: bool,
}

impl Top {
    fn of<O: Order>(side: &Side<O>, most: usize) -> Result<Self, Unavailable> {
        let (mut levels, mut volume, mut worst) = (0, Quantity::ZERO, None);
        for level in side.iter().take(most) {
            levels += 1;
            volume = volume.checked_add(level.quantity).ok_or(Unavailable::TooLarge)?;
            worst = Some(level.price);
        }
        // Fewer levels than requested are complete only if the whole side is known.
        let complete = side.reach.is_none_or(|reach| {
            let is_within = worst.is_some_and(|worst| O::better(worst, reach).is_ge());
            levels == most && is_within
        });
        Ok(Self { levels, volume, complete })
    }
}

/// What rests within a distance of the mid, in the quote asset.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Band {
    /// Half its width: it goes this far above and below the mid.
    pub distance_bps: u32,
    pub bid_notional_quote: Notional,
    pub ask_notional_quote: Notional,
    pub bid_levels_used: usize,
    pub ask_levels_used: usize,
    /// False if levels inside may be missing: then the sums are lower bounds.
    pub complete: bool,
    pub bid_complete: bool,
    pub ask_complete: bool,
    /// (bid − ask)/(bid + ask) of the sums.
    pub imbalance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unavailable>,
    pub standing: Standing,
}

impl Band {
    /// Of the thinner side.
    pub fn smaller_side(&self) -> Notional {
        self.bid_notional_quote.min(self.ask_notional_quote)
    }
}

/// The bands of [`BANDS_BPS`], narrowest first.
pub fn bands(depth: &Depth) -> Result<Vec<Band>, Unavailable> {
    BANDS_BPS.iter().map(|&distance| band(depth, distance)).collect()
}

pub fn band(depth: &Depth, distance_bps: u32) -> Result<Band, Unavailable> {
    let (twice_mid, distance) = (Touch::of(depth)?.twice_mid(), i128::from(distance_bps));
    let (lower, upper) = (twice_mid * (10_000 - distance), twice_mid * (10_000 + distance));
    let (bid_quote, bid_levels) = sum(depth.bids.iter().take_while(|level| scaled(level.price) >= lower))?;
    let (ask_quote, ask_levels) = sum(depth.asks.iter().take_while(|level| scaled(level.price) <= upper))?;
    // Levels are known down to the reach, so the band is complete if it ends within it.
    let bid_complete = depth.bids.reach.is_none_or(|reach| scaled(reach) <= lower);
    let ask_complete = depth.asks.reach.is_none_or(|reach| scaled(reach) >= upper);
    let complete = bid_complete && ask_complete;
    let imbalance = if complete {
        figure::imbalance(bid_quote.units(), ask_quote.units()).ok_or(Unavailable::EmptyBand)
    } else {
        Err(Unavailable::BeyondReach)
    };
    Ok(Band {
        distance_bps,
        bid_notional_quote: bid_quote,
        ask_notional_quote: ask_quote,
        bid_levels_used: bid_levels,
        ask_levels_used: ask_levels,
        complete,
        bid_complete,
        ask_complete,
        imbalance: imbalance.as_ref().ok().copied(),
        reason: imbalance.err(),
        // A lower bound only describes what is known.
        standing: if complete { Standing::Sound } else { Standing::Descriptive },
    })
}

/// A price on the scale on which the bounds of a band are integers.
fn scaled(price: Price) -> i128 {
    i128::from(price.units()) * 20_000
}

/// What rests on these levels, and how many they are.
fn sum(levels: impl Iterator<Item = Level>) -> Result<(Notional, usize), Unavailable> {
    let (mut quote, mut count) = (Notional::ZERO, 0);
    for level in levels {
        let money = level.price.times(level.quantity).ok_or(Unavailable::TooLarge)?;
        quote = quote.checked_add(money).ok_or(Unavailable::TooLarge)?;
        count += 1;
    }
    Ok((quote, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tribune_binance::testing::{books, depth, known_to, money};

    fn book() -> Depth {
        depth(&[("99.95", "2"), ("99.80", "3"), ("99.00", "10")], &[("100.05", "1"), ("100.25", "4")])
    }

    #[test]
    fn imbalance_matches_hand_computation() {
        let two = top_imbalance(&book(), 2).expect("imbalance");
        // Bids 2 + 3 = 5, asks 1 + 4 = 5.
        assert_eq!((two.imbalance, two.bid_ask_ratio), (Some(0.0), Some(1.0)));
        let five = top_imbalance(&book(), 5).expect("imbalance");
        // Bids 15 of three levels, asks 5 of two: (15 − 5)/20 = 0.5, ratio 3.
        assert_eq!((five.imbalance, five.bid_ask_ratio), (Some(0.5), Some(3.0)));
        assert_eq!((five.bid_levels_used, five.ask_levels_used), (3, 2));
        assert!(five.complete);
        let partly = known_to(book(), Some("99.80"), None);
        assert!(top_imbalance(&partly, 2).expect("imbalance").complete);
        assert!(!top_imbalance(&partly, 3).expect("imbalance").complete);
        // All three bids are known, but a fourth may be there.
        let to_the_last = known_to(book(), Some("99"), None);
        assert!(top_imbalance(&to_the_last, 2).expect("imbalance").complete);
        assert!(!top_imbalance(&to_the_last, 4).expect("imbalance").complete);
        assert_eq!(top_imbalance(&book(), 0), Err(Unavailable::NothingAsked));
        assert_eq!(top_imbalance(&depth(&[], &[("1", "1")]), 5), Err(Unavailable::NoBids));
    }

    #[test]
    fn bands_match_hand_computation() {
        // Mid 100: ±10 bps is 99.90 to 100.10, ±25 is 99.75 to 100.25 (with its edge), ±100 is 99 to 101.
        let bands = bands(&book()).expect("bands");
        let result: Vec<_> = bands.iter().map(|band| (band.bid_notional_quote, band.ask_notional_quote)).collect();
        // 99.95·2 = 199.9; + 99.80·3 = 299.4 → 499.3; + 99·10 → 1489.3. 100.05; + 401 → 501.05.
        assert_eq!(result[0], (money("199.9"), money("100.05")));
        assert_eq!(result[1], (money("499.3"), money("501.05")));
        assert_eq!(result[2], result[1]);
        assert_eq!(result[3], (money("1489.3"), money("501.05")));
        // (499.3 − 501.05)/1000.35 = −0.0017493…
        assert_eq!(bands[1].imbalance, Some(-0.0017));
    }

    #[test]
    fn band_beyond_known_levels_is_a_lower_bound() {
        let partly = known_to(book(), None, Some("100.25"));
        let inside = band(&partly, 25).expect("band");
        assert!(inside.complete && inside.imbalance.is_some());
        // Down to 99.75, the edge itself.
        for (reach, complete) in [("99.75", true), ("99.76", false)] {
            let partly = known_to(book(), Some(reach), None);
            assert_eq!(band(&partly, 25).map(|band| band.bid_complete), Ok(complete));
        }
        let beyond = band(&partly, 26).expect("band");
        assert!(beyond.bid_complete && !beyond.ask_complete && !beyond.complete);
        assert_eq!((inside.standing, beyond.standing), (Standing::Sound, Standing::Descriptive));
        assert_eq!((beyond.imbalance, beyond.reason), (None, Some(Unavailable::BeyondReach)));
    }

    #[test]
    fn band_inside_the_spread_is_empty() {
        let band = band(&depth(&[("90", "1")], &[("110", "1")]), 10).expect("band");
        assert_eq!((band.imbalance, band.reason), (None, Some(Unavailable::EmptyBand)));
    }

    proptest! {
        #[test]
        fn bands_nest(book in books()) {
            let bands = bands(&book).expect("bands");
            for pair in bands.windows(2) {
                prop_assert!(pair[0].bid_notional_quote <= pair[1].bid_notional_quote && pair[0].ask_notional_quote <= pair[1].ask_notional_quote);
                prop_assert!(pair[0].bid_levels_used <= pair[1].bid_levels_used);
            }
            for imbalance in bands.iter().filter_map(|band| band.imbalance) {
                prop_assert!((-1.0..=1.0).contains(&imbalance));
            }
        }

        #[test]
        fn imbalance_lies_within_one(book in books(), levels in 1..80usize) {
            let top = top_imbalance(&book, levels).expect("imbalance");
            prop_assert!((-1.0..=1.0).contains(&top.imbalance.expect("imbalance")));
            prop_assert!(top.bid_levels_used <= levels && top.ask_levels_used <= levels);
        }
    }
}
