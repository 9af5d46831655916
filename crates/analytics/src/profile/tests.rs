use super::histogram::nice_width;
use super::*;
use crate::figure::Window;
use crate::vacuums::vacuums;
use proptest::prelude::*;
use tribune_binance::Aggressor::Buyer;
use tribune_binance::testing::{minute, price, quantity, trade, trades};

/// All that the fixtures have.
const EVER: Window = Window { start_ms: -1, end_ms: i64::MAX };

fn histogram(rows: &[i128]) -> Histogram {
    let rows: Vec<_> = rows.iter().map(|units| Quantity::from_units(*units)).collect();
    Histogram {
        width: 100_000_000,
        first: 100,
        total: Quantity::from_units(rows.iter().map(|row| row.units()).sum()),
        rows,
        quote: Notional::ZERO,
        trades: 0,
        covered: Covered {
            basis: ProfileBasis::Trades,
            window: Window::last(3600, 3_600_000),
            window_secs: 3600.0,
            coverage: Some(0.5),
        },
    }
}

fn profile(rows: &[i128]) -> VolumeProfile {
    volume_profile(&histogram(rows)).expect("profile")
}

#[test]
fn value_area_matches_hand_computation() {
    // Total 100, 70 wanted. POC is row 3 with 40. Above 15 + 5 = 20, below 12 + 10 = 22: below → 62, rows 1–3.
    // Above 20, below 8: above → 82, rows 1–5. Done.
    let result = profile(&[8, 10, 12, 40, 15, 5, 10]);
    assert_eq!((result.poc_low, result.poc_high), (price("103"), price("104")));
    assert_eq!(result.poc.to_string(), "103.5");
    assert_eq!((result.val, result.vah), (price("101"), price("106")));
    assert_eq!((result.value_area_share, result.covered.coverage), (Some(0.82), Some(0.5)));
}

#[test]
fn ties_are_broken_as_stated() {
    // Rows 0 and 3 are equal; the centre of five rows is row 2: row 3 is nearer.
    assert_eq!(profile(&[9, 1, 1, 9, 1]).poc_low, price("103"));
    // Rows 1 and 2 of four are equally near: the upper.
    assert_eq!(profile(&[1, 9, 9, 1]).poc_low, price("102"));
    // Equal above and below: upward. POC 4 of 10; 2 + 1 above, the same below: 7 of 10 is enough.
    let result = profile(&[1, 2, 4, 2, 1]);
    assert_eq!((result.val, result.vah), (price("102"), price("105")));
}

#[test]
fn width_follows_tick_and_range() {
    // From 100 to 101 with ticks of 0.01: 0.01 makes 101 rows, 0.02 makes 51.
    assert_eq!(nice_width(10_000_000_000, 10_100_000_000, 1_000_000), 2_000_000);
    assert_eq!(nice_width(5, 5, 1), 1);
    let coarse = [trade(1, 0, "100", "1", Buyer), trade(2, 0, "101", "1", Buyer)];
    let of = |width| Histogram::of_trades(&coarse, EVER, 0, width);
    let made = of(RowWidth::Given(price("0.3"))).expect("histogram");
    // Rows lie on multiples of the width: 100/0.3 = 333.3 → 333·0.3 = 99.9.
    assert_eq!(made.bound(0), price("99.9"));
    let too_fine = of(RowWidth::Given(price("0.0001")));
    assert!(matches!(too_fine, Err(Unavailable::TooManyRows { .. })));
    assert!(of(RowWidth::Given(price("0"))).is_err());
    let nothing = Histogram::of_trades(&[], EVER, 0, RowWidth::FromTick(price("1")));
    assert_eq!(nothing, Err(Unavailable::NoTrades));
}

#[test]
fn candle_volume_is_spread_evenly() {
    let candle = minute(0, ["101", "104", "100", "102"], "10");
    let made = Histogram::of_candles(&[candle], EVER, RowWidth::Given(price("2"))).expect("histogram");
    // 100 to 104 is 4 wide: 100–102 a half, 102–104 a half, and 104 itself nothing, so that it has no row.
    assert_eq!(made.rows, [quantity("5"), quantity("5")]);
    // Where all of a candle was traded at 104, that is a row.
    let at_once = minute(1, ["104"; 4], "3");
    let made = Histogram::of_candles(&[candle, at_once], EVER, RowWidth::Given(price("2"))).expect("histogram");
    assert_eq!(made.rows, [quantity("5"), quantity("5"), quantity("3")]);
}

