//! All servers together, and the tools they have now.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tribune_core::{Error, Result, Tool};

use crate::life;
use crate::naming;
use crate::server::{Server, Status};
use crate::spec::ServerSpec;
use crate::tool::UpstreamTool;

/// The MCP servers of others that we use. Dropping it ends what it started, as [`stop`](Self::stop) does,
/// without waiting for it.
pub struct Upstreams {
    board: Arc<Board>,
    keepers: Mutex<Vec<JoinHandle<()>>>,
    stopping: CancellationToken,
}

/// What those who look after servers report to, and everybody else reads.
pub(crate) struct Board {
    /// In the order of the configuration.
    servers: Vec<Arc<Server>>,
    tools: ArcSwap<Vec<Arc<dyn Tool>>>,
    /// Counts publications, and wakes who waits for one. Its lock makes them one after another.
    published: watch::Sender<u64>,
}

impl Upstreams {
    /// Nothing is connected to yet. Refuses bad and doubled names, and what cannot be an address.
    pub fn new(specs: Vec<ServerSpec>) -> Result<Self> {
        let mut names = HashSet::new();
        for spec in &specs {
            spec.check()?;
            if !names.insert(&spec.name) {
                return Err(Error::invalid_argument(format!(
                    "two MCP servers are named `{}`; rename one of them",
                    spec.name
                )));
            }
        }
        Ok(Self {
            board: Arc::new(Board {
                servers: specs.into_iter().map(|spec| Arc::new(Server::new(spec))).collect(),
                tools: ArcSwap::default(),
                published: watch::Sender::new(0),
            }),
            keepers: Mutex::default(),
            stopping: CancellationToken::new(),
        })
    }

    /// Connects to all in the background, and again whenever one is lost. Must be called within a Tokio runtime;
    /// a second call changes nothing.
    pub fn start(&self) {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        if !keepers.is_empty() || self.stopping.is_cancelled() {
            return;
        }
        for server in &self.board.servers {
            let keeper = life::keep(Arc::clone(server), Arc::clone(&self.board), self.stopping.clone());
            keepers.push(tokio::spawn(keeper));
        }
    }

    /// Of the servers that are connected now, in the order of the configuration.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.board.tools.load().to_vec()
    }

    /// How each server is, in the order of the configuration.
    pub fn statuses(&self) -> Vec<(String, Status)> {
        let servers = self.board.servers.iter();
        servers
            .map(|server| (server.spec.name.clone(), server.status()))
            .collect()
    }

    /// Waits until each server is connected or has failed once, but no longer than `within`.
    pub async fn ready(&self, within: Duration) {
        let mut published = self.board.published.subscribe();
        let heard_of_all = published.wait_for(|_| {
            let mut servers = self.board.servers.iter();
            servers.all(|server| server.status() != Status::Connecting)
        });
        // Time that is up is an answer too: the statuses say who is still connecting.
        drop(tokio::time::timeout(within, heard_of_all).await);
    }

    /// Ends sessions and children: politely, and by force those that do not go within seconds.
    pub async fn stop(&self) {
        self.stopping.cancel();
        let keepers = std::mem::take(&mut *self.keepers.lock().unwrap_or_else(PoisonError::into_inner));
        join_all(keepers).await;
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

impl Board {
    /// Makes the list of all tools anew. Names that collide are numbered in the order of the configuration,
    /// so that the same servers always give the same names.
    pub(crate) fn publish(&self) {
        self.published.send_modify(|count| {
            let mut taken = HashSet::new();
            let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
            for server in &self.servers {
                for offer in &server.catalogue().offers {
                    let name = naming::unique(&offer.name, &mut taken);
                    tools.push(Arc::new(UpstreamTool::new(Arc::clone(server), offer, name)));
                }
            }
            self.tools.store(Arc::new(tools));
            *count = count.wrapping_add(1);
        });
    }
}
