//! What sources show ([`tribune_core::view`]), as elements of a page. Pure: no I/O, no clock. In reading order:
//!
//! - [`node`]: a tree of elements that can be written as HTML and as JSON, and can hold no markup but its own
//! - [`number`]: digits in groups, labels of axes, ages
//! - [`scale`] and [`time`]: from values and moments to places in a chart, and round ones to name
//! - [`svg`]: coordinates and paths
//! - [`chart`]: what all charts share: the plot, its axes, tags at them, and a sentence that says the same
//! - [`candles`], [`depth`], [`profile`], [`lines`]: the charts
//! - [`ladder`], [`table`], [`figures`]: the rest of what a panel can hold
//! - [`board`]: a board as regions that a live page renews one by one
//! - [`reading`]: a document's text: [`markdown`] or [`plain`], with what is
//!   cited of it set off (`marks`)
//! - [`sample`]: a made-up board, for the page that documents the look and for tests

pub mod board;
pub mod candles;
pub mod chart;
pub mod depth;
pub mod figures;
pub mod ladder;
pub mod lines;
pub mod markdown;
mod marks;
pub mod node;
pub mod number;
pub mod plain;
pub mod profile;
pub mod reading;
pub mod sample;
pub mod scale;
pub mod svg;
pub mod table;
pub mod time;

#[cfg(test)]
mod hostile;

pub use board::{Region, badge, panel, regions};
pub use node::{Element, Node};
