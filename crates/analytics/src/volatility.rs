//! Volatility of candles.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{Standing, Unavailable, derived_price, rounded, significant};
use tribune_binance::{Candle, Interval, Millis, Price};

/// The market never closes, so a year has 365 days.
const YEAR_MS: f64 = 365.0 * 86_400_000.0;
pub const MIN_RETURNS: usize = 10;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RealisedVolatility {
    /// How far apart the prices are taken.
    pub sampling: &'static str,
    pub returns: usize,
    /// From the first close to the last.
    pub start_ms: Millis,
    pub end_ms: Millis,
    /// √Σr² of log returns over the whole time, in percent.
    pub realised_pct: Option<f64>,
    /// The same scaled to a year by the square root of time.
    pub annualised_pct: Option<f64>,
    pub annualisation: &'static str,
    /// Whether no candle was missing between the first and the last.
    pub complete: bool,
    pub standing: Standing,
}

/// From the closes of closed candles in order of time.
pub fn realised(candles: &[Candle], interval: Interval) -> Result<RealisedVolatility, Unavailable> {
    let returns = candles.len().saturating_sub(1);
    let (Some(first), Some(last), true) = (candles.first(), candles.last(), returns >= MIN_RETURNS) else {
        return Err(Unavailable::TooFew { what: "returns", have: returns, need: MIN_RETURNS });
    };
    if candles.iter().any(|candle| candle.close.units() <= 0) {
        return Err(Unavailable::BadPrice);
    }
    let log_return = |pair: &[Candle]| (pair[1].close.as_f64() / pair[0].close.as_f64()).ln();
    let variance: f64 = candles.windows(2).map(|pair| log_return(pair).powi(2)).sum();
    let elapsed = last.close_time.saturating_sub(first.close_time);
    let yearly = (elapsed > 0).then(|| variance * YEAR_MS / elapsed as f64);
    Ok(RealisedVolatility {
        sampling: interval.as_str(),
        returns,
        start_ms: first.close_time,
        end_ms: last.close_time,
        realised_pct: significant(variance.sqrt() * 100.0),
        annualised_pct: yearly.and_then(|variance| significant(variance.sqrt() * 100.0)),
        annualisation: "square root of 365 days over the time elapsed",
        complete: follow_one_another(candles),
        standing: Standing::Sound,
    })
}

/// Whether each candle begins where the one before ends.
pub fn follow_one_another(candles: &[Candle]) -> bool {
    let joined = |pair: &[Candle]| pair[0].close_time.checked_add(1) == Some(pair[1].open_time);
    candles.windows(2).all(joined)
}

