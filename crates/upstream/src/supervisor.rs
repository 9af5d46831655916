//! Keeps one server connected: connects, reads its tool list, notices that it is gone, reconnects with backoff.

#![allow(clippy::disallowed_methods, reason = "connections live in real time")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Catalogue;
use crate::connect::{self, Connection};
use crate::directory::Directory;
use crate::server::{Era, Server, Status};

const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// A connection that lasted this long resets the backoff.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// How often the tool list of an idle server is read; this also finds dead connections.
const LIST_INTERVAL: Duration = Duration::from_secs(60);
/// However often a server announces a change, its list is not read more often than this.
const MIN_LIST_INTERVAL: Duration = Duration::from_millis(500);
/// How long closing may take: longer than a child gets to exit before it is killed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Supervisor {
    pub server: Arc<Server>,
    pub directory: Arc<Directory>,
    pub stopping: CancellationToken,
}

impl Supervisor {
    /// Runs until `stopping` is cancelled.
    pub(crate) async fn run(self) {
        let mut era = None;
        let mut attempts: u32 = 0;
        loop {
            let attempt = tokio::select! {
                () = self.stopping.cancelled() => break,
                attempt = connect::connect(&self.server.spec, era) => attempt,
            };
            match attempt {
                Ok(connection) => {
                    era = Some(connection.era);
                    let began = Instant::now();
                    self.serve(connection).await;
                    if began.elapsed() >= STABLE_AFTER {
                        attempts = 0;
                    }
                }
                Err(failure) => {
                    // The server may have been replaced by one of another era.
                    era = era.filter(|_| !failure.is_rejection());
                    self.publish_down(failure.reason);
                }
            }
            tokio::select! {
                () = self.stopping.cancelled() => break,
                () = tokio::time::sleep(pause(attempts, fastrand::f64())) => {}
            }
            attempts = attempts.saturating_add(1);
        }
        self.publish_stopped();
    }

    /// Watches a connection until it is lost or Tribune stops, then closes it.
    async fn serve(&self, connection: Connection) {
        let Connection { service, era, list_changed, last_stderr_line } = connection;
        let peer = Arc::new(service.peer().clone());
        let close = service.cancellation_token();
        let ended = service.waiting().map(drop).shared();
        let lost = tokio::select! {
            () = self.stopping.cancelled() => None,
            () = ended.clone() => Some("the connection ended".to_owned()),
            lost = self.watch(&peer, era, &list_changed) => Some(lost),
            never = subscribe(&peer, era, &list_changed) => match never {},
        };
        // The tools are withdrawn before the connection is closed.
        match lost {
            Some(reason) => self.publish_down(last_stderr_line.append_to(&reason).await),
            None => self.publish_stopped(),
        }
        close.cancel();
        drop(tokio::time::timeout(CLOSE_TIMEOUT, ended).await);
    }

    /// Reads the tool list now, after an announced change, after a failed call, and at intervals.
    /// Returns why the server is lost.
    async fn watch(&self, peer: &Arc<Peer<RoleClient>>, era: Era, list_changed: &Notify) -> String {
        loop {
            let timeout = self.server.spec.timeout;
            match tokio::time::timeout(timeout, Catalogue::read(peer, &self.server.spec)).await {
                Ok(Ok(catalogue)) => self.publish_connected(peer, era, catalogue),
                Ok(Err(error)) => return connect::list_failure(&error),
                Err(_) => return "it did not list its tools in time".to_owned(),
            }
            tokio::time::sleep(MIN_LIST_INTERVAL).await;
            self.wait_for_next_read(list_changed).await;
        }
    }

    async fn wait_for_next_read(&self, list_changed: &Notify) {
        loop {
            tokio::select! {
                () = list_changed.notified() => return,
                () = self.server.suspect.notified() => return,
                () = tokio::time::sleep(LIST_INTERVAL) => {
                    // A server that handles one request at a time cannot list its tools during a call.
                    if self.server.calls.is_empty() {
                        return;
                    }
                }
            }
        }
    }

    fn publish_connected(&self, peer: &Arc<Peer<RoleClient>>, era: Era, catalogue: Catalogue) {
        let name = &self.server.spec.name;
        let tools = catalogue.tools.len();
        match self.server.status() {
            Status::Connected { .. } if *self.server.catalogue() == catalogue => return,
            Status::Connected { .. } => tracing::info!(server = %name, tools, ?era, "MCP server changed its tools"),
            _ => tracing::info!(server = %name, tools, ?era, "MCP server connected"),
        }
        for tool in &catalogue.rejected {
            tracing::warn!(server = %name, "tool skipped: {tool}");
        }
        self.server.set_connected(peer, era, catalogue);
        self.directory.publish();
    }

    fn publish_stopped(&self) {
        self.server.set_down("stopped".to_owned());
        self.directory.publish();
    }

    fn publish_down(&self, reason: String) {
        let name = &self.server.spec.name;
        match self.server.status() {
            Status::Connected { tools, era } => {
                tracing::info!(server = %name, tools, ?era, reason, "MCP server lost; its tools are unavailable until it reconnects");
            }
            Status::Down(before) if before == reason => {
                tracing::debug!(server = %name, reason, "MCP server still not connected");
            }
            _ => tracing::warn!(server = %name, reason, "MCP server not connected; retrying"),
        }
        self.server.set_down(reason);
        self.directory.publish();
    }
}

/// Modern servers announce changes of their tool list only to subscribers. Without a subscription the list is read
/// at intervals.
async fn subscribe(peer: &Peer<RoleClient>, era: Era, list_changed: &Notify) -> Infallible {
    let capability = peer.peer_info().and_then(|info| info.capabilities.tools.clone());
    let announces = capability.and_then(|tools| tools.list_changed).unwrap_or(false);
    if era == Era::Legacy || !announces {
        return std::future::pending().await;
    }
    loop {
        if let Ok(mut subscription) = peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await {
            while let Ok(Some(notification)) = subscription.next().await {
                if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
                    list_changed.notify_one();
                }
            }
        }
        tokio::time::sleep(LIST_INTERVAL).await;
        // Changes were not announced while there was no subscription.
        list_changed.notify_one();
    }
}

/// The pause after some attempts: exponential up to a limit. `jitter`, from 0 to 1, shortens it by up to a half.
fn pause(attempts: u32, jitter: f64) -> Duration {
    let full = FIRST_BACKOFF.saturating_mul(1 << attempts.min(16)).min(MAX_BACKOFF);
    full.mul_f64(1.0 - jitter / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_a_limit() {
        let millis: Vec<u128> = (0..8).map(|attempts| pause(attempts, 0.0).as_millis()).collect();
        assert_eq!(millis, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(pause(8, 1.0), Duration::from_secs(15));
        assert_eq!(pause(u32::MAX, 0.0), Duration::from_secs(30));
    }
}
