//! At which prices volume was traded.

use rust_decimal::Decimal;
use serde::Serialize;

use super::figure::{Standing, Unavailable, Window};
use super::flow::{share, trade_count, vwap};
use crate::model::{Candle, Trade};
use crate::number::{Notional, Price, Quantity};

/// Rows that a width of our choice makes at most.
pub const MOST_ROWS: usize = 100;
/// Rows that a given width may make.
pub const MOST_GIVEN_ROWS: usize = 1_000;
/// What the value area has at least.
const VALUE_AREA: (i128, i128) = (70, 100);

/// What a profile was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileBasis {
    Trades,
    Candles,
}

/// How wide the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowWidth {
    Given(Price),
    /// 1, 2 or 5 times a power of ten of the symbol's ticks, so that at most [`MOST_ROWS`] rows cover the range.
    FromTick(Price),
}

/// Volume in rows of one width, which lie on whole multiples of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    pub(super) width: i64,
    /// Row k goes from k·width up to (k + 1)·width.
    pub(super) first: i64,
    pub(super) rows: Vec<Quantity>,
    pub(super) total: Quantity,
    pub(super) quote: Notional,
    pub(super) trades: u64,
    pub(super) basis: ProfileBasis,
}

impl Histogram {
    /// Each trade in the row of its price: exact.
    pub fn of_trades(trades: &[Trade], width: RowWidth) -> Result<Self, Unavailable> {
        let prices = trades.iter().map(|trade| trade.price);
        let range = range(prices.clone(), prices).ok_or(Unavailable::NoTrades)?;
        let mut made = Self::empty(range, width, ProfileBasis::Trades)?;
        for trade in trades {
            made.add_trade(trade).ok_or(Unavailable::TooLarge)?;
        }
        made.or_empty()
    }

    /// Each candle's volume spread evenly from its low to its high: what happened within it is not known.
    pub fn of_candles(candles: &[Candle], width: RowWidth) -> Result<Self, Unavailable> {
        let candles = || candles.iter().filter(|candle| !candle.volume.is_zero());
        let range = range(candles().map(|c| c.low), candles().map(|c| c.high)).ok_or(Unavailable::NoTrades)?;
        let mut made = Self::empty(range, width, ProfileBasis::Candles)?;
        for candle in candles() {
            made.add_candle(candle).ok_or(Unavailable::TooLarge)?;
        }
        made.or_empty()
    }

    fn empty((low, high): (i64, i64), width: RowWidth, basis: ProfileBasis) -> Result<Self, Unavailable> {
        let (width, most) = match width {
            RowWidth::Given(width) => (width.units(), MOST_GIVEN_ROWS),
            RowWidth::FromTick(tick) => (nice_width(low, high, tick.units()), MOST_ROWS),
        };
        if width <= 0 {
            return Err(Unavailable::NothingAsked);
        }
        let first = low / width;
        let rows = usize::try_from(high / width - first).map_or(usize::MAX, |rows| rows.saturating_add(1));
        if rows > most {
            return Err(Unavailable::TooManyRows { most });
        }
        Ok(Self {
            width,
            first,
            rows: vec![Quantity::ZERO; rows],
            total: Quantity::ZERO,
            quote: Notional::ZERO,
            trades: 0,
            basis,
        })
    }

    fn or_empty(self) -> Result<Self, Unavailable> {
        if self.total.is_zero() {
            Err(Unavailable::NoTrades)
        } else {
            Ok(self)
        }
    }

    fn add_trade(&mut self, trade: &Trade) -> Option<()> {
        self.add(trade.price.units(), trade.quantity)?;
        self.quote = self.quote.checked_add(trade.price.times(trade.quantity)?)?;
        self.trades = self.trades.checked_add(trade_count(trade)?)?;
        Some(())
    }

    fn add(&mut self, price: i64, quantity: Quantity) -> Option<()> {
        let at = usize::try_from(price / self.width - self.first).ok()?;
        let row = self.rows.get_mut(at)?;
        *row = row.checked_add(quantity)?;
        self.total = self.total.checked_add(quantity)?;
        Some(())
    }

    /// Row by row the part of the range up to its end, less what was given before: nothing is lost to rounding.
    fn add_candle(&mut self, candle: &Candle) -> Option<()> {
        let (low, high) = (candle.low.units(), candle.high.units());
        let length = i128::from(high.checked_sub(low)?);
        let mut given = Quantity::ZERO;
        for row in low / self.width..=high / self.width {
            let end = (row + 1).checked_mul(self.width).unwrap_or(i64::MAX).min(high);
            let until = match length {
                0 => candle.volume,
                _ => Quantity::from_units(candle.volume.units().checked_mul(i128::from(end - low))? / length),
            };
            self.add(row * self.width, until.checked_sub(given)?)?;
            given = until;
        }
        self.quote = self.quote.checked_add(candle.quote_volume)?;
        self.trades = self.trades.checked_add(candle.trades)?;
        Some(())
    }

    pub(super) fn bound(&self, row: usize) -> Price {
        let index = self.first.saturating_add(i64::try_from(row).unwrap_or(i64::MAX));
        Price::from_units(index.saturating_mul(self.width))
    }
}

/// From the lowest low to the highest high; `None` if there are none, or a price is below zero.
fn range(lows: impl Iterator<Item = Price>, highs: impl Iterator<Item = Price>) -> Option<(i64, i64)> {
    let (low, high) = (lows.min()?.units(), highs.max()?.units());
    (0 <= low && low <= high).then_some((low, high))
}

