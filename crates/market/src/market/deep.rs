//! Looks at a book as deep as the exchange gives it, which cost fifty times what a usual one does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tribune_core::{Clock, Result};

use super::{BookReading, Market};
use tribune_binance::feed::BookState;
use tribune_binance::model::Symbol;

/// The most levels that the exchange gives.
pub(crate) const DEEPEST: u32 = 5_000;
/// Whoever asks within this time has the same look, and is told how old it is: sizes that no book fills, asked for
/// again and again, would take the weight of everybody else.
const KEEP_MS: u64 = 15_000;

/// An older one is not current any more.
const CURRENT_MS: u64 = 1_000;
const ONCE_IN_A_WHILE: &str = "all levels of a book are asked for once in 15 s at most";

/// The last of each symbol. The weight budget bounds how many there are.
#[derive(Debug, Default)]
pub(super) struct DeepLooks(Mutex<HashMap<Arc<str>, BookReading>>);

impl DeepLooks {
    fn lookup(&self, symbol: &str, clock: &dyn Clock) -> Option<BookReading> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let look = kept.get(symbol)?;
        match look.received.age_ms(clock) {
            CURRENT_MS..KEEP_MS => Some(BookReading {
                state: BookState::Stale,
                reason: Some(ONCE_IN_A_WHILE.to_owned()),
                ..look.clone()
            }),
            KEEP_MS.. => None,
            _ => Some(look.clone()),
        }
    }

    fn keep(&self, look: &BookReading, clock: &dyn Clock) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, look| look.received.age_ms(clock) < KEEP_MS);
        kept.insert(look.view.symbol.clone(), look.clone());
    }
}

impl Market {
    /// The book as deep as the exchange gives it, asked for once in a while however often it is wanted.
    pub(crate) async fn deep_book(&self, symbol: &Symbol) -> Result<BookReading> {
        if let Some(kept) = self.known.deep.lookup(&symbol.name, &*self.clock) {
            return Ok(kept);
        }
        let look = self.snapshot_of(symbol, DEEPEST).await?;
        self.known.deep.keep(&look, &*self.clock);
        Ok(look)
    }
}
