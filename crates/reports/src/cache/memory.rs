//! Reports in the memory of one process. It has one node, which writes in order: a lease is granted to whoever asks, and
//! holds until it is released.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use parking_lot::Mutex;
use tribune_core::Clock;

use super::{Claim, Found, Generated, Indexed, Lease, NodeId, ReportCache, Timing, Token, Unavailable};
use crate::aged::AgedReport;

/// The default cache, shared with no other process.
pub struct MemoryCache {
    clock: Arc<dyn Clock>,
    timing: Timing,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reports: HashMap<Arc<str>, LastReport>,
    /// The token of each symbol that is written.
    tokens: HashMap<Arc<str>, Token>,
    /// The largest token ever granted.
    last_token: Token,
}

/// The last report of a symbol. The index needs it for longer than readers do.
struct LastReport {
    last: Generated,
    written: Instant,
}

impl MemoryCache {
    pub fn new(clock: Arc<dyn Clock>, timing: Timing) -> Self {
        Self { clock, timing, state: Mutex::default() }
    }
}

impl State {
    fn claim(&mut self, symbol: &Arc<str>) -> Lease {
        if let Some(token) = self.tokens.get(symbol) {
            return Lease::Renewed(*token);
        }
        self.last_token += 1;
        self.tokens.insert(symbol.clone(), self.last_token);
        Lease::Taken(self.last_token)
    }

    fn write(&mut self, write: &Generated, now: Instant) -> bool {
        let symbol = write.report.symbol.as_str();
        let is_in_force = self.tokens.get(symbol) == Some(&write.report.writer.writer_token);
        if is_in_force {
            self.reports.insert(symbol.into(), LastReport { last: write.clone(), written: now });
        }
        is_in_force
    }
}

#[async_trait]
impl ReportCache for MemoryCache {
    async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable> {
        let state = self.state.lock();
        let now = self.clock.monotonic();
        let found = |symbol: &Arc<str>| {
            let Generated { report, at } = &state.reports.get(symbol)?.last;
            let (report, since) = (report.clone(), now.saturating_duration_since(*at));
            (since < self.timing.keep_report).then_some(AgedReport { report, since })
        };
        Ok(symbols.iter().map(|symbol| Ok(found(symbol))).collect())
    }

    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable> {
        let now = self.clock.monotonic();
        let mut state = self.state.lock();
        state.reports.retain(|_, last| now.saturating_duration_since(last.written) < self.timing.keep_symbol);
        let entries = state.reports.iter().map(|(symbol, LastReport { last, written })| Indexed {
            symbol: symbol.clone(),
            base: last.report.base_asset.as_str().into(),
            quote: last.report.quote_asset.as_str().into(),
            age: now.saturating_duration_since(*written),
        });
        let mut indexed: Vec<Indexed> = entries.collect();
        indexed.sort_by(|one, other| one.symbol.cmp(&other.symbol));
        Ok(indexed)
    }

    async fn claim(&self, _: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable> {
        let mut state = self.state.lock();
        Ok(claims.iter().map(|claim| state.claim(&claim.symbol)).collect())
    }

    async fn write(&self, writes: &[Generated]) -> Result<Vec<bool>, Unavailable> {
        let mut state = self.state.lock();
        let now = self.clock.monotonic();
        Ok(writes.iter().map(|write| state.write(write, now)).collect())
    }

    async fn release(&self, _: &NodeId, leases: &[(Arc<str>, Token)]) -> Result<(), Unavailable> {
        let tokens = &mut self.state.lock().tokens;
        tokens.retain(|symbol, token| !leases.iter().any(|(of, released)| (of, released) == (symbol, &*token)));
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
    async fn lease_holds_until_it_is_released() {
        let clock = Arc::new(ManualClock::at(0));
        let cache = MemoryCache::new(clock.clone(), Timing::DEFAULT);
        let node = NodeId::from("a");
        let claim = [Claim { symbol: "BTCUSDT".into(), is_fresh: true }];
        assert_eq!(cache.claim(&node, &claim).await.expect("memory"), [Lease::Taken(1)]);
        clock.advance_ms(3_600_000);
        assert_eq!(cache.claim(&node, &claim).await.expect("memory"), [Lease::Renewed(1)]);
    }
}
