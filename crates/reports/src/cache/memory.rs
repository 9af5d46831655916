//! Reports in the memory of one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use tribune_core::Clock;

use super::{
    Claim, Eagerness, Found, Indexed, Lease, MAX_TOKEN, NodeId, ReportCache, Stored, Timing, Token, Unavailable, Write,
    Written,
};
use crate::model::Report;

/// The default cache, shared with no other process.
pub struct MemoryCache {
    clock: Arc<dyn Clock>,
    timing: Timing,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reports: HashMap<Arc<str>, LastReport>,
    writers: HashMap<Arc<str>, Writer>,
    /// Until when each counts as alive.
    nodes: HashMap<NodeId, Instant>,
    /// The largest token ever granted: the next is larger, even after entries expire.
    last_token: Token,
}

/// The last report of a symbol. The index needs it for longer than readers do.
struct LastReport {
    report: Arc<Report>,
    generated: Instant,
    written: Instant,
}

/// The lease of a symbol.
struct Writer {
    /// The last holder, whether the lease is in force or not.
    node: Option<NodeId>,
    token: Token,
    /// Of the last report that was stored with this token.
    sequence: Option<u64>,
    /// When the lease ends or ended.
    until: Instant,
    /// Whether the holder has no fresh data.
    is_stale: bool,
    wanted: Option<(NodeId, Instant)>,
}

