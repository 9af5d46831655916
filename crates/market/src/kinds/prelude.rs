//! What nearly every kind uses.

pub(super) use rust_decimal::Decimal;
pub(super) use schemars::JsonSchema;
pub(super) use serde::Serialize;
pub(super) use tribune_analytics::{Standing, Unavailable, Window};
pub(super) use tribune_binance::{Candle, Interval, Millis, Notional, Price, Quantity, Symbol};
pub(super) use tribune_core::{Error, Result};
pub(super) use tribune_market_parts::exchange_error;
pub(super) use tribune_page::text::capitalised;

pub(super) use super::answer::{About, Answer, Provenance};
pub(super) use super::known::{Known, or_unknown};
pub(super) use super::table::{Keep, Row, Table};
pub(super) use super::time::Time;
pub(super) use super::{Figures, change_word, no_figures, pair_name, short};
pub(super) use crate::market::{BookReading, Market, NOT_KEPT, Origin, TradesReading};
pub(super) use tribune_market_resolve::id::Kind;
