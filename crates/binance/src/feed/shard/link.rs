//! The connection of a shard: opened, kept alive, and replaced without a gap.

#![allow(clippy::disallowed_methods, reason = "nodes must not connect at the same moment")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::published::Observer;
use super::super::subscriptions::ALL_TICKERS;
use super::{Shard, Socket};
use crate::moment::Moment;

const MAX_BACK_OFF: Duration = Duration::from_secs(10);
/// Both connections are read for this long when one takes over from the other.
const OVERLAP: Duration = Duration::from_secs(2);
/// A successor on which a subscription was refused has this long to get it, while the old connection lasts.
const WAIT_FOR_ALL: Duration = Duration::from_secs(30);
/// After a connection that lasted this long, the next attempt is made at once.
const LASTED: Duration = Duration::from_secs(5);

impl<O: Observer> Shard<O> {
    /// Runs at every tick.
    pub(super) fn keep_link(&mut self, now: Moment) {
        if let Some(Err(why)) = self.socket.as_mut().map(|socket| socket.tend(now.monotonic)) {
            self.ended(&why);
        }
        if self.successor.as_mut().is_some_and(|socket| socket.tend(now.monotonic).is_err()) {
            self.successor = None;
            self.back_off(now.monotonic);
        }
        let now = now.monotonic;
        let is_needed = !self.symbols.is_empty() || self.board.is_some();
        if !is_needed {
            (self.socket, self.successor, self.connecting) = (None, None, None);
            return self.link.set_trouble(None);
        }
        let age = |socket: &Socket| now.duration_since(socket.opened);
        let is_ready = |socket: &Socket| {
            let least = if socket.subscriptions.are_all_confirmed() { OVERLAP } else { WAIT_FOR_ALL };
            age(socket) >= least
        };
        if self.successor.as_ref().is_some_and(is_ready) {
            self.take_over();
        }
        let is_wanted = match &self.socket {
            None => {
                self.link.is_missing();
                true
            }
            Some(socket) => self.successor.is_none() && (socket.closing || age(socket) >= self.settings.rotate_after),
        };
        if is_wanted && self.connecting.is_none() && now >= self.connect_at {
            let (base, clock) = (self.settings.stream_url.clone(), self.clock.clone());
            self.connecting = Some(tokio::spawn(async move { Socket::open(&base, || clock.monotonic()).await }));
        }
    }

    fn take_over(&mut self) {
        self.socket = self.successor.take();
        let now = self.now();
        for (symbol, tracked) in &mut self.symbols {
            let comes = |socket: &Socket| socket.subscriptions.is_confirmed(symbol);
            if tracked.is_open() && !self.socket.as_ref().is_some_and(comes) {
                tracked.lost("the exchange has not agreed to send its updates on the new connection", now);
            }
        }
        self.failures = 0;
        self.link.set_trouble(None);
        tracing::info!("a new connection to the exchange took over from the old one");
    }

    pub(super) fn connected(&mut self, opened: Result<Socket, String>) {
        self.connecting = None;
        let now = self.now();
        let mut socket = match opened {
            Ok(socket) => socket,
            Err(error) => {
                if self.socket.is_none() {
                    self.link.set_trouble(Some(&error));
                }
                if self.failures == 0 {
                    tracing::warn!(%error, "no connection to the exchange's streams; trying again");
                }
                return self.back_off(now.monotonic);
            }
        };
        self.symbols.keys().for_each(|symbol| socket.subscriptions.subscribe(symbol));
        if self.board.is_some() {
            socket.subscriptions.subscribe(&Arc::from(ALL_TICKERS));
        }
        if self.socket.is_some() {
            self.successor = Some(socket);
            return;
        }
        self.link.set_trouble(None);
        self.socket = Some(socket);
        if self.failures > 0 {
            tracing::info!(attempts = self.failures, "connected to the exchange's streams again");
        }
    }

    pub(super) fn ended(&mut self, why: &str) {
        let now = self.now();
        tracing::warn!(why, "the connection to the exchange's streams ended; connecting again");
        metrics::counter!("tribune_feed_disconnects_total").increment(1);
        if self.socket.take().is_some_and(|socket| now.monotonic.duration_since(socket.opened) >= LASTED) {
            self.failures = 0;
        }
        self.link.set_trouble(Some(why));
        self.link.set_lag(Duration::ZERO);
        for tracked in self.symbols.values_mut() {
            tracked.lost(&format!("the connection to the exchange ended: {why}"), now);
        }
        if self.successor.is_some() {
            // Too late to take over without a gap, but it is connected.
            return self.take_over();
        }
        self.back_off(now.monotonic);
    }

    pub(super) fn back_off(&mut self, now: Instant) {
        let base = Duration::from_millis(100) * 2u32.pow(self.failures.min(12));
        self.failures = self.failures.saturating_add(1);
        let wait = base.min(MAX_BACK_OFF);
        // Half of it by chance, so that many clients do not come back together.
        self.connect_at = now + wait / 2 + wait.mul_f64(fastrand::f64() / 2.0);
    }
}
