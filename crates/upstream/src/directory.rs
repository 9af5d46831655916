//! The configured servers and their tools.

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tribune_core::Tool;

use crate::naming;
use crate::server::Server;
use crate::tool::UpstreamTool;

/// The servers and their published tools: connection tasks publish, everybody else reads.
pub(crate) struct Directory {
    /// In the order of the configuration.
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) tools: ArcSwap<Vec<Arc<dyn Tool>>>,
    /// Counts publications and wakes waiters. Its lock serialises them.
    pub(crate) published: watch::Sender<u64>,
}

impl Directory {
    /// Rebuilds the list of all tools. Colliding names are numbered in the order of the configuration, so that the same
    /// servers always give the same names.
    pub(crate) fn publish(&self) {
        self.published.send_modify(|count| {
            let mut taken = HashSet::new();
            let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
            for server in &self.servers {
                for listing in &server.catalogue().tools {
                    let name = naming::unique(&listing.name, &mut taken);
                    tools.push(Arc::new(UpstreamTool::new(Arc::clone(server), listing, name)));
                }
            }
            self.tools.store(Arc::new(tools));
            *count = count.wrapping_add(1);
        });
    }
}
