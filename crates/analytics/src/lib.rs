//! Pure functions over books, trades and candles; one module per family. Time is an argument.
//!
//! - `figure`: what all figures share: standing, reasons, rounding, windows
//! - `quotes`, `depth`, `cost`: one book at one moment
//! - `flow`: trades in a window
//! - `volatility`, `impact`: statistics of candles and trades
//! - `profile`, `vacuums`: where volume was traded, and where not
//! - `walls`, `icebergs`, `anomalies`: hints from watching a book for a while
//! - `health`: one score with published weights
//! - `watch`, `history`: observations of one book over time
//! - `ranking`: all markets of one quote asset
//!
//! Prices, quantities and money leave as decimal strings; ratios and basis points as JSON numbers with four
//! places; statistics with six significant digits. A figure that cannot be computed is null, with a reason.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod anomalies;
mod cost;
mod depth;
mod figure;
mod flow;
mod health;
mod history;
mod icebergs;
mod impact;
mod profile;
mod quotes;
mod ranking;
#[cfg(test)]
mod tests;
mod vacuums;
mod volatility;
mod walls;
mod watch;

pub use self::{
    anomalies::*, cost::*, depth::*, figure::*, flow::*, health::*, history::*, icebergs::*, impact::*, profile::*,
    quotes::*, ranking::*, vacuums::*, volatility::*, walls::*, watch::*,
};

/// The live feed, with a [`Watch`] on every book.
pub type Feed = tribune_binance::feed::Feed<Watch>;
pub type Published = tribune_binance::feed::Published<Watch>;