#[test]
fn coverage_is_the_share_with_data() {
    // Minutes 0 to 5, minute 3 missing; the window is minutes 2 to 5: three of four, 6 of volume.
    let minutes: Vec<_> = [0, 1, 2, 4, 5].map(|at| minute(at, ["5"; 4], "2")).into();
    let window = Window { start_ms: 120_000, end_ms: 360_000 };
    let made = Histogram::of_candles(&minutes, window, RowWidth::FromTick(price("1"))).expect("histogram");
    assert_eq!((made.covered.coverage, made.total), (Some(0.75), quantity("6")));
    let all = [trade(1, 120_000, "5", "9", Buyer), trade(2, 300_000, "5", "2", Buyer)];
    let made = Histogram::of_trades(&all, window, 180_000, RowWidth::FromTick(price("1"))).expect("histogram");
    assert_eq!((made.covered.coverage, made.total), (Some(0.75), quantity("2")));
}

#[test]
fn vacuums_match_hand_computation() {
    // Populated rows 50, 60, 4, 1, 70, 40: median of 1 4 40 50 60 70 = 45; under 10% is under 4.5.
    // Rows 2 to 4 (4, 0, 1) are low and lie between populated ones; row 7 is low with nothing above it.
    let result = vacuums(&histogram(&[50, 60, 4, 0, 1, 70, 40, 0])).expect("vacuums");
    assert_eq!(result.vacuums.len(), 1);
    let vacuum = &result.vacuums[0];
    assert_eq!((vacuum.from, vacuum.to, vacuum.rows), (price("102"), price("105"), 3));
    // Mean 5/3 of a median of 45: 1 − 0.037037 = 0.962963.
    assert_eq!(vacuum.emptiness, Some(0.963));
    // At 10% of the median exactly a row is not under it.
    let edge = |low| vacuums(&histogram(&[40, 40, low, 40, 40, 40])).map(|result| result.vacuums.len());
    assert_eq!((edge(4), edge(3)), (Ok(0), Ok(1)));
}

proptest! {
    #[test]
    fn value_area_contains_poc_and_70_percent(trades in trades(), tick in 1..50_000_000i64) {
        let made = Histogram::of_trades(&trades, EVER, -1, RowWidth::FromTick(Price::from_units(tick))).expect("histogram");
        let result = volume_profile(&made).expect("profile");
        prop_assert!(result.val <= result.poc_low && result.poc_high <= result.vah);
        prop_assert!(result.value_area_share >= Some(0.7));
        prop_assert!(result.rows <= MOST_ROWS && result.row_width.units() % tick == 0);
        let sum: i128 = result.volume_by_row.iter().map(|row| row.volume_base.units()).sum();
        prop_assert_eq!(sum, trades.iter().map(|trade| trade.quantity.units()).sum::<i128>());
        prop_assert!(result.volume_by_row.iter().all(|row| row.low.units() % result.row_width.units() == 0));
    }

    #[test]
    fn no_volume_of_candles_is_lost(
        candles in proptest::collection::vec((0..5_000u32, 0..900u32, 1..1_000_000u32), 1..60), width in 1..100u32,
    ) {
        let candles: Vec<_> = candles.iter().enumerate().map(|(index, (low, up, volume))| {
            let [low, high, volume] = [*low, low + up, *volume].map(|number| number.to_string());
            minute(index as i64, [&low, &high, &low, &high], &volume)
        }).collect();
        let width = RowWidth::FromTick(price(&width.to_string()));
        let made = Histogram::of_candles(&candles, EVER, width).expect("histogram");
        let sum: i128 = made.rows.iter().map(|row| row.units()).sum();
        prop_assert_eq!(sum, candles.iter().map(|candle| candle.volume.units()).sum::<i128>());
        prop_assert_eq!(sum, made.total.units());
    }
}
