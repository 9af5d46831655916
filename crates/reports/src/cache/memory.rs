//! Reports in the memory of one process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use parking_lot::Mutex;
use tribune_core::Clock;

use super::{Claim, Found, Indexed, Lease, NodeId, ReportCache, Timing, Token, Unavailable, Write};
use crate::aged::AgedReport;
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
    /// The largest token ever granted: the next is larger, even after entries expire.
    last_token: Token,
}

/// The last report of a symbol. The index needs it for longer than readers do.
struct LastReport {
    report: Arc<Report>,
    generated: Instant,
    written: Instant,
}

/// The last lease of a symbol.
struct Writer {
    node: NodeId,
    token: Token,
    /// Of the last report that was stored with this token.
    sequence: u64,
    /// When the lease ends or ended.
    until: Instant,
    is_fresh: bool,
}

impl MemoryCache {
    pub fn new(clock: Arc<dyn Clock>, timing: Timing) -> Self {
        Self { clock, timing, state: Mutex::default() }
    }
}

impl State {
    fn claim(&mut self, node: &NodeId, claim: &Claim, now: Instant, timing: &Timing) -> Lease {
        let until = now + timing.lease;
        if let Some(writer) = self.writers.get_mut(&claim.symbol).filter(|writer| now < writer.until) {
            if writer.node == *node {
                (writer.until, writer.is_fresh) = (until, claim.is_fresh);
                return Lease::Renewed(writer.token);
            }
            // A node without fresh data gives way to one that has some.
            if writer.is_fresh || !claim.is_fresh {
                return Lease::Other;
            }
        }
        self.last_token += 1;
        let token = self.last_token;
        let writer = Writer { node: node.clone(), token, sequence: 0, until, is_fresh: claim.is_fresh };
        self.writers.insert(claim.symbol.clone(), writer);
        Lease::Taken(token)
    }

    fn write(&mut self, Write { report, generated }: &Write, now: Instant) -> bool {
        let author = &report.writer;
        let may_write = |writer: &&mut Writer| {
            now < writer.until
                && *writer.node == *author.node_id
                && writer.token == author.writer_token
                && writer.sequence <= author.sequence
        };
        let Some(writer) = self.writers.get_mut(report.symbol.as_str()).filter(may_write) else {
            return false;
        };
        writer.sequence = author.sequence;
        let last = LastReport { report: report.clone(), generated: *generated, written: now };
        self.reports.insert(report.symbol.as_str().into(), last);
        true
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
        let state = self.state.lock();
        let now = self.clock.monotonic();
        let found = |symbol| {
            let last: &LastReport = state.reports.get(symbol)?;
            let since = now.saturating_duration_since(last.generated);
            let report = last.report.clone();
            (since < self.timing.keep_report).then_some(AgedReport { report, since })
        };
        Ok(symbols.iter().map(|symbol| Ok(found(symbol))).collect())
    }

    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable> {
        let now = self.clock.monotonic();
        let state = self.state.lock();
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

    async fn claim(&self, node: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable> {
        let mut state = self.state.lock();
        let now = self.clock.monotonic();
        state.drop_expired(now, &self.timing);
        let lease = |claim| state.claim(node, claim, now, &self.timing);
        Ok(claims.iter().map(lease).collect())
    }

    async fn write(&self, writes: &[Write]) -> Result<Vec<bool>, Unavailable> {
        let mut state = self.state.lock();
        let now = self.clock.monotonic();
        Ok(writes.iter().map(|write| state.write(write, now)).collect())
    }

    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)]) -> Result<(), Unavailable> {
        let mut state = self.state.lock();
        let now = self.clock.monotonic();
        for (symbol, token) in leases {
            let is_its_own = |writer: &&mut Writer| writer.node == *node && writer.token == *token;
            if let Some(writer) = state.writers.get_mut(symbol).filter(is_its_own) {
                writer.until = writer.until.min(now);
            }
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
        let cache = MemoryCache::new(clock.clone(), Timing::DEFAULT);
        let node = NodeId::from("a");
        let claim = [Claim { symbol: "BTCUSDT".into(), is_fresh: true }];
        let taken = cache.claim(&node, &claim).await.expect("memory");
        assert_eq!(taken, [Lease::Taken(1)]);
        clock.advance_ms(2 * 24 * 3600 * 1000);
        cache.claim(&node, &[]).await.expect("memory");
        assert!(cache.state.lock().writers.is_empty());
        let taken = cache.claim(&node, &claim).await.expect("memory");
        assert_eq!(taken, [Lease::Taken(2)]);
    }
}
