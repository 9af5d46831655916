//! Volume in rows of prices.

use serde::Serialize;

use crate::analytics::figure::{Unavailable, Window, quotient, rounded};
use crate::analytics::flow::trade_count;
use crate::model::{Candle, Millis, Trade};
use crate::number::{Notional, Price, Quantity};

/// Rows that a width of our choice makes at most.
pub const MOST_ROWS: usize = 100;
/// Rows that a given width may make.
pub const MOST_GIVEN_ROWS: usize = 500;

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
    pub(in crate::analytics) width: i64,
    /// Row k goes from k·width up to (k + 1)·width.
    pub(in crate::analytics) first: i64,
    pub(in crate::analytics) rows: Vec<Quantity>,
    pub(in crate::analytics) total: Quantity,
    pub(in crate::analytics) quote: Notional,
    pub(in crate::analytics) trades: u64,
    pub(in crate::analytics) basis: ProfileBasis,
    pub(in crate::analytics) window: Window,
    /// Of how much of the window there is data.
    pub(in crate::analytics) covered_ms: Millis,
}

/// Whether a candle belongs to a window: it begins in it.
pub fn counts(candle: &Candle, window: &Window) -> bool {
    window.start_ms <= candle.open_time && candle.open_time < window.end_ms
}

impl Histogram {
    /// Each trade of the window in the row of its price: exact. All since `seen_from` are taken to be there.
    pub fn of_trades<'a>(
        trades: impl IntoIterator<Item = &'a Trade> + Clone,
        window: Window,
        seen_from: Millis,
        width: RowWidth,
    ) -> Result<Self, Unavailable> {
        let trades = || trades.clone().into_iter().filter(|trade| window.contains(trade.time));
        let prices = || trades().map(|trade| trade.price);
        let range = range(prices(), prices())?;
        let mut made = Self::empty(range, window, width, ProfileBasis::Trades)?;
        for trade in trades() {
            made.add_trade(trade).ok_or(Unavailable::TooLarge)?;
        }
        made.covered_ms = window.end_ms.saturating_sub(seen_from.max(window.start_ms));
        made.or_empty()
    }

    /// The candles that begin in the window, each one's volume spread evenly from its low to its high: what
    /// happened within it is not known.
    pub fn of_candles(candles: &[Candle], window: Window, width: RowWidth) -> Result<Self, Unavailable> {
        let candles = || candles.iter().filter(|candle| counts(candle, &window));
        if candles().any(|candle| candle.high < candle.low) {
            return Err(Unavailable::BadCandle);
        }
        let traded = || candles().filter(|candle| !candle.volume.is_zero());
        let range = range(traded().map(|candle| candle.low), traded().map(|candle| candle.high))?;
        let mut made = Self::empty(range, window, width, ProfileBasis::Candles)?;
        for candle in traded() {
            made.add_candle(candle).ok_or(Unavailable::TooLarge)?;
        }
        for candle in candles() {
            let end = candle.close_time.saturating_add(1).min(window.end_ms);
            let length = end.saturating_sub(candle.open_time).max(0);
            made.covered_ms = made.covered_ms.saturating_add(length);
        }
        made.or_empty()
    }

    /// The share of the window for which there is data.
    pub(in crate::analytics) fn coverage(&self) -> Option<f64> {
        let window = self.window.millis();
        let covered = self.covered_ms.clamp(0, window);
        quotient(i128::from(covered), i128::from(window)).and_then(rounded)
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
            basis,
            window,
            covered_ms: 0,
        })
    }

    fn or_empty(mut self) -> Result<Self, Unavailable> {
        if self.total.is_zero() {
            return Err(Unavailable::NoTrades);
        }
        // A high on the edge of a row opens a row that nothing was spread into.
        while self.rows.last().is_some_and(|row| row.is_zero()) {
            self.rows.pop();
        }
        Ok(self)
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

    pub(in crate::analytics) fn bound(&self, row: usize) -> Price {
        let index = self.first.saturating_add(i64::try_from(row).unwrap_or(i64::MAX));
        Price::from_units(index.saturating_mul(self.width))
    }
}

/// From the lowest low to the highest high.
fn range(lows: impl Iterator<Item = Price>, highs: impl Iterator<Item = Price>) -> Result<(i64, i64), Unavailable> {
    let (Some(low), Some(high)) = (lows.min(), highs.max()) else {
        return Err(Unavailable::NoTrades);
    };
    if low.units() < 0 {
        return Err(Unavailable::BadPrice);
    }
    Ok((low.units(), high.units()))
}

pub(super) fn nice_width(low: i64, high: i64, tick: i64) -> i64 {
    let tick = tick.max(1);
    let fits = |width: &i64| high / width - low / width < MOST_ROWS as i64;
    let steps = (0..19).flat_map(|power| [1, 2, 5].map(|first| (first, power)));
    let widths = steps.map(|(first, power)| tick.saturating_mul(first).saturating_mul(10i64.saturating_pow(power)));
    widths.into_iter().find(fits).unwrap_or(i64::MAX)
}
