//! At which prices volume was traded.

mod histogram;

pub use histogram::{Covered, Histogram, MOST_GIVEN_ROWS, MOST_ROWS, ProfileBasis, RowWidth, counts};

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use crate::figure::{Standing, Unavailable};
use crate::flow::{share, vwap};
use tribune_binance::{Notional, Price, Quantity};

/// The smallest share of the value area.
const VALUE_AREA: (i128, i128) = (70, 100);

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfileRow {
    /// The row goes from here up to `low` plus the row width.
    pub low: Price,
    pub volume_base: Quantity,
    pub share: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VolumeProfile {
    #[serde(flatten)]
    pub covered: Covered,
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
    #[schemars(skip)]
    pub rows: usize,
    pub total_volume_base: Quantity,
    #[schemars(skip)]
    pub total_quote_volume: Notional,
    pub vwap: Option<Decimal>,
    pub trades: u64,
    /// Rows with volume, lowest first; answers list them as a table.
    #[serde(skip)]
    pub volume_by_row: Vec<ProfileRow>,
    pub standing: Standing,
    pub note: &'static str,
}

pub fn volume_profile(histogram: &Histogram) -> Result<VolumeProfile, Unavailable> {
    let poc = point_of_control(&histogram.rows).ok_or(Unavailable::NoTrades)?;
    let area = value_area(&histogram.rows, poc, histogram.total).ok_or(Unavailable::TooLarge)?;
    let (poc_low, poc_high) = (histogram.bound(poc), histogram.bound(poc + 1));
    let twice_poc = i128::from(poc_low.units()) + i128::from(poc_high.units());
    let total = histogram.total;
    let with_volume = histogram.rows.iter().enumerate().filter(|(_, volume)| !volume.is_zero());
    Ok(VolumeProfile {
        covered: histogram.covered,
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
        note: match histogram.covered.basis {
            ProfileBasis::Trades => "where volume was traded, not where it will be",
            ProfileBasis::Candles => "each candle's volume is spread evenly from its low to its high: an approximation",
        },
    })
}

/// The largest row; ties go to the row nearest to the centre, then to the upper one.
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

/// Grows from the point of control by the two rows above or below, whichever have more volume (above on a tie), until it
/// has 70% of the volume.
fn value_area(rows: &[Quantity], poc: usize, total: Quantity) -> Option<ValueArea> {
    let sum = |rows: &[Quantity]| rows.iter().try_fold(Quantity::ZERO, |sum, row| sum.checked_add(*row));
    let enough = total.units().checked_mul(VALUE_AREA.0)?;
    let mut area = ValueArea { lowest: poc, highest: poc, volume: *rows.get(poc)? };
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
mod tests;
