//! Volume in rows of prices.

use schemars::JsonSchema;
use serde::Serialize;

use crate::figure::{Unavailable, Window, ratio};
use crate::flow::trade_count;
use tribune_binance::{Candle, Millis, Notional, Price, Quantity, Trade};

/// The largest number of rows if we choose the width.
pub const MOST_ROWS: usize = 100;
/// The largest number of rows for a given width.
pub const MOST_GIVEN_ROWS: usize = 500;

/// The data that a profile is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileBasis {
    Trades,
    Candles,
}

/// What a profile is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Covered {
    pub basis: ProfileBasis,
    #[serde(flatten)]
    pub window: Window,
    pub window_secs: f64,
    /// The share of the window for which there is data.
    pub coverage: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowWidth {
    Given(Price),
    /// 1, 2 or 5 times a power of ten of the symbol's ticks, so that at most [`MOST_ROWS`] rows cover the range.
    FromTick(Price),
}

/// Volume in rows of one width, which lie on whole multiples of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    pub(crate) width: i64,
    /// Row k goes from k·width up to (k + 1)·width.
    pub(crate) first: i64,
    pub(crate) rows: Vec<Quantity>,
    pub(crate) total: Quantity,
    pub(crate) quote: Notional,
    pub(crate) trades: u64,
    pub(crate) covered: Covered,
}

/// A candle belongs to a window if it begins in it.
pub fn counts(candle: &Candle, window: &Window) -> bool {
    window.start_ms <= candle.open_time && candle.open_time < window.end_ms
}

impl Histogram {
    /// Each trade of the window counts in the row of its price: exact. Assumes all trades since `seen_from`.
    pub fn of_trades<'a>(
        trades: impl IntoIterator<Item = &'a Trade> + Clone,
        window: Window,
        seen_from: Millis,
        width: RowWidth,
    ) -> Result<Self, Unavailable> {
        let trades = || trades.clone().into_iter().filter(|trade| window.contains(trade.time));
        let range = range(trades().map(|trade| (trade.price, trade.price)))?;
        let mut made = Self::empty(range, window, width, ProfileBasis::Trades)?;
        for trade in trades() {
            made.add_trade(trade).ok_or(Unavailable::TooLarge)?;
        }
        made.or_empty(window.end_ms.saturating_sub(seen_from.max(window.start_ms)))
    }

    /// Spreads the volume of each candle that begins in the window evenly from its low to its high: an approximation.
    pub fn of_candles(candles: &[Candle], window: Window, width: RowWidth) -> Result<Self, Unavailable> {
        let candles = || candles.iter().filter(|candle| counts(candle, &window));
        if candles().any(|candle| candle.high < candle.low) {
            return Err(Unavailable::BadCandle);
        }
        let traded = || candles().filter(|candle| !candle.volume.is_zero());
        let range = range(traded().map(|candle| (candle.low, candle.high)))?;
        let mut made = Self::empty(range, window, width, ProfileBasis::Candles)?;
        for candle in traded() {
            made.add_candle(candle).ok_or(Unavailable::TooLarge)?;
        }
        let covered_ms = candles().fold(0, |covered: Millis, candle| {
            let end = candle.close_time.saturating_add(1).min(window.end_ms);
            covered.saturating_add(end.saturating_sub(candle.open_time).max(0))
        });
        made.or_empty(covered_ms)
    }

    fn empty(
        (low, high): (i64, i64),
        window: Window,
        width: RowWidth,
        basis: ProfileBasis,
    ) -> Result<Self, Unavailable> {
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
            covered: Covered { basis, window, window_secs: window.seconds(), coverage: None },
        })
    }

    /// Ends the count: there is data of so much of the window.
    fn or_empty(mut self, covered_ms: Millis) -> Result<Self, Unavailable> {
        let total = self.rows.iter().try_fold(Quantity::ZERO, |sum, row| sum.checked_add(*row));
        self.total = total.ok_or(Unavailable::TooLarge)?;
        if self.total.is_zero() {
            return Err(Unavailable::NoTrades);
        }
        // A high on the edge of a row opens a row without volume.
        while self.rows.last().is_some_and(|row| row.is_zero()) {
            self.rows.pop();
        }
        let window_ms = self.covered.window.millis();
        self.covered.coverage = ratio(covered_ms.clamp(0, window_ms).into(), window_ms.into());
        Ok(self)
    }

    /// Inlined, because it is called for each trade from other crates.
    #[inline]
    fn add_trade(&mut self, trade: &Trade) -> Option<()> {
        self.add(trade.price.units(), trade.quantity)?;
        self.quote = self.quote.checked_add(trade.price.times(trade.quantity)?)?;
        self.trades = self.trades.checked_add(trade_count(trade)?)?;
        Some(())
    }

    #[inline]
    fn add(&mut self, price: i64, quantity: Quantity) -> Option<()> {
        let at = usize::try_from(price / self.width - self.first).ok()?;
        let row = self.rows.get_mut(at)?;
        *row = row.checked_add(quantity)?;
        Some(())
    }

    /// Each row gets the cumulative share up to its end less the share before, so that nothing is lost to rounding.
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

    pub(crate) fn bound(&self, row: usize) -> Price {
        let index = self.first.saturating_add(i64::try_from(row).unwrap_or(i64::MAX));
        Price::from_units(index.saturating_mul(self.width))
    }
}

/// From the lowest low to the highest high.
fn range(prices: impl Iterator<Item = (Price, Price)>) -> Result<(i64, i64), Unavailable> {
    let widest = |a: (Price, Price), b: (Price, Price)| (a.0.min(b.0), a.1.max(b.1));
    match prices.reduce(widest).ok_or(Unavailable::NoTrades)? {
        (low, high) if low.units() >= 0 => Ok((low.units(), high.units())),
        _ => Err(Unavailable::BadPrice),
    }
}

pub(super) fn nice_width(low: i64, high: i64, tick: i64) -> i64 {
    let tick = tick.max(1);
    let fits = |width: &i64| high / width - low / width < MOST_ROWS as i64;
    let steps = (0..19).flat_map(|power| [1, 2, 5].map(|first| (first, power)));
    let widths = steps.map(|(first, power)| tick.saturating_mul(first).saturating_mul(10i64.saturating_pow(power)));
    widths.into_iter().find(fits).unwrap_or(i64::MAX)
}