impl MemoryCache {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_timing(clock, Timing::DEFAULT)
    }

    pub fn with_timing(clock: Arc<dyn Clock>, timing: Timing) -> Self {
        Self { clock, timing, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn free(now: Instant) -> Self {
        Self { node: None, token: 0, sequence: None, until: now, is_stale: false, wanted: None }
    }

    /// The holder of a lease that is in force.
    fn holder(&self, now: Instant) -> Option<&NodeId> {
        self.node.as_ref().filter(|_| now < self.until)
    }

    fn is_of(&self, node: &str, token: Token, now: Instant) -> bool {
        self.token == token && self.holder(now).is_some_and(|holder| *holder.0 == *node)
    }

    fn renew(&mut self, claim: &Claim, now: Instant, timing: &Timing) {
        self.until = now + timing.lease;
        self.is_stale = !claim.is_fresh;
    }
}

impl State {
    fn claim(&mut self, node: &NodeId, claim: &Claim, now: Instant, timing: &Timing) -> Lease {
        let symbol = claim.symbol.clone();
        let writer = self.writers.entry(symbol).or_insert_with(|| Writer::free(now));
        let is_first = claim.eagerness == Eagerness::First;
        let is_left = writer.is_stale && claim.is_fresh;
        let token = writer.token;
        match writer.holder(now).cloned() {
            Some(holder) if holder == *node => {
                writer.renew(claim, now, timing);
                let wanted = writer.wanted.as_ref().filter(|(by, until)| now < *until && by != node);
                Lease::Renewed { token, wanted_by: wanted.map(|(by, _)| by.clone()) }
            }
            Some(holder) if !is_left => {
                if is_first {
                    writer.wanted = Some((node.clone(), now + timing.node_alive));
                }
                Lease::Other { node: holder, token }
            }
            _ if is_left || is_first || now.saturating_duration_since(writer.until) >= timing.left_free => {
                let floor = if claim.floor > MAX_TOKEN { 0 } else { claim.floor };
                let token = self.last_token.max(floor) + 1;
                self.last_token = token;
                (writer.node, writer.token, writer.sequence) = (Some(node.clone()), token, None);
                writer.renew(claim, now, timing);
                Lease::Taken { token }
            }
            _ => Lease::Free,
        }
    }

    fn write(&mut self, write: &Write, now: Instant) -> Written {
        let Write { report, generated } = write;
        let Some(writer) = self.writers.get_mut(report.symbol.as_str()) else {
            return Written::Refused { token: 0 };
        };
        let author = &report.writer;
        let is_newer = writer.sequence.is_none_or(|last| author.sequence > last);
        if !is_newer || !writer.is_of(&author.node_id, author.writer_token, now) {
            let token = writer.holder(now).map_or(0, |_| writer.token);
            return Written::Refused { token };
        }
        writer.sequence = Some(author.sequence);
        let last = LastReport { report: report.clone(), generated: *generated, written: now };
        self.reports.insert(report.symbol.as_str().into(), last);
        Written::Stored
    }

    fn drop_expired(&mut self, now: Instant, timing: &Timing) {
        let is_young = |since: Instant| now.saturating_duration_since(since) < timing.keep_symbol;
        self.reports.retain(|_, last| is_young(last.written));
        self.writers.retain(|_, writer| is_young(writer.until));
    }
}

#[async_trait]
impl ReportCache for MemoryCache {
    async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable> {
        let state = self.state();
        let now = self.clock.monotonic();
        let found = |symbol| {
            let last: &LastReport = state.reports.get(symbol)?;
            let age = now.saturating_duration_since(last.generated);
            let report = last.report.clone();
            (age < self.timing.keep_report).then_some(Found::Report(Stored { report, age }))
        };
        let answer = |symbol| found(symbol).unwrap_or(Found::Nothing);
        Ok(symbols.iter().map(answer).collect())
    }

    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable> {
        let now = self.clock.monotonic();
        let state = self.state();
        let entries = state.reports.iter().map(|(symbol, last)| Indexed {
            symbol: symbol.clone(),
            base: last.report.base_asset.as_str().into(),
            quote: last.report.quote_asset.as_str().into(),
            age: now.saturating_duration_since(last.written),
        });
        let mut indexed: Vec<Indexed> = entries.filter(|entry| entry.age < self.timing.keep_symbol).collect();
        indexed.sort_by(|one, other| one.symbol.cmp(&other.symbol));
        Ok(indexed)
    }

    async fn nodes(&self, alive: Option<&NodeId>) -> Result<Vec<NodeId>, Unavailable> {
        let mut state = self.state();
        let now = self.clock.monotonic();
        if let Some(node) = alive {
            state.nodes.insert(node.clone(), now + self.timing.node_alive);
        }
        state.nodes.retain(|_, until| now < *until);
        let mut nodes: Vec<NodeId> = state.nodes.keys().cloned().collect();
        nodes.sort();
        Ok(nodes)
    }

    async fn claim(&self, node: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable> {
        let mut state = self.state();
        let now = self.clock.monotonic();
        state.drop_expired(now, &self.timing);
        let lease = |claim| state.claim(node, claim, now, &self.timing);
        Ok(claims.iter().map(lease).collect())
    }

    async fn write(&self, writes: &[Write]) -> Result<Vec<Written>, Unavailable> {
        let mut state = self.state();
        let now = self.clock.monotonic();
        Ok(writes.iter().map(|write| state.write(write, now)).collect())
    }

    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)], leaving: bool) -> Result<(), Unavailable> {
        let mut state = self.state();
        let now = self.clock.monotonic();
        for (symbol, token) in leases {
            let writer = state.writers.get_mut(symbol);
            if let Some(writer) = writer.filter(|writer| writer.is_of(&node.0, *token, now)) {
                (writer.node, writer.until) = (None, now);
            }
        }
        if leaving {
            state.nodes.remove(node);
        }
        Ok(())
    }

    fn place(&self) -> &str {
        "the memory of this process"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::ManualClock;

    #[tokio::test]
    async fn tokens_grow_after_entries_expire() {
        let clock = Arc::new(ManualClock::at(0));
        let cache = MemoryCache::new(clock.clone());
        let node = NodeId("a".into());
        let claim = [Claim { symbol: "BTCUSDT".into(), eagerness: Eagerness::First, is_fresh: true, floor: 41 }];
        let taken = cache.claim(&node, &claim).await.expect("memory");
        assert_eq!(taken, [Lease::Taken { token: 42 }]);
        clock.advance_ms(2 * 24 * 3600 * 1000);
        cache.claim(&node, &[]).await.expect("memory");
        assert!(cache.state().writers.is_empty());
        let claim = [Claim { floor: u64::MAX, ..claim[0].clone() }];
        let taken = cache.claim(&node, &claim).await.expect("memory");
        assert_eq!(taken, [Lease::Taken { token: 43 }], "nobody can have had that floor");
    }
}
