//! The loop that keeps reports current: who writes what, computing, writing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cache::{Claim, Eagerness, Lease, NodeId, ReportCache, Token, Unavailable, Write, Written};
use super::compute::{self, Inputs, Slow};
use super::share::first_choice;
use crate::feed::{BookState, Published};
use crate::market::Market;
use crate::model::Symbol;
use crate::moment::Moment;

/// Fast fields, and leases.
const EVERY: Duration = Duration::from_millis(250);
/// Slow fields.
const SLOW_EVERY: Duration = Duration::from_secs(2);
/// A symbol stays with its writer for at least this long, unless the writer is gone.
const MIN_HOLD: Duration = Duration::from_secs(10);
/// A node whose streams have been gone for this long leaves writing to others.
const UNABLE_AFTER: Duration = Duration::from_secs(2);
/// A book that has not come by then is reported as it is: not there.
const WARM_WITHIN: Duration = Duration::from_secs(3);
/// How long a stop waits for leases to be given up.
const LEAVE_WITHIN: Duration = Duration::from_millis(700);

/// A running engine. Ends when it is stopped or dropped; dropped, its leases run out by themselves.
pub struct Engine {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Engine {
    /// Must be called within a runtime.
    pub fn start(market: Arc<Market>, cache: Arc<dyn ReportCache>, node: NodeId) -> Self {
        let stop = CancellationToken::new();
        let writing = Writing {
            market,
            cache,
            node,
            duties: HashMap::new(),
            nodes: Vec::new(),
            able_at: None,
            trouble: None,
        };
        Self {
            task: Some(tokio::spawn(writing.run(stop.clone()))),
            stop,
        }
    }

    /// Gives the leases up, so that others can take over at once.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let _ = tokio::time::timeout(LEAVE_WITHIN, task).await;
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// One symbol of this node's list.
struct Duty {
    symbol: Symbol,
    listed: Instant,
    /// The largest token that was seen of it.
    known: Token,
    held: Option<Held>,
}

/// A symbol that this node writes.
struct Held {
    token: Token,
    sequence: u64,
    since: Instant,
    slow: Slow,
    slow_due: Instant,
}

struct Writing {
    market: Arc<Market>,
    cache: Arc<dyn ReportCache>,
    node: NodeId,
    duties: HashMap<Arc<str>, Duty>,
    nodes: Vec<NodeId>,
    /// When the streams were last connected.
    able_at: Option<Instant>,
    /// What was last said of the cache in the log.
    trouble: Option<Unavailable>,
}

impl Writing {
    async fn run(mut self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = tick.tick() => {}
            }
            self.list_duties();
            let outcome = self.round().await;
            self.note(outcome);
        }
        self.leave().await;
    }

    fn now(&self) -> Instant {
        self.market.clock.monotonic()
    }

    /// The symbols that are always tracked.
    fn list_duties(&mut self) {
        let Some(table) = self.market.known_symbols() else {
            return;
        };
        for symbol in self.market.always_tracked() {
            if !self.duties.contains_key(&symbol)
                && let Some(symbol) = table.lookup(&symbol)
            {
                let duty = Duty {
                    symbol: symbol.clone(),
                    listed: self.market.clock.monotonic(),
                    known: 0,
                    held: None,
                };
                self.duties.insert(symbol.name.clone(), duty);
            }
        }
        if self.market.is_connected() {
            self.able_at = Some(self.now());
        }
    }

    /// Whether this node can write what it is asked to: a node that has just started would only keep others from it.
    fn is_able(&self) -> bool {
        let recent = |at: Instant| self.now().saturating_duration_since(at) < UNABLE_AFTER;
        self.able_at.is_some_and(recent) && self.duties.values().all(|duty| duty.is_warm(&self.market))
    }

    async fn round(&mut self) -> Result<(), Unavailable> {
        if self.duties.is_empty() {
            return Ok(());
        }
        let able = self.is_able();
        self.nodes = self.cache.nodes(able.then_some(&self.node)).await?;
        if !able && self.nodes.iter().any(|node| *node != self.node) {
            return self.hand_over_all().await;
        }
        self.claim().await?;
        self.write().await
    }

    async fn claim(&mut self) -> Result<(), Unavailable> {
        let warm = self.duties.values().filter(|duty| duty.is_warm(&self.market));
        let claims: Vec<Claim> = warm.map(|duty| self.claim_of(duty)).collect();
        if claims.is_empty() {
            return Ok(());
        }
        let leases = self.cache.claim(&self.node, &claims).await?;
        let now = self.now();
        let mut unwanted = Vec::new();
        for (claim, lease) in claims.iter().zip(leases) {
            let first = first_choice(&claim.symbol, &self.nodes);
            let Some(duty) = self.duties.get_mut(&claim.symbol) else {
                continue;
            };
            if let Some(token) = duty.leased(lease, first, now) {
                unwanted.push((claim.symbol.clone(), token));
            }
        }
        let held = self.duties.values().filter(|duty| duty.held.is_some()).count();
        metrics::gauge!("tribune_report_symbols_written").set(held as f64);
        if unwanted.is_empty() {
            return Ok(());
        }
        self.cache.release(&self.node, &unwanted, false).await
    }

    fn claim_of(&self, duty: &Duty) -> Claim {
        let is_first = first_choice(&duty.symbol.name, &self.nodes) == Some(&self.node);
        Claim {
            symbol: duty.symbol.name.clone(),
            eagerness: if is_first { Eagerness::First } else { Eagerness::IfLeft },
            floor: duty.known,
        }
    }

