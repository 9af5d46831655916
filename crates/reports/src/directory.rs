//! Which symbols have reports, for searches and for error messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::cache::{Indexed, ReportCache, Unavailable};
use super::exchange::{Names, Symbols};
use tribune_binance::model::Symbol;

const REFRESH: Duration = Duration::from_secs(1);

pub(super) struct Directory {
    names: Arc<dyn Names>,
    /// Grows when the list of symbols changes.
    revision: AtomicU64,
    state: watch::Sender<State>,
}

#[derive(Clone, Default)]
struct State {
    listing: Option<Arc<Listing>>,
    /// Why the last refresh failed. The last listing is most likely still true then.
    trouble: Option<Unavailable>,
}

/// The symbols that have reports.
pub(super) struct Listing {
    pub(super) symbols: Vec<Arc<str>>,
    /// For searches by name.
    pub(super) table: Arc<dyn Symbols>,
}

impl Directory {
    pub(super) fn new(names: Arc<dyn Names>) -> Self {
        Self {
            names,
            revision: AtomicU64::default(),
            state: watch::Sender::default(),
        }
    }

    pub(super) fn listing(&self) -> Option<Arc<Listing>> {
        self.state.borrow().listing.clone()
    }

    /// Why the cache did not answer the last time.
    pub(super) fn trouble(&self) -> Option<Unavailable> {
        self.state.borrow().trouble.clone()
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// The listing; waits for the first one, but not longer than `patience`.
    pub(super) async fn first_listing(&self, patience: Duration) -> Result<Arc<Listing>, Unavailable> {
        self.wait_for(patience, |state| state.listing.is_some() || state.trouble.is_some())
            .await;
        let state = self.state.borrow().clone();
        state.listing.ok_or_else(|| {
            let pending = || Unavailable("Tribune is still looking up which symbols have reports".to_owned());
            state.trouble.unwrap_or_else(pending)
        })
    }

    /// Waits for the first symbol, but not longer than `patience`.
    pub(super) async fn wait_for_symbols(&self, patience: Duration) {
        let has_symbols = |state: &State| {
            state
                .listing
                .as_ref()
                .is_some_and(|listing| !listing.symbols.is_empty())
        };
        self.wait_for(patience, has_symbols).await;
    }

    async fn wait_for(&self, patience: Duration, condition: impl FnMut(&State) -> bool) {
        let mut changes = self.state.subscribe();
        let _ = tokio::time::timeout(patience, changes.wait_for(condition)).await;
    }

    fn update(&self, answer: Result<Vec<Indexed>, Unavailable>) {
        let indexed = match answer {
            Ok(indexed) => indexed,
            Err(unavailable) => return self.state.send_modify(|state| state.trouble = Some(unavailable)),
        };
        let symbols = indexed.iter().map(|indexed| &indexed.symbol);
        let is_same = self.listing().is_some_and(|listing| listing.symbols.iter().eq(symbols));
        let changed = (!is_same).then(|| Arc::new(Listing::new(&indexed, &*self.names)));
        self.revision.fetch_add(u64::from(!is_same), Ordering::Relaxed);
        self.state.send_modify(|state| {
            state.trouble = None;
            state.listing = changed.or_else(|| state.listing.take());
        });
    }

    /// Asks the cache again and again, until it is dropped.
    pub(super) async fn follow(&self, cache: &dyn ReportCache) {
        loop {
            self.update(cache.indexed().await);
            tokio::time::sleep(REFRESH).await;
        }
    }
}

impl Listing {
    fn new(indexed: &[Indexed], names: &dyn Names) -> Self {
        let symbol =
            |indexed: &Indexed| Symbol::named(indexed.symbol.clone(), indexed.base.clone(), indexed.quote.clone());
        Self {
            symbols: indexed.iter().map(|indexed| indexed.symbol.clone()).collect(),
            table: names.index(indexed.iter().map(symbol).collect()),
        }
    }
}
