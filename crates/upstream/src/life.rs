//! How one server is connected to, watched, lost and found again.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::catalogue::{self, Catalogue};
use crate::connect::{self, Connection};
use crate::server::{Era, Server, Status};
use crate::upstreams::Board;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection that held this long was a good one: the next pause is a short one again.
const HELD_WELL: Duration = Duration::from_secs(10);
/// How often an idle server is asked whether it is there and what it has.
const LOOK_EVERY: Duration = Duration::from_secs(30);
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

/// Why a connection is no longer watched.
enum End {
    Stopped,
    Lost(String),
}

impl Keeper {
    async fn run(self) {
        let mut era = None;
        let mut pause = Pause::default();
        loop {
            let began = Instant::now();
            let attempt = tokio::select! {
                () = self.stopping.cancelled() => break,
                attempt = connect::connect(&self.server.spec, era) => attempt,
            };
            let reason = match attempt {
                Ok(connection) => {
                    era = Some(connection.era);
                    match self.hold(connection).await {
                        End::Stopped => break,
                        End::Lost(reason) => reason,
                    }
                }
                Err(reason) => {
                    // It may speak otherwise when it comes back.
                    era = era.filter(|_| !reason.speaks_otherwise);
                    reason.to_string()
                }
            };
            self.tell_down(reason);
            if began.elapsed() >= HELD_WELL {
                pause = Pause::default();
            }
            tokio::select! {
                () = self.stopping.cancelled() => break,
                () = tokio::time::sleep(pause.next(fastrand::f64())) => {}
            }
        }
        self.server.is_down("stopped".to_owned());
        self.board.publish();
    }

    /// Watches a connection until it is lost or no longer wanted, and then ends it.
    async fn hold(&self, connection: Connection) -> End {
        let Connection {
            running, era, changed, ..
        } = connection;
        let peer = Arc::new(running.peer().clone());
        let ending = running.cancellation_token();
        let mut ended = pin!(running.waiting());
        let watched = async {
            tokio::select! {
                () = self.stopping.cancelled() => End::Stopped,
                lost = self.watch(&peer, era, &changed) => End::Lost(lost),
                never = listen(&peer, era, &changed) => never,
            }
        };
        let end = tokio::select! {
            end = watched => Some(end),
            _ = &mut ended => None,
        };
        match end {
            Some(end) => {
                // Nobody is to call what is about to go.
                self.server.is_down("the connection is being closed".to_owned());
                self.board.publish();
                ending.cancel();
                drop(tokio::time::timeout(GOODBYE, ended).await);
                end
            }
            None => End::Lost(connection.epitaph.text("the connection ended")),
        }
    }

    /// Reads the list of tools now, when it has changed, when a call had trouble, and once in a while.
    /// Returns why the server is lost.
    async fn watch(&self, peer: &Arc<Peer<RoleClient>>, era: Era, changed: &Notify) -> String {
        loop {
            let patience = self.server.spec.timeout;
            match tokio::time::timeout(patience, catalogue::read(peer)).await {
                Ok(Ok((tools, complete))) => {
                    let spec = &self.server.spec;
                    let only = spec.tools.as_deref();
                    self.tell_up(peer, era, Catalogue::of(&spec.name, tools, complete, only));
                }
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
        let was = self.server.status();
        let news = *self.server.catalogue() != catalogue;
        if matches!(was, Status::Connected { .. }) && !news {
            return;
        }
        for tool in &catalogue.left_out {
            tracing::warn!(server = %name, "tool left out: {tool}");
        }
        tracing::info!(server = %name, tools = catalogue.offers.len(), %era, "MCP server connected");
        self.server.is_up(peer, era, catalogue);
        self.board.publish();
    }

    fn tell_down(&self, reason: String) {
        let name = &self.server.spec.name;
        match self.server.status() {
            Status::Down(before) if before == reason => tracing::debug!(server = %name, reason, "still no MCP server"),
            _ => tracing::info!(server = %name, reason, "MCP server lost; its tools are gone until it is back"),
        }
        self.server.is_down(reason);
        self.board.publish();
    }
}

/// Modern servers tell of changes only to those who listen. One that does not let us is asked once in a while,
/// as all are.
async fn listen(peer: &Peer<RoleClient>, era: Era, changed: &Notify) -> End {
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
