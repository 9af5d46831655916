//! Price impact: how much trading moves the price.

use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{Standing, Unavailable, significant};
use tribune_binance::{Aggressor, Candle, Interval, Millis, Trade};

pub const MIN_SAMPLES: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Amihud {
    pub sampling: &'static str,
    /// Candles with a return and with volume.
    pub samples: usize,
    /// Candles without volume, which have no such figure.
    pub skipped_without_volume: usize,
    /// The mean of |return|/quote volume, in percent for each million of the quote asset.
    pub amihud_pct_per_million_quote: Option<f64>,
    pub standing: Standing,
}

/// Amihud's illiquidity of closed candles in order of time. Returns across a missing candle are left out.
pub fn amihud(candles: &[Candle], interval: Interval) -> Result<Amihud, Unavailable> {
    let (mut sum, mut samples, mut skipped) = (0.0, 0, 0);
    for pair in candles.windows(2) {
        let (before, candle) = (&pair[0], &pair[1]);
        if before.close.units() <= 0 {
            return Err(Unavailable::BadPrice);
        }
        if before.close_time.checked_add(1) != Some(candle.open_time) {
            continue;
        }
        let volume = candle.quote_volume.as_f64();
        if volume <= 0.0 {
            skipped += 1;
            continue;
        }
        sum += (candle.close.as_f64() / before.close.as_f64() - 1.0).abs() / volume;
        samples += 1;
    }
    if samples < MIN_SAMPLES {
        return Err(Unavailable::TooFew { what: "samples", have: samples, need: MIN_SAMPLES });
    }
    Ok(Amihud {
        sampling: interval.as_str(),
        samples,
        skipped_without_volume: skipped,
        amihud_pct_per_million_quote: significant(sum / samples as f64 * 100.0 * 1e6),
        standing: Standing::Sound,
    })
}

/// One interval: the change of the mid, and bought less sold volume.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImpactSample {
    pub mid_change: f64,
    pub signed_volume_base: f64,
}

