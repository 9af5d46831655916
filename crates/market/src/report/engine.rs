//! The loop that keeps reports current: who writes what, computing, writing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cache::{Claim, Eagerness, Lease, NodeId, ReportCache, Token, Unavailable, Write, Written};
use super::compute::{self, Inputs, Slow};
use super::freshness::FRESH;
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
/// A book that was confirmed longer ago than this is better written by a node that has a fresher one.
const FRESH_WITHIN: Duration = Duration::from_secs(2);
/// A book that has not come by then is reported as it is: not there.
const WARM_WITHIN: Duration = Duration::from_secs(3);
/// How long a stop waits for leases to be given up.
const LEAVE_WITHIN: Duration = Duration::from_millis(700);

/// What keeps an engine from writing, for those who ask how it is.
#[derive(Debug, Default)]
pub struct WritingTrouble(Mutex<Option<String>>);

impl WritingTrouble {
    pub fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, trouble: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// A running engine. Ends when it is stopped or dropped; dropped, its leases run out by themselves.
pub struct Engine {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Engine {
    /// Must be called within a runtime.
    pub fn start(market: Arc<Market>, cache: Arc<dyn ReportCache>, node: NodeId, trouble: Arc<WritingTrouble>) -> Self {
        let stop = CancellationToken::new();
        let writing = Writing {
            market,
            cache,
            node,
            duties: HashMap::new(),
            nodes: Vec::new(),
            has_warmed: false,
            trouble,
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
    /// Since when its data has been older than it should be.
    old_since: Option<Instant>,
    /// The largest token that was seen of it.
    known: Token,
    held: Option<Held>,
    /// It could not be computed: a fault of ours, told once.
    is_broken: bool,
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
    /// Every book has come once: before that this node would only keep others from writing.
    has_warmed: bool,
    trouble: Arc<WritingTrouble>,
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
            let outcome = self.round().await;
            self.note(outcome);
        }
        self.leave().await;
    }

    fn now(&self) -> Instant {
        self.market.clock.monotonic()
    }

    /// The symbols that are always tracked; gives leases of those that no longer are.
    fn list_duties(&mut self) -> Vec<(Arc<str>, Token)> {
        let Some(table) = self.market.known_symbols() else {
            return Vec::new();
        };
        let now = self.now();
        let tracked: HashSet<Arc<str>> = self.market.always_tracked().into_iter().collect();
        let gone = self.duties.extract_if(|symbol, _| !tracked.contains(symbol));
        let given_up = gone.filter_map(|(symbol, duty)| Some((symbol, duty.held?.token)));
        let given_up = given_up.collect();
        for symbol in tracked {
            if !self.duties.contains_key(&symbol)
                && let Some(symbol) = table.lookup(&symbol)
            {
                let duty = Duty {
                    symbol: symbol.clone(),
                    listed: now,
                    old_since: None,
                    known: 0,
                    held: None,
                    is_broken: false,
                };
                self.duties.insert(symbol.name.clone(), duty);
            }
        }
        given_up
    }

    async fn round(&mut self) -> Result<(), Unavailable> {
        let given_up = self.list_duties();
        if !given_up.is_empty() {
            self.cache.release(&self.node, &given_up, false).await?;
        }
        if self.duties.is_empty() {
            return Ok(());
        }
        self.has_warmed |= self.duties.values().all(|duty| duty.is_warm(&self.market));
        let is_fresh = |duty: &Duty| duty.is_fresh(&self.market);
        // A node that has nothing fresh to write is nobody's first choice.
        let is_able = self.has_warmed && self.duties.values().any(is_fresh);
        self.nodes = self.cache.nodes(is_able.then_some(&self.node)).await?;
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
        let is_fresh = duty.is_fresh(&self.market);
        let is_first = is_fresh && first_choice(&duty.symbol.name, &self.nodes) == Some(&self.node);
        Claim {
            symbol: duty.symbol.name.clone(),
            eagerness: if is_first { Eagerness::First } else { Eagerness::IfLeft },
            is_fresh,
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
            let writes: Vec<Write> = held.filter_map(|duty| duty.report_or_break(&market, &node)).collect();
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
    fn note(&self, outcome: Result<(), Unavailable>) {
        let had_trouble = self.trouble.get().is_some();
        match &outcome {
            Ok(()) if had_trouble => tracing::info!(place = self.cache.place(), "reports are written again"),
            Err(unavailable) if !had_trouble => {
                tracing::warn!(%unavailable, "reports cannot be written; trying again");
            }
            _ => {}
        }
        self.trouble
            .set(outcome.err().map(|unavailable| unavailable.to_string()));
    }
}

impl Duty {
    /// Whether its book was confirmed a moment ago.
    fn is_fresh(&self, market: &Market) -> bool {
        let is_recent = |published: Arc<Published>| {
            market
                .clock
                .monotonic()
                .saturating_duration_since(published.confirmed())
                < FRESH_WITHIN
        };
        market.feed.lookup(&self.symbol.name).is_some_and(is_recent)
    }

    /// Whether its book has come, or was waited for long enough.
    fn is_warm(&self, market: &Market) -> bool {
        if self.is_broken {
            return false;
        }
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
                let Some(held) = self.held.as_ref().filter(|held| held.token == token) else {
                    // Taken in an answer that did not arrive: what was written with it is not known.
                    self.held = None;
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

    /// A fault in one must not take the others with it.
    fn report_or_break(&mut self, market: &Market, node: &NodeId) -> Option<Write> {
        let report = std::panic::AssertUnwindSafe(|| self.report(market, node));
        match std::panic::catch_unwind(report) {
            Ok(write) => write,
            Err(_) => {
                self.is_broken = true;
                self.lose(self.known, "its report cannot be computed");
                tracing::error!(symbol = %self.symbol.name, "the report of a symbol cannot be computed: this node leaves it");
                None
            }
        }
    }

    fn report(&mut self, market: &Market, node: &NodeId) -> Option<Write> {
        let held = self.held.as_mut()?;
        let published = market.feed.lookup(&self.symbol.name)?;
        let now = Moment::now(&*market.clock);
        let is_old = now.monotonic.saturating_duration_since(published.confirmed()) > FRESH;
        self.old_since = self.old_since.or(Some(now.monotonic)).filter(|_| is_old);
        let inputs = Inputs {
            symbol: &self.symbol,
            published: &published,
            day: market.feed.board.lookup(&self.symbol.name),
            now,
            exchange_now: market.exchange_now(),
            simulated: market.simulated(),
            old_for: self
                .old_since
                .map_or(Duration::ZERO, |since| now.monotonic.saturating_duration_since(since)),
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
