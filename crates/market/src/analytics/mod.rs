//! Pure functions over books, trades and candles; one module a family. Time comes in as an argument.
//!
//! - [`figure`]: what all figures share: standing, reasons, rounding, windows
//! - [`quotes`], [`depth`], [`cost`]: one book at one moment
//! - [`flow`], [`ofi`]: trades in a window; best quotes in a row
//! - [`volatility`], [`impact`]: statistics of candles and trades
//! - [`profile`], [`vacuums`]: where volume was traded, and where not
//! - [`walls`], [`icebergs`], [`anomalies`]: hints, from what was watched for a while
//! - [`health`]: one score of published parts
//! - [`ranking`]: all markets of one money beside one another
//!
//! Prices, quantities and money leave as decimal strings; ratios and basis points as JSON numbers with four
//! places; statistics with six significant digits. What cannot be computed is null and has a reason.

pub mod anomalies;
pub mod cost;
pub mod depth;
pub mod figure;
#[cfg(test)]
pub(crate) mod fixture;
pub mod flow;
pub mod health;
#[cfg(test)]
mod hostile;
pub mod icebergs;
pub mod impact;
pub mod ofi;
pub mod profile;
pub mod quotes;
pub mod ranking;
pub mod sizes;
pub mod vacuums;
pub mod volatility;
pub mod walls;

pub use figure::{BookSide, Severity, Standing, Unavailable, Window};