/// Intervals between consecutive mids, from trades in order of time. A trade at the time of a mid belongs to the interval
/// that ends there.
pub fn impact_samples<'a>(mids: &[(Millis, f64)], trades: impl IntoIterator<Item = &'a Trade>) -> Vec<ImpactSample> {
    let mut trades = trades.into_iter().peekable();
    let mut signed_until = |end: Millis| {
        let mut sum = 0.0;
        while let Some(trade) = trades.next_if(|trade| trade.time <= end) {
            sum += match trade.aggressor {
                Aggressor::Buyer => trade.quantity.as_f64(),
                Aggressor::Seller => -trade.quantity.as_f64(),
            };
        }
        sum
    };
    if let Some((start, _)) = mids.first() {
        signed_until(*start);
    }
    let stretches = mids
        .windows(2)
        .map(|pair| ImpactSample { mid_change: pair[1].1 - pair[0].1, signed_volume_base: signed_until(pair[1].0) });
    stretches.collect()
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KyleLambda {
    pub samples: usize,
    /// How much the mid moved, in the quote asset, for each unit of the base asset bought more than sold.
    pub lambda_quote_per_base: Option<f64>,
    /// The share of the mid's changes that the line explains.
    pub r_squared: Option<f64>,
    pub standing: Standing,
    pub note: &'static str,
}

/// The slope of Δmid on signed volume, by least squares with an intercept.
pub fn kyle_lambda(samples: &[ImpactSample]) -> Result<KyleLambda, Unavailable> {
    if samples.len() < MIN_SAMPLES {
        return Err(Unavailable::TooFew { what: "samples", have: samples.len(), need: MIN_SAMPLES });
    }
    let count = samples.len() as f64;
    let mean = |of: fn(&ImpactSample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let mean_volume = mean(|sample| sample.signed_volume_base);
    let mean_change = mean(|sample| sample.mid_change);
    let (mut volumes, mut changes, mut both) = (0.0, 0.0, 0.0);
    for sample in samples {
        let volume = sample.signed_volume_base - mean_volume;
        let change = sample.mid_change - mean_change;
        volumes += volume * volume;
        changes += change * change;
        both += volume * change;
    }
    if volumes <= 0.0 || changes <= 0.0 {
        return Err(Unavailable::NoVariation);
    }
    Ok(KyleLambda {
        samples: samples.len(),
        lambda_quote_per_base: significant(both / volumes),
        r_squared: significant((both * both / (volumes * changes)).min(1.0)),
        standing: Standing::Sound,
        note: "an average over the samples; a low r_squared means the line says little",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tribune_binance::Interval::M1;
    use tribune_binance::testing::{minute, trade};

    #[test]
    fn amihud_matches_hand_computation() {
        // Closes alternate 100, 101 with volume 1: up 0.01/101, down (1/101)/100: both 1/10100 = 0.0000990099.
        // In percent for each million: × 10⁸ = 9900.99.
        let candles: Vec<_> = (0..21).map(|at| minute(at, [if at % 2 == 0 { "100" } else { "101" }; 4], "1")).collect();
        let result = amihud(&candles, M1).expect("amihud");
        assert_eq!((result.samples, result.amihud_pct_per_million_quote), (20, Some(9900.99)));
        assert!(amihud(&candles[..20], M1).is_err());
    }

    #[test]
    fn candles_without_volume_are_not_infinitely_illiquid() {
        let mut candles: Vec<_> = (0..22).map(|at| minute(at, ["100"; 4], "1")).collect();
        candles[5] = minute(5, ["100"; 4], "0");
        let result = amihud(&candles, M1).expect("amihud");
        assert_eq!((result.samples, result.skipped_without_volume), (20, 1));
        assert_eq!(result.amihud_pct_per_million_quote, Some(0.0));
    }

    #[test]
    fn return_across_missing_candle_is_left_out() {
        // 100 before the hole, 200 after it: neither side moved.
        let before = (0..15).map(|at| minute(at, ["100"; 4], "1"));
        let after = (20..35).map(|at| minute(at, ["200"; 4], "1"));
        let result = amihud(&before.chain(after).collect::<Vec<_>>(), M1).expect("amihud");
        assert_eq!((result.samples, result.amihud_pct_per_million_quote), (28, Some(0.0)));
    }

    #[test]
    fn samples_end_at_the_mids() {
        let trades = [
            trade(1, 10, "1", "9", Aggressor::Buyer), // at the first mid: before all stretches
            trade(2, 20, "1", "5", Aggressor::Buyer),
            trade(3, 21, "1", "2", Aggressor::Seller),
        ];
        let samples = impact_samples(&[(10, 1.0), (20, 1.5), (30, 1.25)], &trades);
        let result: Vec<_> = samples.iter().map(|s| (s.mid_change, s.signed_volume_base)).collect();
        assert_eq!(result, [(0.5, 5.0), (-0.25, -2.0)]);
    }

    #[test]
    fn unchanged_price_has_no_slope() {
        let still = [ImpactSample { mid_change: 0.0, signed_volume_base: 1.0 }; 30];
        assert_eq!(kyle_lambda(&still), Err(Unavailable::NoVariation));
        assert!(kyle_lambda(&still[..5]).is_err());
    }

    proptest! {
        #[test]
        fn exact_line_is_recovered(slope in 0.001..10.0f64, start in -1.0..1.0f64) {
            let samples: Vec<_> = (0..40).map(|at| {
                let volume = f64::from(at % 7) - 3.0;
                ImpactSample { mid_change: start + slope * volume, signed_volume_base: volume }
            }).collect();
            let result = kyle_lambda(&samples).expect("lambda");
            let found = result.lambda_quote_per_base.expect("slope");
            prop_assert!((found / slope - 1.0).abs() < 1e-5);
            prop_assert_eq!(result.r_squared, Some(1.0));
        }
    }
}
