//! Reports in the memory of one process.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tribune_core::Clock;

use super::{
    Claim, Eagerness, Found, Indexed, Lease, MAX_TOKEN, NodeId, ReportCache, Stored, Timing, Token, Unavailable, Write,
    Written,
};
use crate::model::Report;

/// How often expired entries are dropped.
const TIDY: Duration = Duration::from_secs(60);

/// The default cache, shared with no other process.
pub struct MemoryCache {
    clock: Arc<dyn Clock>,
    timing: Timing,
    state: RwLock<State>,
}

struct State {
    reports: HashMap<Arc<str>, LastReport>,
    writers: HashMap<Arc<str>, Writer>,
    /// Until when each counts as alive.
    nodes: HashMap<NodeId, Instant>,
    /// The largest token ever granted: the next is larger, even after entries expire.
    last_token: Token,
    tidied: Instant,
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
        let state = State {
            reports: HashMap::new(),
            writers: HashMap::new(),
            nodes: HashMap::new(),
            last_token: 0,
            tidied: clock.monotonic(),
        };
        Self {
            clock,
            timing,
            state: RwLock::new(state),
        }
    }

    fn reading(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn free(now: Instant) -> Self {
        Self {
            node: None,
            token: 0,
            sequence: None,
            until: now,
            is_stale: false,
            wanted: None,
        }
    }

    fn in_force(&self, now: Instant) -> Option<&NodeId> {
        self.node.as_ref().filter(|_| now < self.until)
    }

    fn is_of(&self, node: &str, token: Token, now: Instant) -> bool {
        self.token == token && self.in_force(now).is_some_and(|held_by| *held_by.0 == *node)
    }

    fn wanted_by(&self, now: Instant) -> Option<&NodeId> {
        let (node, until) = self.wanted.as_ref()?;
        Some(node).filter(|_| now < *until)
    }
}

impl State {
    fn claim(&mut self, node: &NodeId, claim: &Claim, now: Instant, timing: &Timing) -> Lease {
        let writer = self
            .writers
            .entry(claim.symbol.clone())
            .or_insert_with(|| Writer::free(now));
        let first = claim.eagerness == Eagerness::First;
        let is_left = writer.is_stale && claim.is_fresh;
        match writer.in_force(now).cloned() {
            Some(held_by) if held_by == *node => {
                writer.until = now + timing.lease;
                writer.is_stale = !claim.is_fresh;
                Lease::Renewed {
                    token: writer.token,
                    wanted_by: writer.wanted_by(now).filter(|by| *by != node).cloned(),
                }
            }
            Some(held_by) if !is_left => {
                if first {
                    writer.wanted = Some((node.clone(), now + timing.node_alive));
                }
                Lease::Other {
                    node: held_by,
                    token: writer.token,
                }
            }
            _ if is_left || first || now.saturating_duration_since(writer.until) >= timing.left_free => {
                let floor = if claim.floor > MAX_TOKEN { 0 } else { claim.floor };
                let token = self.last_token.max(floor) + 1;
                self.last_token = token;
                writer.node = Some(node.clone());
                writer.token = token;
                writer.sequence = None;
                writer.until = now + timing.lease;
                writer.is_stale = !claim.is_fresh;
                Lease::Taken { token }
            }
            _ => Lease::Free,
        }
    }

    fn write(&mut self, write: &Write, now: Instant) -> Written {
        let report = &write.report;
        let Some(writer) = self.writers.get_mut(report.symbol.as_str()) else {
            return Written::Refused { token: 0 };
        };
        let author = &report.writer;
        let newer = writer.sequence.is_none_or(|last| author.sequence > last);
        if !newer || !writer.is_of(&author.node_id, author.writer_token, now) {
            let token = writer.in_force(now).map_or(0, |_| writer.token);
            return Written::Refused { token };
        }
        writer.sequence = Some(author.sequence);
        let last = LastReport {
            report: report.clone(),
            generated: write.generated,
            written: now,
        };
        self.reports.insert(report.symbol.as_str().into(), last);
        Written::Stored
    }

    fn tidy(&mut self, now: Instant, timing: &Timing) {
        if now.saturating_duration_since(self.tidied) < TIDY {
            return;
        }
        self.tidied = now;
        let young = |since: Instant, keep| now.saturating_duration_since(since) < keep;
        self.reports.retain(|_, last| young(last.written, timing.keep_symbol));
        self.writers.retain(|_, writer| young(writer.until, timing.keep_symbol));
    }
}

#[async_trait]
impl ReportCache for MemoryCache {
    async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable> {
        let state = self.reading();
        let now = self.clock.monotonic();
        let found = |symbol| {
            let last: &LastReport = state.reports.get(symbol)?;
            let age = now.saturating_duration_since(last.generated);
            let report = last.report.clone();
            (age < self.timing.keep_report).then_some(Found::Report(Stored { report, age }))
        };
        Ok(symbols
            .iter()
            .map(|symbol| found(symbol).unwrap_or(Found::Nothing))
            .collect())
    }

    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable> {
        let now = self.clock.monotonic();
        let mut indexed: Vec<Indexed> = self
            .reading()
            .reports
            .iter()
            .map(|(symbol, last)| Indexed {
                symbol: symbol.clone(),
                base: last.report.base_asset.as_str().into(),
                quote: last.report.quote_asset.as_str().into(),
                age: now.saturating_duration_since(last.written),
            })
            .filter(|indexed| indexed.age < self.timing.keep_symbol)
            .collect();
        indexed.sort_by(|one, other| one.symbol.cmp(&other.symbol));
        Ok(indexed)
    }

    async fn nodes(&self, alive: Option<&NodeId>) -> Result<Vec<NodeId>, Unavailable> {
        let mut state = self.writing();
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
        let mut state = self.writing();
        let now = self.clock.monotonic();
        state.tidy(now, &self.timing);
        Ok(claims
            .iter()
            .map(|claim| state.claim(node, claim, now, &self.timing))
            .collect())
    }

    async fn write(&self, writes: &[Write]) -> Result<Vec<Written>, Unavailable> {
        let mut state = self.writing();
        let now = self.clock.monotonic();
        Ok(writes.iter().map(|write| state.write(write, now)).collect())
    }

    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)], leaving: bool) -> Result<(), Unavailable> {
        let mut state = self.writing();
        let now = self.clock.monotonic();
        for (symbol, token) in leases {
            if let Some(writer) = state.writers.get_mut(symbol)
                && writer.is_of(&node.0, *token, now)
            {
                writer.node = None;
                writer.until = now;
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
        let claim = [Claim {
            symbol: "BTCUSDT".into(),
            eagerness: Eagerness::First,
            is_fresh: true,
            floor: 41,
        }];
        let taken = cache.claim(&node, &claim).await.expect("memory");
        assert_eq!(taken, [Lease::Taken { token: 42 }]);
        clock.advance_ms(2 * 24 * 3600 * 1000);
        cache.claim(&node, &[]).await.expect("memory");
        assert!(cache.reading().writers.is_empty());
        let claim = [Claim {
            floor: u64::MAX,
            ..claim[0].clone()
        }];
        let taken = cache.claim(&node, &claim).await.expect("memory");
        assert_eq!(taken, [Lease::Taken { token: 43 }], "nobody can have had that floor");
    }
}
