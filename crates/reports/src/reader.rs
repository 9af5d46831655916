//! Reading reports: ages grow with the time since, and a reader never goes back to an older report.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tribune_core::Clock;

use super::aged::AgedReport;
use super::cache::{Generated, ReportCache, Timing, Unavailable};

/// A report generated this much later is newer, whatever its token and sequence say.
const SURELY_LATER: Duration = Duration::from_secs(5);

pub struct Reader {
    cache: Arc<dyn ReportCache>,
    clock: Arc<dyn Clock>,
    /// The newest report read of each symbol, generated then at the latest. Bounded by what the cache holds.
    newest: Mutex<HashMap<Arc<str>, Generated>>,
}

impl Reader {
    pub fn new(cache: Arc<dyn ReportCache>, clock: Arc<dyn Clock>) -> Self {
        Self { cache, clock, newest: Mutex::default() }
    }

    pub async fn read(&self, symbol: &Arc<str>) -> Result<Option<AgedReport>, Unavailable> {
        let readings = self.read_all(std::slice::from_ref(symbol)).await?;
        readings.into_iter().next().unwrap_or(Ok(None))
    }

    /// One result per symbol, in their order; a bad entry affects only its own symbol.
    pub async fn read_all(
        &self,
        symbols: &[Arc<str>],
    ) -> Result<Vec<Result<Option<AgedReport>, Unavailable>>, Unavailable> {
        let found = self.cache.read(symbols).await?;
        let now = self.clock.monotonic();
        let mut newest = self.newest.lock();
        let readings = symbols.iter().zip(found).map(|(symbol, found)| {
            let found = found.map_err(|why| {
                Unavailable(format!("the entry of {symbol} is not a report ({why}); its writer replaces it"))
            })?;
            // `None`: the cache may have lost it, and the last one read still holds; or older than this machine's uptime.
            let read = found
                .and_then(|AgedReport { report, since }| now.checked_sub(since).map(|at| Generated { report, at }));
            let kept = match (newest.remove(symbol), read) {
                (Some(known), Some(read)) => Some(newer(known, read)),
                (known, read) => known.or(read),
            };
            let since = |kept: &Generated| now.saturating_duration_since(kept.at);
            Ok(kept.filter(|kept| since(kept) < Timing::DEFAULT.keep_report).map(|kept| {
                newest.insert(symbol.clone(), kept.clone());
                AgedReport { since: since(&kept), report: kept.report }
            }))
        });
        Ok(readings.collect())
    }
}

