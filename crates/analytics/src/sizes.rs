//! The default trade sizes of a cost estimate.

use tribune_binance::{Notional, PLACES};

/// The number of sizes, each ten times the one before.
const SIZES: u32 = 4;
/// The largest size is about this part of a day's turnover, which few orders reach.
const PART_OF_DAY: i128 = 1_000;
/// Powers of ten of the largest size; a million if the day's turnover is unknown.
const USUAL_TOP: i32 = 6;
const TOPS: std::ops::RangeInclusive<i32> = -3..=12;

/// Dollar-like assets, whose sizes do not depend on the turnover.
const USUAL_MONEY: &[&str] = &["USDT", "USDC", "FDUSD", "TUSD", "USDP", "BUSD", "DAI", "USD1", "USD", "EUR", "EURI"];

/// Sizes in the quote asset, by the day's turnover: a thousand units are little of one asset and a fortune of another.
pub fn sizes(quote: &str, day: Option<Notional>) -> Vec<Notional> {
    let day = day.filter(|_| !USUAL_MONEY.contains(&quote));
    let places = 2 * PLACES as i32;
    let part = day.map(|day| day.units() / PART_OF_DAY).filter(|part| *part > 0);
    let top = part.map_or(USUAL_TOP, |part| part.ilog10() as i32 - places).clamp(*TOPS.start(), *TOPS.end());
    let size = |down: u32| {
        let power = u32::try_from(top + places - down as i32).unwrap_or(0);
        Notional::from_units(10i128.pow(power))
    };
    (0..SIZES).rev().map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::money;

    #[test]
    fn sizes_follow_the_day() {
        let of = |day: Option<&str>| -> Vec<String> {
            sizes("BTC", day.map(money)).iter().map(ToString::to_string).collect()
        };
        assert_eq!(of(Some("1500000000")), ["1000", "10000", "100000", "1000000"]);
        assert_eq!(of(None), ["1000", "10000", "100000", "1000000"]);
        // 1,200 of a dear asset a day: its thousandth is 1.2.
        assert_eq!(of(Some("1200")), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(of(Some("0.00000001")), ["0.000001", "0.00001", "0.0001", "0.001"]);
        assert_eq!(of(Some("0")), of(None));
        assert_eq!(sizes("USDT", Some(money("1200"))), sizes("USDT", None), "of dollars always the same");
        assert_eq!(
            sizes("BTC", Some(Notional::from_units(i128::MAX))).last().map(ToString::to_string).as_deref(),
            Some("1000000000000")
        );
    }
}
