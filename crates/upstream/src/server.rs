//! What is known of one server, for those who call its tools and those who look after it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use rmcp::service::{Peer, RoleClient};
use tokio::sync::Notify;

use crate::catalogue::Catalogue;
use crate::spec::ServerSpec;

/// Which half of MCP's history a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `server/discover`, and no sessions: from 2026-07-28 on.
    Modern,
    /// The `initialize` handshake.
    Legacy,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        })
    }
}

/// How a server is, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Connected {
        tools: usize,
        era: Era,
    },
    /// For the first time; nothing has been heard yet.
    Connecting,
    /// Why; it is being tried again.
    Down(String),
}

pub(crate) struct Server {
    pub spec: ServerSpec,
    /// Where calls go: nowhere while there is no connection.
    peer: ArcSwapOption<Peer<RoleClient>>,
    known: Mutex<Known>,
    /// A call has found the connection wanting.
    pub doubt: Notify,
    in_flight: AtomicUsize,
}

struct Known {
    status: Status,
    catalogue: Arc<Catalogue>,
}

/// A call that is under way, for as long as it lives.
pub(crate) struct InFlight<'a>(&'a AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    pub(crate) fn new(spec: ServerSpec) -> Self {
        Self {
            spec,
            peer: ArcSwapOption::empty(),
            known: Mutex::new(Known {
                status: Status::Connecting,
                catalogue: Arc::default(),
            }),
            doubt: Notify::new(),
            in_flight: AtomicUsize::new(0),
        }
    }

    pub(crate) fn peer(&self) -> Option<Arc<Peer<RoleClient>>> {
        self.peer.load_full()
    }

    pub(crate) fn status(&self) -> Status {
        self.known().status.clone()
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.known().catalogue)
    }

    pub(crate) fn call_begins(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(&self.in_flight)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn is_up(&self, peer: &Arc<Peer<RoleClient>>, era: Era, catalogue: Catalogue) {
        self.peer.store(Some(Arc::clone(peer)));
        let mut known = self.known();
        known.status = Status::Connected {
            tools: catalogue.offers.len(),
            era,
        };
        known.catalogue = Arc::new(catalogue);
    }

    pub(crate) fn is_down(&self, reason: String) {
        self.peer.store(None);
        let mut known = self.known();
        known.status = Status::Down(reason);
        known.catalogue = Arc::default();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
