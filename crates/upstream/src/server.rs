//! The current state of one server, shared by its supervisor and its tools.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::service::{Peer, RoleClient};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

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
    state: Mutex<State>,
    /// Notified when a call failed in a way that may mean a lost connection.
    pub suspect: Notify,
    /// Calls in progress.
    pub calls: TaskTracker,
}

struct State {
    status: Status,
    /// `None` while there is no connection.
    peer: Option<Arc<Peer<RoleClient>>>,
    catalogue: Arc<Catalogue>,
}

impl Server {
    pub(crate) fn new(spec: ServerSpec) -> Self {
        Self {
            spec,
            state: Mutex::new(State { status: Status::Connecting, peer: None, catalogue: Arc::default() }),
            suspect: Notify::new(),
            calls: TaskTracker::new(),
        }
    }

    pub(crate) fn peer(&self) -> Option<Arc<Peer<RoleClient>>> {
        self.state().peer.clone()
    }

    pub(crate) fn status(&self) -> Status {
        self.state().status.clone()
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.state().catalogue)
    }

    pub(crate) fn set_connected(&self, peer: &Arc<Peer<RoleClient>>, era: Era, catalogue: Catalogue) {
        let tools = catalogue.tools.len();
        *self.state() = State {
            status: Status::Connected { tools, era },
            peer: Some(Arc::clone(peer)),
            catalogue: Arc::new(catalogue),
        };
    }

    pub(crate) fn set_down(&self, reason: String) {
        *self.state() = State { status: Status::Down(reason), peer: None, catalogue: Arc::default() };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
