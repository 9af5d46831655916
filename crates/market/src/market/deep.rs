//! Snapshots with all levels, which cost fifty times the weight of usual ones.

use std::time::Duration;

use super::{BookReading, Market};
use tribune_binance::{BookState, Symbol};

/// The most levels that the exchange gives.
pub(crate) const DEEPEST: u32 = 5_000;
/// Callers within this time share one deep snapshot, with its age: repeated requests for sizes that no book fills would
/// use up the weight of all others.
const KEEP: Duration = Duration::from_secs(15);
/// An older one is not current any more.
const CURRENT_MS: u64 = 1_000;
const ONCE_IN_A_WHILE: &str = "all levels of a book are fetched at most once in 15 s";

impl Market {
    /// A snapshot with all levels, shared by all callers for a while.
    pub(crate) async fn deep_book(&self, symbol: &Symbol) -> Option<BookReading> {
        let ask = self.snapshot_of(symbol, DEEPEST);
        let look = self.known.deep.get(symbol.name.to_string(), KEEP, &*self.clock, ask).await;
        let look = look.ok().map(|(look, _)| BookReading::clone(&look))?;
        Some(match look.received.age_ms(&*self.clock) {
            ..CURRENT_MS => look,
            _ => BookReading { state: BookState::Stale, reason: Some(ONCE_IN_A_WHILE.to_owned()), ..look },
        })
    }
}