fn newer(known: Generated, read: Generated) -> Generated {
    let order = |of: &Generated| (of.report.writer.writer_token, of.report.writer.sequence);
    match order(&known).cmp(&order(&read)) {
        // The same report: it cannot have become younger.
        Ordering::Equal => Generated { at: known.at.min(read.at), ..known },
        // Tokens go back if the cache has lost everything and its clock was set back; our clock does not.
        Ordering::Greater if read.at < known.at + SURELY_LATER => known,
        _ => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;

    use crate::cache::{Claim, Found, Indexed, Lease, NodeId, Token};
    use crate::model::{IngestionStatus, Report};
    use crate::tests::fixture;
    use tribune_binance::testing::ManualClock;

    /// A cache with prepared answers.
    struct Prepared(Mutex<Vec<Result<Found, Unavailable>>>);

    #[async_trait]
    impl ReportCache for Prepared {
        async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable> {
            let mut answers = self.0.lock();
            let answer = answers.remove(0)?;
            Ok(vec![answer; symbols.len()])
        }
        async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable> {
            Ok(Vec::new())
        }
        async fn claim(&self, _: &NodeId, _: &[Claim]) -> Result<Vec<Lease>, Unavailable> {
            Ok(Vec::new())
        }
        async fn write(&self, _: &[Generated]) -> Result<Vec<bool>, Unavailable> {
            Ok(Vec::new())
        }
        async fn release(&self, _: &NodeId, _: &[(Arc<str>, Token)]) -> Result<(), Unavailable> {
            Ok(())
        }
        fn place(&self) -> &str {
            "prepared"
        }
    }

    fn stored(token: u64, sequence: u64, age_ms: u64) -> Result<Found, Unavailable> {
        let mut report = fixture::full();
        report.writer.writer_token = token;
        report.writer.sequence = sequence;
        report.data_age_ms = 10;
        report.ingestion.status = IngestionStatus::Ok;
        report.ingestion.reason = None;
        Ok(Ok(Some(AgedReport { report: Arc::new(report), since: Duration::from_millis(age_ms) })))
    }

    fn reader(answers: Vec<Result<Found, Unavailable>>) -> (Reader, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(1_000_000));
        // The clock needs a past.
        clock.advance_ms(1_000_000);
        (Reader::new(Arc::new(Prepared(Mutex::new(answers))), clock.clone()), clock)
    }

    async fn read(reader: &Reader) -> Report {
        match reader.read(&"BTCUSDT".into()).await {
            Ok(Some(report)) => report.now(),
            other => panic!("{other:?}"),
        }
    }

    fn order(report: &Report) -> (u64, u64) {
        (report.writer.writer_token, report.writer.sequence)
    }

    #[tokio::test]
    async fn ages_grow_and_never_shrink() {
        let (reader, clock) = reader(vec![stored(1, 1, 200), stored(1, 1, 100), stored(1, 2, 5)]);
        let first = read(&reader).await;
        assert_eq!(first.data_age_ms, 210);
        clock.advance_ms(300);
        let again = read(&reader).await;
        assert_eq!(again.data_age_ms, 510, "by our clock, whatever the cache says");
        assert_eq!(again.sections.book.age_ms.expect("an age") - first.sections.book.age_ms.expect("an age"), 300);
        assert_eq!(read(&reader).await.data_age_ms, 15, "another report");
    }

    #[tokio::test]
    async fn reader_never_goes_back_to_an_older_report() {
        let (reader, _) = reader(vec![stored(7, 3, 0), stored(6, 900, 0), stored(7, 2, 0), stored(8, 1, 0)]);
        let mut orders = Vec::new();
        for _ in 0..4 {
            orders.push(order(&read(&reader).await));
        }
        assert_eq!(orders, [(7, 3), (7, 3), (7, 3), (8, 1)]);
    }

    #[tokio::test]
    async fn reader_accepts_lower_tokens_after_a_while() {
        let (reader, clock) = reader(vec![stored(900, 1, 0), stored(5, 1, 0), stored(5, 20, 0)]);
        assert_eq!(order(&read(&reader).await), (900, 1));
        clock.advance_ms(4_000);
        assert_eq!(order(&read(&reader).await), (900, 1), "it may be a late one");
        clock.advance_ms(1_001);
        assert_eq!(order(&read(&reader).await), (5, 20));
    }

    #[tokio::test]
    async fn unwritten_report_is_degraded_then_down_then_gone() {
        let answers = vec![stored(1, 1, 0), Ok(Ok(None)), Ok(Ok(None)), Ok(Ok(None))];
        let (reader, clock) = reader(answers);
        assert_eq!(read(&reader).await.ingestion.status, IngestionStatus::Ok);
        clock.advance_ms(2_990);
        let degraded = read(&reader).await.ingestion;
        assert_eq!(degraded.status, IngestionStatus::Degraded);
        assert!(degraded.reason.expect("why").contains("no node writes"));
        clock.advance_ms(2_000);
        assert_eq!(read(&reader).await.ingestion.status, IngestionStatus::Down);
        clock.advance_ms(300_000);
        assert!(matches!(reader.read(&"BTCUSDT".into()).await, Ok(None)));
    }

    #[tokio::test]
    async fn cache_failures_and_garbage_are_reported() {
        let answers = vec![
            stored(1, 1, 0),
            Err(Unavailable("no answer".to_owned())),
            Ok(Err("a list".to_owned())),
            stored(1, 2, 0),
        ];
        let (reader, _) = reader(answers);
        read(&reader).await;
        assert_eq!(reader.read(&"BTCUSDT".into()).await, Err(Unavailable("no answer".to_owned())));
        let garbage = reader.read(&"BTCUSDT".into()).await.expect_err("garbage");
        assert!(garbage.0.contains("a list"), "{garbage}");
        assert_eq!(read(&reader).await.writer.sequence, 2, "and is well again");
    }
}