fn nice_width(low: i64, high: i64, tick: i64) -> i64 {
    let tick = tick.max(1);
    let fits = |width: &i64| high / width - low / width < MOST_ROWS as i64;
    let steps = (0..19).flat_map(|power| [1, 2, 5].map(|first| (first, power)));
    let widths = steps.map(|(first, power)| tick.saturating_mul(first).saturating_mul(10i64.saturating_pow(power)));
    widths.into_iter().find(fits).unwrap_or(i64::MAX)
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileRow {
    /// The row goes from here up to `low` plus the row width.
    pub low: Price,
    pub volume_base: Quantity,
    pub share: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VolumeProfile {
    pub basis: ProfileBasis,
    #[serde(flatten)]
    pub window: Window,
    pub window_secs: f64,
    /// The share of the window for which there is data.
    pub coverage: Option<f64>,
    /// The middle of the row with the largest volume.
    pub poc: Decimal,
    pub poc_low: Price,
    pub poc_high: Price,
    /// The upper bound of the value area's highest row.
    pub vah: Price,
    /// The lower bound of its lowest row.
    pub val: Price,
    /// What the value area has of the volume: 0.7 or more.
    pub value_area_share: Option<f64>,
    pub row_width: Price,
    pub rows: usize,
    pub total_volume_base: Quantity,
    pub total_quote_volume: Notional,
    pub vwap: Option<Decimal>,
    pub trades: u64,
    /// Rows with volume, lowest first.
    pub volume_by_row: Vec<ProfileRow>,
    pub standing: Standing,
    pub note: &'static str,
}

/// `covered_ms`: of how much of the window there is data.
pub fn volume_profile(histogram: &Histogram, window: Window, covered_ms: i64) -> Result<VolumeProfile, Unavailable> {
    let poc = point_of_control(&histogram.rows).ok_or(Unavailable::NoTrades)?;
    let area = value_area(&histogram.rows, poc, histogram.total).ok_or(Unavailable::TooLarge)?;
    let (poc_low, poc_high) = (histogram.bound(poc), histogram.bound(poc + 1));
    let twice_poc = i128::from(poc_low.units()) + i128::from(poc_high.units());
    let covered = Quantity::from_units(i128::from(covered_ms.clamp(0, window.millis())));
    let total = histogram.total;
    let with_volume = histogram
        .rows
        .iter()
        .enumerate()
        .filter(|(_, volume)| !volume.is_zero());
    Ok(VolumeProfile {
        basis: histogram.basis,
        window,
        window_secs: window.seconds(),
        coverage: share(covered, Quantity::from_units(i128::from(window.millis()))),
        poc: Decimal::from_i128_with_scale(twice_poc * 5, 9).normalize(),
        poc_low,
        poc_high,
        vah: histogram.bound(area.highest + 1),
        val: histogram.bound(area.lowest),
        value_area_share: share(area.volume, total),
        row_width: Price::from_units(histogram.width),
        rows: histogram.rows.len(),
        total_volume_base: total,
        total_quote_volume: histogram.quote,
        vwap: vwap(histogram.quote, total),
        trades: histogram.trades,
        volume_by_row: with_volume
            .map(|(row, &volume)| ProfileRow {
                low: histogram.bound(row),
                volume_base: volume,
                share: share(volume, total),
            })
            .collect(),
        standing: Standing::Descriptive,
        note: match histogram.basis {
            ProfileBasis::Trades => "where volume was traded, not where it will be",
            ProfileBasis::Candles => "each candle's volume is spread evenly from its low to its high: an approximation",
        },
    })
}

/// The largest row; of equal ones the nearest to the centre of all rows, of equally near ones the upper.
fn point_of_control(rows: &[Quantity]) -> Option<usize> {
    // Twice the distance, so that the centre of an even number of rows is an integer.
    let from_centre = |row: usize| (2 * row + 1).abs_diff(rows.len());
    let order = |(row, volume): &(usize, &Quantity)| (**volume, std::cmp::Reverse(from_centre(*row)), *row);
    rows.iter().enumerate().max_by_key(order).map(|(row, _)| row)
}

struct ValueArea {
    lowest: usize,
    highest: usize,
    volume: Quantity,
}

/// Grows from the point of control: two rows above or two rows below, whichever have more, above if they have
/// the same, until it has 70% of the volume.
fn value_area(rows: &[Quantity], poc: usize, total: Quantity) -> Option<ValueArea> {
    let sum = |rows: &[Quantity]| rows.iter().try_fold(Quantity::ZERO, |sum, row| sum.checked_add(*row));
    let enough = total.units().checked_mul(VALUE_AREA.0)?;
    let mut area = ValueArea {
        lowest: poc,
        highest: poc,
        volume: *rows.get(poc)?,
    };
    while area.volume.units().checked_mul(VALUE_AREA.1)? < enough {
        let above = area.highest + 1..(area.highest + 3).min(rows.len());
        let below = area.lowest.saturating_sub(2)..area.lowest;
        let (more_above, more_below) = (sum(rows.get(above.clone())?)?, sum(rows.get(below.clone())?)?);
        if below.is_empty() || (!above.is_empty() && more_above >= more_below) {
            if above.is_empty() {
                break;
            }
            area.highest = above.end - 1;
            area.volume = area.volume.checked_add(more_above)?;
        } else {
            area.lowest = below.start;
            area.volume = area.volume.checked_add(more_below)?;
        }
    }
    Some(area)
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
