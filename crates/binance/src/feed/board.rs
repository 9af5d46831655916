//! The last 24 hours of every symbol, from one stream.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::RwLock;

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
    /// What the exchange lists: others on the stream are ignored.
    listed: ArcSwap<HashSet<Arc<str>>>,
    /// When the stream last delivered a message.
    heard: ArcSwapOption<Moment>,
}

impl Board {
    pub fn lookup(&self, symbol: &str) -> Option<Day> {
        self.days.read().get(symbol).copied()
    }

    pub fn lookup_all<'a>(&self, symbols: impl Iterator<Item = &'a Arc<str>>) -> Vec<(Arc<str>, Day)> {
        let days = self.days.read();
        symbols.filter_map(|symbol| Some((symbol.clone(), *days.get(symbol)?))).collect()
    }

    pub fn days(&self) -> HashMap<Arc<str>, Day> {
        self.days.read().clone()
    }

    /// What a symbol's trades are worth in its quote asset.
    pub fn quote_volume(&self, symbol: &str) -> Option<Notional> {
        Some(self.lookup(symbol)?.quote_volume)
    }

    /// Sets the whole board, from REST.
    pub fn fill(&self, days: impl IntoIterator<Item = (Arc<str>, Day)>) {
        self.days.write().extend(days);
    }

    pub fn list(&self, symbols: HashSet<Arc<str>>) {
        self.listed.store(Arc::new(symbols));
    }

    /// When the stream last delivered a message: symbols that are not in it have not changed.
    pub fn heard(&self) -> Option<Moment> {
        self.heard.load_full().map(|moment| *moment)
    }

    /// Takes what changed.
    pub(super) fn update(&self, tickers: &[MiniTicker<'_>], received: Moment) {
        let listed = self.listed.load();
        let mut days = self.days.write();
        for ticker in tickers {
            let day = Day {
                last: ticker.close,
                open: ticker.open,
                high: ticker.high,
                low: ticker.low,
                volume: ticker.volume,
                quote_volume: ticker.quote_volume,
                exchange_time: Some(ticker.time),
                received,
            };
            if let Some(known) = days.get_mut(&*ticker.symbol) {
                *known = day;
            } else if let Some(symbol) = listed.get(&*ticker.symbol) {
                // Traded for the first time since the board was filled.
                days.insert(symbol.clone(), day);
            }
        }
        drop(days);
        self.heard.store(Some(Arc::new(received)));
    }
}
