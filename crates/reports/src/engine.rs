//! The loop that keeps reports current: it claims symbols, computes their reports and writes them.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::aged::FRESH;
use super::cache::{Claim, Generated, Lease, NodeId, ReportCache, Token, Unavailable};
use super::compute::{self, Inputs, Slow};
use super::exchange::Exchange;
use tribune_analytics::Published;
use tribune_binance::{BookState, Moment, Symbol};

/// How often fast figures are computed and leases renewed.
const EVERY: Duration = Duration::from_millis(250);
const SLOW_EVERY: Duration = Duration::from_secs(2);
/// With a book confirmed longer ago than this, a node with a fresher one should write.
const FRESH_WITHIN: Duration = Duration::from_secs(2);
/// A panic may come from one state of one book, so its symbol is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// After this time a missing book is reported as missing.
const WARM_WITHIN: Duration = Duration::from_secs(3);

/// What keeps an engine from writing, for the source's status.
pub(super) type WritingTrouble = watch::Sender<Option<String>>;

struct Tracked {
    symbol: Symbol,
    listed: Instant,
    /// Since when its data has been too old.
    old_since: Option<Instant>,
    held: Option<HeldLease>,
    /// Until when it is left alone after a panic of its computation.
    paused_until: Option<Instant>,
}

/// The lease of a symbol that this node writes.
struct HeldLease {
    token: Token,
    sequence: u64,
    slow: Option<Slow>,
}

/// Keeps the reports of this node's symbols current.
pub(super) struct Engine {
    exchange: Arc<dyn Exchange>,
    cache: Arc<dyn ReportCache>,
    node: NodeId,
    tracked: HashMap<Arc<str>, Tracked>,
    trouble: Arc<WritingTrouble>,
}

impl Engine {
    pub(super) fn new(
        exchange: Arc<dyn Exchange>,
        cache: Arc<dyn ReportCache>,
        node: NodeId,
        trouble: Arc<WritingTrouble>,
    ) -> Self {
        Self { exchange, cache, node, tracked: HashMap::new(), trouble }
    }

    /// Runs until it is stopped, and then gives its leases up.
    pub(super) async fn run(mut self, stop: &CancellationToken) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            let outcome = self.round().await;
            self.note(outcome);
        }
        self.leave().await;
    }

    /// Follows the list of tracked symbols; returns the leases of those that are no longer on it.
    fn follow_symbols(&mut self) -> Vec<(Arc<str>, Token)> {
        let Some(table) = self.exchange.known_symbols() else {
            return Vec::new();
        };
        let now = self.exchange.clock().monotonic();
        let wanted: HashSet<Arc<str>> = self.exchange.always_tracked().into_iter().collect();
        let gone = self.tracked.extract_if(|name, _| !wanted.contains(name));
        let given_up = gone.filter_map(|(_, mut symbol)| symbol.give_up()).collect();
        let tracked = |symbol| Tracked { symbol, listed: now, old_since: None, held: None, paused_until: None };
        for name in wanted {
            if !self.tracked.contains_key(&name) {
                let symbol = table.lookup(&name).cloned().map(tracked);
                self.tracked.extend(symbol.map(|symbol| (name, symbol)));
            }
        }
        given_up
    }

    async fn round(&mut self) -> Result<(), Unavailable> {
        let given_up = self.follow_symbols();
        self.give_up(&given_up).await?;
        self.claim().await?;
        self.write().await
    }

    async fn claim(&mut self) -> Result<(), Unavailable> {
        let exchange = &*self.exchange;
        let warm = self.tracked.values().filter(|symbol| symbol.is_warm(exchange));
        let claim = |of: &Tracked| Claim { symbol: of.symbol.name.clone(), is_fresh: of.is_fresh(exchange) };
        let claims: Vec<Claim> = warm.map(claim).collect();
        if claims.is_empty() {
            return Ok(());
        }
        let leases = self.cache.claim(&self.node, &claims).await?;
        let mut unwanted = Vec::new();
        for (Claim { symbol, .. }, lease) in claims.into_iter().zip(leases) {
            let token = self.tracked.get_mut(&symbol).and_then(|tracked| tracked.leased(lease));
            unwanted.extend(token.map(|token| (symbol, token)));
        }
        let held = self.tracked.values().filter(|symbol| symbol.held.is_some()).count();
        metrics::gauge!("tribune_report_symbols_written").set(held as f64);
        self.give_up(&unwanted).await
    }

    async fn give_up(&self, leases: &[(Arc<str>, Token)]) -> Result<(), Unavailable> {
        if leases.is_empty() {
            return Ok(());
        }
        self.cache.release(&self.node, leases).await
    }

    async fn write(&mut self) -> Result<(), Unavailable> {
        let writes = self.compute().await;
        if writes.is_empty() {
            return Ok(());
        }
        let outcomes = self.cache.write(&writes).await?;
        for (write, _) in writes.iter().zip(outcomes).filter(|(_, is_stored)| !is_stored) {
            if let Some(symbol) = self.tracked.get_mut(write.report.symbol.as_str()) {
                symbol.lose("a write was refused");
            }
        }
        Ok(())
    }

    /// Computes on a blocking thread, not on those that answer callers.
    async fn compute(&mut self) -> Vec<Generated> {
        let (exchange, node) = (self.exchange.clone(), self.node.clone());
        let mut tracked = std::mem::take(&mut self.tracked);
        let computed = tokio::task::spawn_blocking(move || {
            let held = tracked.values_mut().filter(|symbol| symbol.held.is_some());
            let writes: Vec<Generated> = held.filter_map(|symbol| symbol.try_report(&*exchange, &node)).collect();
            (tracked, writes)
        });
        let computed = computed.await.unwrap_or_else(|error| {
            // The symbols are lost with it: they are tracked anew, and their leases expire.
            tracing::error!(%error, "computing reports failed");
            Default::default()
        });
        self.tracked = computed.0;
        computed.1
    }

    async fn leave(&mut self) {
        let leases: Vec<_> = self.tracked.values_mut().filter_map(Tracked::give_up).collect();
        if let Err(unavailable) = self.give_up(&leases).await {
            tracing::debug!(%unavailable, "leases were not released; they expire by themselves");
        }
    }

    /// Logs one line when writing fails and one when it works again, not four a second.
    fn note(&self, outcome: Result<(), Unavailable>) {
        let trouble = outcome.err().map(|unavailable| unavailable.to_string());
        let before = self.trouble.send_replace(trouble.clone());
        match (before, trouble) {
            (Some(_), None) => tracing::info!(place = self.cache.place(), "reports are written again"),
            (None, Some(trouble)) => tracing::warn!(trouble, "reports cannot be written; trying again"),
            _ => {}
        }
    }
}

