//! The last day of every symbol, from one stream.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::event::MiniTicker;
use crate::model::Millis;
use crate::moment::Moment;
use crate::number::{Notional, Price, Quantity};

/// What the last 24 hours of one symbol were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    pub last: Price,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub volume: Quantity,
    pub quote_volume: Notional,
    pub exchange_time: Option<Millis>,
    pub received: Moment,
}

#[derive(Debug, Default)]
pub struct Board {
    days: RwLock<HashMap<Arc<str>, Day>>,
}

impl Board {
    pub fn lookup(&self, symbol: &str) -> Option<Day> {
        self.read().get(symbol).copied()
    }

    pub fn days(&self) -> HashMap<Arc<str>, Day> {
        self.read().clone()
    }

    pub fn quote_volumes(&self) -> HashMap<Arc<str>, Notional> {
        let days = self.read();
        days.iter()
            .map(|(symbol, day)| (symbol.clone(), day.quote_volume))
            .collect()
    }

    /// The whole board as REST has it.
    pub fn fill(&self, days: impl IntoIterator<Item = (Arc<str>, Day)>) {
        self.write().extend(days);
    }

    /// What changed; symbols that the board does not know are not the exchange's.
    pub(super) fn update(&self, tickers: &[MiniTicker<'_>], received: Moment) {
        let mut days = self.write();
        for ticker in tickers {
            if let Some(day) = days.get_mut(&*ticker.symbol) {
                *day = Day {
                    last: ticker.close,
                    open: ticker.open,
                    high: ticker.high,
                    low: ticker.low,
                    volume: ticker.volume,
                    quote_volume: ticker.quote_volume,
                    exchange_time: Some(ticker.time),
                    received,
                };
            }
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<Arc<str>, Day>> {
        self.days.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Arc<str>, Day>> {
        self.days.write().unwrap_or_else(PoisonError::into_inner)
    }
}
