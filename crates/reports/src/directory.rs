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
        Self { names, revision: AtomicU64::default(), state: watch::Sender::default() }
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

    /// The listing, as soon as it is enough; waits no longer than `patience`, and not while the cache does not answer.
    pub(super) async fn wait(
        &self,
        patience: Duration,
        is_enough: fn(&Listing) -> bool,
    ) -> Result<Arc<Listing>, Unavailable> {
        let is_over = |state: &State| state.trouble.is_some() || state.listing.as_deref().is_some_and(is_enough);
        let mut changes = self.state.subscribe();
        let _ = tokio::time::timeout(patience, changes.wait_for(is_over)).await;
        let State { listing, trouble } = self.state.borrow().clone();
        let pending = || Unavailable("Tribune is still looking up which symbols have reports".to_owned());
        listing.ok_or_else(|| trouble.unwrap_or_else(pending))
    }

    fn update(&self, answer: Result<Vec<Indexed>, Unavailable>) {
        let indexed = match answer {
            Ok(indexed) => indexed,
            Err(unavailable) => return self.state.send_modify(|state| state.trouble = Some(unavailable)),
        };
        let symbols: Vec<Arc<str>> = indexed.iter().map(|indexed| indexed.symbol.clone()).collect();
        let known = self.listing().filter(|listing| listing.symbols == symbols);
        let listing = known.unwrap_or_else(|| {
            self.revision.fetch_add(1, Ordering::Relaxed);
            let named = indexed.into_iter().map(|of| Symbol::named(of.symbol, of.base, of.quote));
            let table = self.names.index(named.collect());
            Arc::new(Listing { symbols, table })
        });
        self.state.send_replace(State { listing: Some(listing), trouble: None });
    }

    /// Asks the cache again and again, until it is dropped.
    pub(super) async fn follow(&self, cache: &dyn ReportCache) {
        loop {
            self.update(cache.indexed().await);
            tokio::time::sleep(REFRESH).await;
        }
    }
}
