//! What a page shows of a document, and how it is drawn. Pure: no I/O, no clock. Modules in reading order:
//!
//! - [`model`]: what a source says a page shows: a [`Reading`] or a [`Board`]
//! - [`node`]: a tree of elements, written as HTML or JSON, that cannot contain foreign markup
//! - [`parts`]: short constructors for panels, columns and cells; [`text`]: numbers, times and words in them
//! - [`number`]: grouped digits, axis labels, ages
//! - [`scale`] and [`time`]: positions of values and times in a chart, and round ticks
//! - [`svg`]: coordinates and paths
//! - [`chart`]: what all charts share: the plot, its axes, tags, and a caption
//! - [`candles`], [`depth`], [`profile`], [`lines`]: the charts
//! - [`ladder`], [`table`], [`figures`]: other panel contents
//! - [`board`]: a board as regions that a live page updates one by one
//! - [`reading`]: a document's text, [`markdown`] or [`plain`], with the cited part marked (`marks`)
//! - [`form`]: a form for the arguments of a call, from their schema
//! - [`sample`]: an invented board for the design page and for tests

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod board;
pub mod candles;
pub mod chart;
pub mod depth;
pub mod figures;
pub mod form;
pub mod ladder;
pub mod lines;
pub mod markdown;
mod marks;
pub mod model;
pub mod node;
pub mod number;
pub mod parts;
pub mod plain;
pub mod profile;
pub mod reading;
pub mod sample;
pub mod scale;
pub mod svg;
pub mod table;
pub mod text;
pub mod time;

#[cfg(test)]
mod tests;

pub use board::{Region, badge, panel, regions};
pub use model::*;
pub use node::{Element, Node};
