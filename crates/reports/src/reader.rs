//! Reading reports: ages grow with the time since, and a reader never goes back to an older report.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tribune_core::Clock;

use super::cache::{Found, ReportCache, Stored, Timing, Unavailable};
use super::freshness;
use super::model::{IngestionStatus, Report};

/// A report, and how long ago it was generated.
#[derive(Debug, Clone, PartialEq)]
pub struct AgedReport {
    report: Arc<Report>,
    since: Duration,
}

/// A report generated this much later is newer, whatever its token and sequence say.
const SURELY_LATER: Duration = Duration::from_secs(5);
/// Reports are written four times a second, so one this old has no writer.
const UNWRITTEN: Duration = Duration::from_secs(2);

pub struct Reader {
    cache: Arc<dyn ReportCache>,
    clock: Arc<dyn Clock>,
    /// The newest report read of each symbol. Bounded by what the cache holds.
    newest: Mutex<HashMap<Arc<str>, Newest>>,
}

#[derive(Debug, Clone)]
struct Newest {
    report: Arc<Report>,
    /// At the latest.
    generated: Instant,
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
            let read = match found {
                // `None`: older than this machine's uptime.
                Found::Report(Stored { report, age }) => {
                    now.checked_sub(age).map(|generated| Newest { report, generated })
                }
                // The cache may have lost it; the last one read still holds.
                Found::Nothing => None,
                Found::Garbage(why) => {
                    return Err(Unavailable(format!(
                        "the entry of {symbol} is not a report ({why}); its writer replaces it"
                    )));
                }
            };
            let kept = match (newest.remove(symbol), read) {
                (Some(known), Some(read)) => Some(known.or_newer(read)),
                (known, read) => known.or(read),
            };
            let since = |kept: &Newest| now.saturating_duration_since(kept.generated);
            Ok(kept.filter(|kept| since(kept) < Timing::DEFAULT.keep_report).map(|kept| {
                newest.insert(symbol.clone(), kept.clone());
                AgedReport { since: since(&kept), report: kept.report }
            }))
        });
        Ok(readings.collect())
    }
}

impl Newest {
    fn or_newer(self, read: Self) -> Self {
        match order(&self.report).cmp(&order(&read.report)) {
            // The same report: it cannot have become younger.
            Ordering::Equal => Self { generated: self.generated.min(read.generated), ..self },
            // Tokens go back if the cache has lost everything and its clock was set back; our clock does not.
            Ordering::Greater if read.generated < self.generated + SURELY_LATER => self,
            _ => read,
        }
    }
}

/// Of two reports of a symbol, the one with the larger order is newer.
fn order(report: &Report) -> (u64, u64) {
    (report.writer.writer_token, report.writer.sequence)
}

impl AgedReport {
    /// As it was generated.
    pub fn report(&self) -> &Arc<Report> {
        &self.report
    }

    /// How much every age has grown.
    pub fn since_ms(&self) -> u64 {
        u64::try_from(self.since.as_millis()).unwrap_or(u64::MAX)
    }

    pub fn age(&self) -> Duration {
        Duration::from_millis(self.report.data_age_ms.saturating_add(self.since_ms()))
    }

    pub fn status(&self) -> IngestionStatus {
        freshness::status(self.age(), Duration::ZERO).max(self.report.ingestion.status)
    }

    /// The report as it is now, with its ages grown.
    pub fn now(&self) -> Report {
        let mut report = Report::clone(&self.report);
        for age in report.ages_mut() {
            *age = age.saturating_add(self.since_ms());
        }
        report.ingestion.status = self.status();
        if report.ingestion.status != IngestionStatus::Ok && report.ingestion.reason.is_none() {
            report.ingestion.reason = Some(if self.since >= UNWRITTEN {
                let seconds = self.since.as_secs_f64();
                format!("no report has been written for {seconds:.1} s: no node writes this symbol now")
            } else {
                format!("the data is {:.1} s old", self.age().as_secs_f64())
            });
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;

    use crate::cache::{Claim, Indexed, Lease, NodeId, Token, Write, Written};
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
        async fn write(&self, _: &[Write]) -> Result<Vec<Written>, Unavailable> {
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
        Ok(Found::Report(Stored { report: Arc::new(report), age: Duration::from_millis(age_ms) }))
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
        let answers = vec![stored(1, 1, 0), Ok(Found::Nothing), Ok(Found::Nothing), Ok(Found::Nothing)];
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
            Ok(Found::Garbage("a list".to_owned())),
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
