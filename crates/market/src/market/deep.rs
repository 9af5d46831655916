//! Looks at a book as deep as the exchange gives it, which cost fifty times what a usual one does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tribune_core::Result;

use super::{BookReading, Market};
use tribune_binance::feed::BookState;
use tribune_binance::model::Symbol;

/// The most levels that the exchange gives.
pub(crate) const DEEPEST: u32 = 5_000;
/// Callers within this time share one deep snapshot, with its age: repeated requests for sizes that no book fills would
/// use up the weight of all others.
const KEEP_MS: u64 = 15_000;

/// An older one is not current any more.
const CURRENT_MS: u64 = 1_000;
const ONCE_IN_A_WHILE: &str = "all levels of a book are asked for once in 15 s at most";

/// The last of each symbol. The weight budget bounds how many there are.
pub(super) type DeepLooks = Mutex<HashMap<Arc<str>, BookReading>>;

impl Market {
    /// The book as deep as the exchange gives it, asked for once in a while however often it is wanted.
    pub(crate) async fn deep_book(&self, symbol: &Symbol) -> Result<BookReading> {
        let looks = || self.known.deep.lock().unwrap_or_else(PoisonError::into_inner);
        let age_ms = |look: &BookReading| look.received.age_ms(&*self.clock);
        let last = looks().get(&symbol.name).cloned();
        match last.map(|look| (age_ms(&look), look)) {
            Some((0..CURRENT_MS, look)) => return Ok(look),
            Some((CURRENT_MS..KEEP_MS, look)) => {
                return Ok(BookReading { state: BookState::Stale, reason: Some(ONCE_IN_A_WHILE.to_owned()), ..look });
            }
            _ => {}
        }
        let look = self.snapshot_of(symbol, DEEPEST).await?;
        let mut looks = looks();
        looks.retain(|_, look| age_ms(look) < KEEP_MS);
        looks.insert(symbol.name.clone(), look.clone());
        Ok(look)
    }
}