/// The largest of high − low, |high − close before| and |low − close before|.
pub fn true_range(before: Price, candle: &Candle) -> Decimal {
    let high = candle.high.max(before).decimal();
    let low = candle.low.min(before).decimal();
    high - low
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Atr {
    pub period: usize,
    pub sampling: &'static str,
    /// A candle without the close before it has no true range: one fewer than candles.
    pub true_ranges: usize,
    pub atr: Decimal,
    /// In percent of the last close.
    pub atr_pct: Option<f64>,
    pub last_true_range: Decimal,
    pub complete: bool,
    pub standing: Standing,
    pub note: &'static str,
}

/// Wilder's average true range: the simple mean of the first `period` true ranges, from there on
/// (before·(period − 1) + true range)/period. Give closed candles in order of time.
pub fn atr(candles: &[Candle], interval: Interval, period: usize) -> Result<Atr, Unavailable> {
    if period == 0 {
        return Err(Unavailable::NothingAsked);
    }
    let ranges: Vec<Decimal> = candles.windows(2).map(|pair| true_range(pair[0].close, &pair[1])).collect();
    let (Some(last), Some(last_candle), true) = (ranges.last(), candles.last(), ranges.len() >= period) else {
        return Err(Unavailable::TooFew { what: "true ranges", have: ranges.len(), need: period });
    };
    let atr = wilder(&ranges, period).ok_or(Unavailable::TooLarge)?;
    let percent = atr.checked_div(last_candle.close.decimal());
    Ok(Atr {
        period,
        sampling: interval.as_str(),
        true_ranges: ranges.len(),
        atr: derived_price(atr),
        atr_pct: percent.and_then(|share| rounded(share.checked_mul(Decimal::ONE_HUNDRED)?)),
        last_true_range: last.normalize(),
        complete: follow_one_another(candles),
        standing: Standing::Sound,
        note: "wilder's smoothing, seeded with the simple mean of the first true ranges",
    })
}

fn wilder(ranges: &[Decimal], period: usize) -> Option<Decimal> {
    let count = Decimal::from(period);
    let (seed, rest) = ranges.split_at_checked(period)?;
    let sum = seed.iter().try_fold(Decimal::ZERO, |sum, range| sum.checked_add(*range))?;
    rest.iter().try_fold(sum.checked_div(count)?, |average, range| {
        let weighted = average.checked_mul(count.checked_sub(Decimal::ONE)?)?;
        weighted.checked_add(*range)?.checked_div(count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tribune_binance::Interval::M1;
    use tribune_binance::testing::minute;

    fn closes(closes: &[&str]) -> Vec<Candle> {
        let one = |(index, close): (usize, &&str)| minute(index as i64, [close, close, close, close], "1");
        closes.iter().enumerate().map(one).collect()
    }

    #[test]
    fn realised_volatility_matches_hand_computation() {
        // Ten returns of ±ln 1.01 = ±0.00995033: √(10 · 0.00995033²) = 0.0314657 → 3.14657 %.
        let up_and_down: Vec<_> = (0..11).map(|at| if at % 2 == 0 { "100" } else { "101" }).collect();
        let result = realised(&closes(&up_and_down), M1).expect("volatility");
        assert_eq!((result.returns, result.realised_pct), (10, Some(3.14657)));
        // Ten minutes: × √(525600/10) = × 229.2597 → 721.382 %.
        assert_eq!(result.annualised_pct, Some(721.382));
        assert!(result.complete);
        let few = realised(&closes(&["1", "2"]), M1);
        assert!(matches!(few, Err(Unavailable::TooFew { have: 1, .. })));
    }

    #[test]
    fn atr_matches_hand_computation() {
        let candles = [
            minute(0, ["10", "11", "9", "10"], "1"),
            minute(1, ["10", "12", "10", "11"], "1"), // 12 − 10 = 2
            minute(2, ["14", "15", "13", "14"], "1"), // from the close before: 15 − 11 = 4
            minute(3, ["13", "13", "8", "9"], "1"),   // from the close before: 14 − 8 = 6
        ];
        // Seed (2 + 4)/2 = 3; then (3·1 + 6)/2 = 4.5; 4.5/9 = 50 %.
        let result = atr(&candles, M1, 2).expect("atr");
        assert_eq!((result.atr, result.atr_pct, result.true_ranges), (Decimal::new(45, 1), Some(50.0), 3));
        assert!(atr(&candles, M1, 4).is_err() && atr(&candles, M1, 0).is_err());
        // Seed alone: (2 + 4 + 6)/3 = 4.
        assert_eq!(atr(&candles, M1, 3).map(|result| result.atr), Ok(Decimal::from(4)));
    }

    #[test]
    fn missing_candle_is_reported() {
        let mut candles = closes(&["5"; 13]);
        candles.remove(6);
        let result = realised(&candles, M1).expect("volatility");
        assert!(!result.complete);
        assert_eq!((result.returns, result.realised_pct), (11, Some(0.0)));
    }

    proptest! {
        #[test]
        fn atr_lies_between_the_smallest_and_the_largest_range(
            moves in proptest::collection::vec((1..10_000u32, 0..500u32, 0..500u32), 6..60),
        ) {
            let candles: Vec<_> = moves.iter().enumerate().map(|(index, (close, up, down))| {
                let (high, low) = (close + up, close.saturating_sub(*down).max(1));
                let [close, high, low] = [close, &high, &low].map(ToString::to_string);
                minute(index as i64, [&close, &high, &low, &close], "1")
            }).collect();
            let ranges: Vec<_> = candles.windows(2).map(|pair| true_range(pair[0].close, &pair[1])).collect();
            let result = atr(&candles, M1, 5).expect("atr").atr;
            prop_assert!(ranges.iter().min().is_some_and(|least| derived_price(*least) <= result));
            prop_assert!(ranges.iter().max().is_some_and(|most| result <= derived_price(*most)));
        }
    }
}