impl Tracked {
    /// Whether its book was confirmed within [`FRESH_WITHIN`].
    fn is_fresh(&self, exchange: &dyn Exchange) -> bool {
        let now = exchange.clock().monotonic();
        let is_recent = |published: Arc<Published>| now.saturating_duration_since(published.confirmed()) < FRESH_WITHIN;
        exchange.feed().lookup(&self.symbol.name).is_some_and(is_recent)
    }

    /// Whether its book has come, or has been waited for long enough.
    fn is_warm(&self, exchange: &dyn Exchange) -> bool {
        let now = exchange.clock().monotonic();
        if self.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        let waited = now.saturating_duration_since(self.listed);
        let has_come = |published: Arc<Published>| published.status().state != BookState::Warming;
        waited >= WARM_WITHIN || exchange.feed().lookup(&self.symbol.name).is_some_and(has_come)
    }

    /// The lease to release, if it has one.
    fn give_up(&mut self) -> Option<(Arc<str>, Token)> {
        let held = self.held.take()?;
        Some((self.symbol.name.clone(), held.token))
    }

    /// Records a lease; returns its token if it should be released.
    fn leased(&mut self, lease: Lease) -> Option<Token> {
        match lease {
            Lease::Taken(token) => {
                metrics::counter!("tribune_report_lease_changes_total", "change" => "taken").increment(1);
                tracing::debug!(symbol = %self.symbol.name, token, "writing the reports of a symbol");
                self.held = Some(HeldLease { token, sequence: 0, slow: None });
                None
            }
            Lease::Renewed(token) if self.held.as_ref().is_some_and(|held| held.token == token) => None,
            Lease::Renewed(token) => {
                // The answer that granted it was lost, so the last sequence is unknown.
                self.held = None;
                Some(token)
            }
            Lease::Other => {
                self.lose("another node has the lease");
                None
            }
        }
    }

    fn lose(&mut self, why: &'static str) {
        if let Some(HeldLease { token, .. }) = self.held.take() {
            metrics::counter!("tribune_report_lease_changes_total", "change" => "lost").increment(1);
            tracing::debug!(symbol = %self.symbol.name, token, why, "stopped writing the reports of a symbol");
        }
    }

    /// A panic affects this symbol alone: another node may write it until this one tries again.
    fn try_report(&mut self, exchange: &dyn Exchange, node: &NodeId) -> Option<Generated> {
        let now = exchange.clock().monotonic();
        let computed = catch_unwind(AssertUnwindSafe(|| self.report(exchange, node)));
        self.paused_until = computed.is_err().then_some(now + RETRY_AFTER);
        computed.unwrap_or_else(|_| {
            self.lose("computing its report panicked");
            metrics::counter!("tribune_report_panics_total").increment(1);
            tracing::error!(symbol = %self.symbol.name, "computing the report of a symbol panicked; trying again later");
            None
        })
    }

    fn report(&mut self, exchange: &dyn Exchange, node: &NodeId) -> Option<Generated> {
        let held = self.held.as_mut()?;
        let published = exchange.feed().lookup(&self.symbol.name)?;
        let now = Moment::now(exchange.clock());
        let since = |earlier| now.monotonic.saturating_duration_since(earlier);
        let is_old = since(published.confirmed()) > FRESH;
        self.old_since = self.old_since.or(Some(now.monotonic)).filter(|_| is_old);
        let inputs = Inputs {
            symbol: &self.symbol,
            published: &published,
            day: exchange.feed().board.lookup(&self.symbol.name),
            now,
            exchange_now: exchange.exchange_now(),
            simulated: exchange.simulated(),
            old_for: self.old_since.map_or(Duration::ZERO, since),
        };
        let known = held.slow.take().filter(|slow| since(slow.computed) < SLOW_EVERY);
        let slow = held.slow.insert(known.unwrap_or_else(|| compute::slow(&inputs)));
        held.sequence += 1;
        let report = compute::report(&inputs, slow, (node, held.token, held.sequence));
        let took = exchange.clock().monotonic().saturating_duration_since(now.monotonic);
        metrics::histogram!("tribune_report_compute_seconds").record(took.as_secs_f64());
        Some(Generated { report: Arc::new(report), at: now.monotonic })
    }
}
