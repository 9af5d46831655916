//! The current state of one server, shared by its supervisor and its tools.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use rmcp::service::{Peer, RoleClient};
use tokio::sync::Notify;

use crate::catalogue::Catalogue;
use crate::spec::ServerSpec;

/// The generation of MCP that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `server/discover` and no sessions: protocol 2026-07-28 and later.
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

/// A server's state, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Connected {
        tools: usize,
        era: Era,
    },
    /// The first attempt has not finished.
    Connecting,
    /// Why it is down; Tribune keeps reconnecting.
    Down(String),
}

pub(crate) struct Server {
    pub spec: ServerSpec,
    /// `None` while there is no connection.
    peer: ArcSwapOption<Peer<RoleClient>>,
    state: Mutex<State>,
    /// Notified when a call failed in a way that may mean a lost connection.
    pub suspect: Notify,
    in_flight: AtomicUsize,
}

struct State {
    status: Status,
    catalogue: Arc<Catalogue>,
}

/// Counts a call as in flight until dropped.
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
            state: Mutex::new(State {
                status: Status::Connecting,
                catalogue: Arc::default(),
            }),
            suspect: Notify::new(),
            in_flight: AtomicUsize::new(0),
        }
    }

    pub(crate) fn peer(&self) -> Option<Arc<Peer<RoleClient>>> {
        self.peer.load_full()
    }

    pub(crate) fn status(&self) -> Status {
        self.state().status.clone()
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.state().catalogue)
    }

    pub(crate) fn begin_call(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(&self.in_flight)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn set_connected(&self, peer: &Arc<Peer<RoleClient>>, era: Era, catalogue: Catalogue) {
        self.peer.store(Some(Arc::clone(peer)));
        let mut state = self.state();
        state.status = Status::Connected {
            tools: catalogue.tools.len(),
            era,
        };
        state.catalogue = Arc::new(catalogue);
    }

    pub(crate) fn set_down(&self, reason: String) {
        self.peer.store(None);
        let mut state = self.state();
        state.status = Status::Down(reason);
        state.catalogue = Arc::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
