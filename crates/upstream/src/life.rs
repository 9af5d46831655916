//! How one server is connected to, watched, lost and found again.

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
use crate::server::{Era, Server, Status};
use crate::upstreams::Board;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection that held this long was a good one: the next pause is a short one again.
const HELD_WELL: Duration = Duration::from_secs(10);
/// How often an idle server is asked whether it is there and what it has.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// However often a server says that its list has changed.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(500);
/// Longer than a polite child takes, and what force needs.
const GOODBYE: Duration = Duration::from_secs(5);

/// Runs until `stopping`.
pub(crate) async fn keep(server: Arc<Server>, board: Arc<Board>, stopping: CancellationToken) {
    let keeper = Keeper {
        server,
        board,
        stopping,
    };
    keeper.run().await;
}

struct Keeper {
    server: Arc<Server>,
    board: Arc<Board>,
    stopping: CancellationToken,
}

impl Keeper {
    async fn run(self) {
        let mut era = None;
        let mut pause = Pause::default();
        loop {
            let attempt = tokio::select! {
                () = self.stopping.cancelled() => break,
                attempt = connect::connect(&self.server.spec, era) => attempt,
            };
            match attempt {
                Ok(connection) => {
                    era = Some(connection.era);
                    let began = Instant::now();
                    self.hold(connection).await;
                    if began.elapsed() >= HELD_WELL {
                        pause = Pause::default();
                    }
                }
                Err(failure) => {
                    // One that refuses may have been replaced by one that speaks otherwise.
                    era = era.filter(|_| !failure.is_refusal());
                    self.tell_down(failure.to_string());
                }
            }
            tokio::select! {
                () = self.stopping.cancelled() => break,
                () = tokio::time::sleep(pause.next(fastrand::f64())) => {}
            }
        }
        self.tell_stopped();
    }

    /// Watches a connection until it is lost or no longer wanted, and then ends it.
    async fn hold(&self, connection: Connection) {
        let Connection {
            running,
            era,
            changed,
            last_words,
        } = connection;
        let peer = Arc::new(running.peer().clone());
        let ending = running.cancellation_token();
        let ended = running.waiting().map(drop).shared();
        let lost = tokio::select! {
            () = self.stopping.cancelled() => None,
            () = ended.clone() => Some("the connection ended".to_owned()),
            lost = self.watch(&peer, era, &changed) => Some(lost),
            never = listen(&peer, era, &changed) => match never {},
        };
        // Nobody is to call what is about to go.
        match lost {
            Some(reason) => self.tell_down(last_words.after(&reason).await),
            None => self.tell_stopped(),
        }
        ending.cancel();
        drop(tokio::time::timeout(GOODBYE, ended).await);
    }

    /// Reads the list of tools now, when it has changed, when a call had trouble, and once in a while.
    /// Returns why the server is lost.
    async fn watch(&self, peer: &Arc<Peer<RoleClient>>, era: Era, changed: &Notify) -> String {
        loop {
            let patience = self.server.spec.timeout;
            match tokio::time::timeout(patience, Catalogue::read(peer, &self.server.spec)).await {
                Ok(Ok(catalogue)) => self.tell_up(peer, era, catalogue),
                Ok(Err(error)) => return connect::reason_of(&error),
                Err(_) => return "it does not say which tools it has".to_owned(),
            }
            tokio::time::sleep(LOOK_AT_MOST_EVERY).await;
            self.until_worth_a_look(changed).await;
        }
    }

    async fn until_worth_a_look(&self, changed: &Notify) {
        loop {
            tokio::select! {
                () = changed.notified() => return,
                () = self.server.doubt.notified() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {
                    // A server that does one thing at a time is not dead while it does it.
                    if !self.server.is_busy() {
                        return;
                    }
                }
            }
        }
    }

    fn tell_up(&self, peer: &Arc<Peer<RoleClient>>, era: Era, catalogue: Catalogue) {
        let name = &self.server.spec.name;
        let tools = catalogue.offers.len();
        match self.server.status() {
            Status::Connected { .. } if *self.server.catalogue() == catalogue => return,
            Status::Connected { .. } => tracing::info!(server = %name, tools, %era, "MCP server has other tools now"),
            _ => tracing::info!(server = %name, tools, %era, "MCP server connected"),
        }
        for tool in &catalogue.left_out {
            tracing::warn!(server = %name, "tool left out: {tool}");
        }
        self.server.is_up(peer, era, catalogue);
        self.board.publish();
    }

    fn tell_stopped(&self) {
        self.server.is_down("stopped".to_owned());
        self.board.publish();
    }

    fn tell_down(&self, reason: String) {
        let name = &self.server.spec.name;
        match self.server.status() {
            Status::Connected { tools, era } => {
                tracing::info!(server = %name, tools, %era, reason, "MCP server lost; its tools are gone until it is back");
            }
            Status::Down(before) if before == reason => tracing::debug!(server = %name, reason, "still no MCP server"),
            _ => tracing::warn!(server = %name, reason, "MCP server not connected; it is tried again"),
        }
        self.server.is_down(reason);
        self.board.publish();
    }
}

/// Modern servers tell of changes only to those who listen. One that does not let us is asked once in a while,
/// as all are.
async fn listen(peer: &Peer<RoleClient>, era: Era, changed: &Notify) -> Infallible {
    let offered = peer.peer_info().and_then(|info| info.capabilities.tools.clone());
    let tells = offered.and_then(|tools| tools.list_changed).unwrap_or(false);
    if era == Era::Legacy || !tells {
        return std::future::pending().await;
    }
    loop {
        if let Ok(mut subscription) = peer
            .listen(SubscriptionFilter::builder().tools_list_changed().build())
            .await
        {
            while let Ok(Some(notification)) = subscription.next().await {
                if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
                    changed.notify_one();
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
        // What has changed meanwhile was told to nobody.
        changed.notify_one();
    }
}

/// Longer each time, and never the same for two who wait for the same server.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pause {
    /// `chance` from 0 to 1 makes it shorter by up to a half.
    fn next(&mut self, chance: f64) -> Duration {
        let full = self.0;
        self.0 = full.saturating_mul(2).min(LONGEST_PAUSE);
        full.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let mut pause = Pause::default();
        let millis: Vec<u128> = (0..8).map(|_| pause.next(0.0).as_millis()).collect();
        assert_eq!(millis, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(pause.next(1.0), Duration::from_secs(15));
        assert_eq!(pause.next(f64::INFINITY), Duration::from_secs(15));
    }
}
