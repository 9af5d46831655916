//! Which symbols have reports, kept at hand for searches and for those who ask for another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio_util::sync::CancellationToken;

use super::cache::{Indexed, ReportCache, Unavailable};
use crate::model::Symbol;
use crate::symbols::SymbolTable;

const REFRESH: Duration = Duration::from_secs(1);
const WAIT_FOR_FIRST: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Directory {
    /// Grows with every other listing.
    revision: AtomicU64,
    listing: ArcSwapOption<Listing>,
    trouble: Mutex<Option<Unavailable>>,
}

/// What the cache has listed.
pub(super) struct Listing {
    pub(super) symbols: Vec<Arc<str>>,
    /// For searches by name; without anything but names.
    pub(super) table: SymbolTable,
}

impl Directory {
    pub(super) fn listing(&self) -> Option<Arc<Listing>> {
        self.listing.load_full()
    }

    /// The same; waits a little where the process has just started.
    pub(super) async fn first_listing(&self) -> Result<Arc<Listing>, Unavailable> {
        let deadline = tokio::time::Instant::now() + WAIT_FOR_FIRST;
        loop {
            if let Some(listing) = self.listing() {
                return Ok(listing);
            }
            if let Some(trouble) = self.trouble() {
                return Err(trouble);
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(Unavailable("what has reports is still being looked up".to_owned()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// Why the cache could not be asked last.
    pub(super) fn trouble(&self) -> Option<Unavailable> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Unavailable>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, answer: Result<Vec<Indexed>, Unavailable>) {
        match answer {
            Ok(indexed) => {
                let is_same = |listing: &Listing| {
                    let names = indexed.iter().map(|indexed| &indexed.symbol);
                    listing.symbols.iter().eq(names)
                };
                if !self.listing().is_some_and(|listing| is_same(&listing)) {
                    self.listing.store(Some(Arc::new(Listing::of(&indexed))));
                    self.revision.fetch_add(1, Ordering::Relaxed);
                }
                *self.lock() = None;
            }
            // What was listed is most likely still true.
            Err(unavailable) => *self.lock() = Some(unavailable),
        }
    }

    /// Asks the cache again and again.
    pub(super) async fn keep(directory: Arc<Self>, cache: Arc<dyn ReportCache>, stop: CancellationToken) {
        loop {
            directory.take(cache.indexed().await);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REFRESH) => {}
            }
        }
    }
}

impl Listing {
    fn of(indexed: &[Indexed]) -> Self {
        let symbol =
            |indexed: &Indexed| Symbol::named(indexed.symbol.clone(), indexed.base.clone(), indexed.quote.clone());
        Self {
            symbols: indexed.iter().map(|indexed| indexed.symbol.clone()).collect(),
            table: SymbolTable::new(indexed.iter().map(symbol).collect(), &HashMap::new()),
        }
    }
}