    async fn write(&mut self) -> Result<(), Unavailable> {
        let writes = self.compute().await;
        if writes.is_empty() {
            return Ok(());
        }
        let outcomes = self.cache.write(&writes).await?;
        for (write, outcome) in writes.iter().zip(outcomes) {
            if let Written::Refused { token } = outcome
                && let Some(duty) = self.duties.get_mut(write.report.symbol.as_str())
            {
                duty.lose(token, "a write was refused");
            }
        }
        Ok(())
    }

    /// Off the threads that answer callers.
    async fn compute(&mut self) -> Vec<Write> {
        let (market, node) = (self.market.clone(), self.node.clone());
        let mut duties = std::mem::take(&mut self.duties);
        let computed = tokio::task::spawn_blocking(move || {
            let held = duties.values_mut().filter(|duty| duty.held.is_some());
            let writes: Vec<Write> = held.filter_map(|duty| duty.report(&market, &node)).collect();
            (duties, writes)
        });
        match computed.await {
            Ok((duties, writes)) => {
                self.duties = duties;
                writes
            }
            Err(error) => {
                // The duties went with it: they are listed again, and their leases run out.
                tracing::error!(%error, "reports could not be computed");
                Vec::new()
            }
        }
    }

    async fn hand_over_all(&mut self) -> Result<(), Unavailable> {
        let leases = self.take_leases();
        if leases.is_empty() {
            return Ok(());
        }
        tracing::warn!(
            symbols = leases.len(),
            "the exchange's streams are gone: other nodes write the reports meanwhile"
        );
        self.cache.release(&self.node, &leases, true).await
    }

    fn take_leases(&mut self) -> Vec<(Arc<str>, Token)> {
        let taken = self.duties.values_mut().filter_map(|duty| {
            let held = duty.held.take()?;
            Some((duty.symbol.name.clone(), held.token))
        });
        taken.collect()
    }

    async fn leave(&mut self) {
        let leases = self.take_leases();
        if let Err(unavailable) = self.cache.release(&self.node, &leases, true).await {
            tracing::debug!(%unavailable, "leases were not given up and run out by themselves");
        }
    }

    /// One line when it begins and one when it ends, not four a second.
    fn note(&mut self, outcome: Result<(), Unavailable>) {
        match (outcome, &self.trouble) {
            (Ok(()), Some(_)) => {
                tracing::info!(place = self.cache.place(), "reports are written again");
                self.trouble = None;
            }
            (Err(unavailable), None) => {
                tracing::warn!(%unavailable, "reports cannot be written; trying again");
                self.trouble = Some(unavailable);
            }
            _ => {}
        }
    }
}

impl Duty {
    /// Whether its book has come, or was waited for long enough.
    fn is_warm(&self, market: &Market) -> bool {
        let waited = market.clock.monotonic().saturating_duration_since(self.listed);
        let has_come = |published: Arc<Published>| published.status().state != BookState::Warming;
        waited >= WARM_WITHIN || market.feed.lookup(&self.symbol.name).is_some_and(has_come)
    }

    /// Takes note of a lease; gives the token of one that is to be given up for another node.
    fn leased(&mut self, lease: Lease, first: Option<&NodeId>, now: Instant) -> Option<Token> {
        match lease {
            Lease::Taken { token } => {
                metrics::counter!("tribune_report_lease_changes_total", "change" => "taken").increment(1);
                tracing::debug!(symbol = %self.symbol.name, token, "writing the reports of a symbol");
                self.known = token;
                self.held = Some(Held {
                    token,
                    sequence: 0,
                    since: now,
                    slow: Slow::default(),
                    slow_due: now,
                });
                None
            }
            Lease::Renewed { token, wanted_by } => {
                self.known = self.known.max(token);
                let Some(held) = &self.held else {
                    // Taken in an answer that did not arrive: what was written with it is not known.
                    return Some(token);
                };
                let is_due = now.saturating_duration_since(held.since) >= MIN_HOLD;
                let is_wanted = wanted_by.is_some_and(|node| first == Some(&node));
                if !is_due || !is_wanted {
                    return None;
                }
                metrics::counter!("tribune_report_lease_changes_total", "change" => "handed_over").increment(1);
                self.held = None;
                Some(token)
            }
            Lease::Other { token, .. } => {
                self.lose(token, "another node writes the reports of a symbol");
                None
            }
            Lease::Free => {
                self.lose(self.known, "a lease ran out");
                None
            }
        }
    }

    fn lose(&mut self, token: Token, why: &'static str) {
        self.known = self.known.max(token);
        if self.held.take().is_some() {
            metrics::counter!("tribune_report_lease_changes_total", "change" => "lost").increment(1);
            tracing::debug!(symbol = %self.symbol.name, token, why, "no longer writing the reports of a symbol");
        }
    }

    fn report(&mut self, market: &Market, node: &NodeId) -> Option<Write> {
        let held = self.held.as_mut()?;
        let published = market.feed.lookup(&self.symbol.name)?;
        let now = Moment::now(&*market.clock);
        let inputs = Inputs {
            symbol: &self.symbol,
            published: &published,
            day: market.feed.board.lookup(&self.symbol.name),
            now,
            exchange_now: market.exchange_now(),
            simulated: market.simulated(),
        };
        if now.monotonic >= held.slow_due {
            held.slow = compute::slow(&inputs);
            held.slow_due = now.monotonic + SLOW_EVERY;
        }
        held.sequence += 1;
        let report = compute::report(&inputs, &held.slow, (node, held.token, held.sequence));
        let took = market.clock.monotonic().saturating_duration_since(now.monotonic);
        metrics::histogram!("tribune_report_compute_seconds").record(took.as_secs_f64());
        Some(Write {
            report: Arc::new(report),
            generated: now.monotonic,
        })
    }
}
