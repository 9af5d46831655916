//! All servers together, and their tools.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tribune_core::{Error, Result, Tool};

use crate::directory::Directory;
use crate::server::{Server, Status};
use crate::spec::ServerSpec;
use crate::supervisor::Supervisor;

/// The configured MCP servers. Dropping it ends all connections like [`stop`](Self::stop), without waiting.
pub struct Upstreams {
    directory: Arc<Directory>,
    supervisors: TaskTracker,
    stopping: CancellationToken,
}

impl Upstreams {
    /// Connects to nothing yet. Refuses two servers of the same name.
    pub fn new(specs: Vec<ServerSpec>) -> Result<Self> {
        let mut names = HashSet::new();
        for spec in &specs {
            if !names.insert(&spec.name) {
                return Err(Error::invalid_argument(format!(
                    "two MCP servers are named `{}`; rename one of them",
                    spec.name
                )));
            }
        }
        Ok(Self {
            directory: Arc::new(Directory {
                servers: specs.into_iter().map(|spec| Arc::new(Server::new(spec))).collect(),
                tools: ArcSwap::default(),
                published: watch::Sender::new(0),
            }),
            supervisors: TaskTracker::new(),
            stopping: CancellationToken::new(),
        })
    }

    /// Connects to all servers in the background and reconnects to lost ones. Must be called within a Tokio runtime;
    /// a second call changes nothing.
    pub fn start(&self) {
        if !self.supervisors.is_empty() || self.stopping.is_cancelled() {
            return;
        }
        for server in &self.directory.servers {
            let supervisor = Supervisor {
                server: Arc::clone(server),
                directory: Arc::clone(&self.directory),
                stopping: self.stopping.clone(),
            };
            self.supervisors.spawn(supervisor.run());
        }
    }

    /// The tools of all connected servers, in the order of the configuration.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.directory.tools.load().to_vec()
    }

    /// The state of each server, in the order of the configuration.
    pub fn statuses(&self) -> Vec<(String, Status)> {
        let servers = self.directory.servers.iter();
        servers.map(|server| (server.spec.name.clone(), server.status())).collect()
    }

    /// Waits until each server is connected or has failed once, at most `within`.
    pub async fn ready(&self, within: Duration) {
        let mut published = self.directory.published.subscribe();
        let none_connecting = published.wait_for(|_| {
            let mut servers = self.directory.servers.iter();
            servers.all(|server| server.status() != Status::Connecting)
        });
        // On a timeout the statuses show which servers are still connecting.
        drop(tokio::time::timeout(within, none_connecting).await);
    }

    /// Closes all sessions and child processes; kills children that do not exit within seconds.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.supervisors.close();
        self.supervisors.wait().await;
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}
