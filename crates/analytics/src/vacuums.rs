//! Price ranges in which little was traded.

use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{Severity, Standing, Unavailable, quotient, rounded, twice_median};
use super::profile::{Covered, Histogram, ProfileBasis};
use tribune_binance::{Price, Quantity};

/// A row is low below this share of the median row, in percent.
const THRESHOLD_PCT: u32 = 10;
/// Fewer rows with volume have no meaningful median.
pub const MIN_POPULATED_ROWS: usize = 5;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Vacuum {
    pub from: Price,
    pub to: Price,
    pub rows: usize,
    pub volume_base: Quantity,
    /// 1 − its mean row over the median row: 1 is nothing at all.
    pub emptiness: Option<f64>,
    /// By emptiness: high from 0.99, medium from 0.95.
    pub severity: Severity,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Vacuums {
    #[serde(flatten)]
    pub covered: Covered,
    pub threshold_pct_of_median: u32,
    pub median_row_base: Quantity,
    pub row_width: Price,
    pub populated_rows: usize,
    /// Lowest price first.
    pub vacuums: Vec<Vacuum>,
    pub standing: Standing,
    pub note: &'static str,
}

/// Adjacent rows below the threshold, with rows above it on both sides. The median is that of the rows with volume.
pub fn vacuums(histogram: &Histogram) -> Result<Vacuums, Unavailable> {
    let populated: Vec<_> = histogram.rows.iter().copied().filter(|row| !row.is_zero()).collect();
    if populated.len() < MIN_POPULATED_ROWS {
        return Err(Unavailable::TooFew { what: "rows with volume", have: populated.len(), need: MIN_POPULATED_ROWS });
    }
    let count = populated.len();
    let twice_median = twice_median(populated).ok_or(Unavailable::TooLarge)?;
    let threshold = twice_median.checked_mul(i128::from(THRESHOLD_PCT)).ok_or(Unavailable::TooLarge)?;
    let is_low = |row: &Quantity| row.units().checked_mul(200).is_some_and(|scaled| scaled < threshold);
    // Low rows lie between two that are not.
    let high: Vec<usize> = (0..histogram.rows.len()).filter(|row| !is_low(&histogram.rows[*row])).collect();
    let low = high.windows(2).map(|pair| (pair[0] + 1, pair[1])).filter(|(start, end)| start < end);
    Ok(Vacuums {
        covered: histogram.covered,
        threshold_pct_of_median: THRESHOLD_PCT,
        median_row_base: Quantity::from_units(twice_median / 2),
        row_width: Price::from_units(histogram.width),
        populated_rows: count,
        vacuums: low
            .map(|(start, end)| vacuum(histogram, start, end, twice_median))
            .collect::<Option<_>>()
            .ok_or(Unavailable::TooLarge)?,
        standing: Standing::Descriptive,
        note: match histogram.covered.basis {
            ProfileBasis::Trades => "little was traded there in the past; nothing follows for the future",
            ProfileBasis::Candles => {
                "little was traded there in the past; candles spread their volume, so that small vacuums are hidden"
            }
        },
    })
}

fn vacuum(histogram: &Histogram, start: usize, end: usize, twice_median: i128) -> Option<Vacuum> {
    let rows = histogram.rows.get(start..end)?;
    let volume = rows.iter().try_fold(Quantity::ZERO, |sum, row| sum.checked_add(*row))?;
    let count = i128::try_from(rows.len()).ok()?;
    let full = quotient(volume.units().checked_mul(2)?, twice_median.checked_mul(count)?)?;
    let emptiness = rounded(rust_decimal::Decimal::ONE.checked_sub(full)?);
    Some(Vacuum {
        from: histogram.bound(start),
        to: histogram.bound(end),
        rows: rows.len(),
        volume_base: volume,
        emptiness,
        severity: Severity::by_size(emptiness.unwrap_or(0.0), 0.95, 0.99),
    })
}
