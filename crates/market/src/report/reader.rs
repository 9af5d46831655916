//! Reports as they are read: older by the time that has passed since, and never older than one that was read before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tribune_core::Clock;

use super::cache::{Found, KEEP_REPORT, ReportCache, Unavailable};
use super::freshness;
use super::model::{IngestionStatus, Report};

/// What is known of a symbol now.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Report(Box<Report>),
    Nothing,
}

pub struct Reader {
    cache: Arc<dyn ReportCache>,
    clock: Arc<dyn Clock>,
    /// The newest report that was read of each symbol. Bounded by what the cache holds.
    newest: Mutex<HashMap<Arc<str>, Newest>>,
}

#[derive(Debug, Clone)]
struct Newest {
    report: Arc<Report>,
    /// No later than this.
    generated: Instant,
}

impl Reader {
    pub fn new(cache: Arc<dyn ReportCache>, clock: Arc<dyn Clock>) -> Self {
        Self {
            cache,
            clock,
            newest: Mutex::default(),
        }
    }

    pub async fn read(&self, symbol: &Arc<str>) -> Result<Reading, Unavailable> {
        let mut readings = self.read_all(std::slice::from_ref(symbol)).await?;
        readings
            .pop()
            .unwrap_or_else(|| Err(Unavailable("the cache gave no answer".to_owned())))
    }

    /// One for each symbol, in their order; what is wrong with one is no other's fault.
    pub async fn read_all(&self, symbols: &[Arc<str>]) -> Result<Vec<Result<Reading, Unavailable>>, Unavailable> {
        let found = self.cache.read(symbols).await?;
        let now = self.clock.monotonic();
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let readings = symbols.iter().zip(found).map(|(symbol, found)| {
            match found {
                Found::Report(stored) => {
                    let generated = now.checked_sub(stored.age).unwrap_or(now);
                    note(&mut newest, symbol, stored.report, generated);
                }
                // What was there a moment ago is not unknown because the cache has lost it.
                Found::Nothing => {}
                Found::Garbage(why) => {
                    return Err(Unavailable(format!(
                        "what is kept under {symbol} is not a report ({why}); its writer replaces it"
                    )));
                }
            }
            forget_old(&mut newest, symbol, now);
            Ok(match newest.get(symbol) {
                Some(newest) => Reading::Report(Box::new(aged(newest, now))),
                None => Reading::Nothing,
            })
        });
        Ok(readings.collect())
    }
}

fn note(newest: &mut HashMap<Arc<str>, Newest>, symbol: &Arc<str>, report: Arc<Report>, generated: Instant) {
    match newest.get_mut(symbol) {
        Some(known) if order(&known.report) > order(&report) => {}
        // The same once more: it cannot have become younger.
        Some(known) if order(&known.report) == order(&report) => known.generated = known.generated.min(generated),
        _ => {
            newest.insert(symbol.clone(), Newest { report, generated });
        }
    }
}

/// Of two reports of a symbol the one with the larger order is the newer.
fn order(report: &Report) -> (u64, u64) {
    (report.writer.writer_token, report.writer.sequence)
}

fn forget_old(newest: &mut HashMap<Arc<str>, Newest>, symbol: &Arc<str>, now: Instant) {
    let is_old = |known: &Newest| now.saturating_duration_since(known.generated) >= KEEP_REPORT;
    if newest.get(symbol).is_some_and(is_old) {
        newest.remove(symbol);
    }
}

/// The report as it is now: every age has grown since it was generated.
fn aged(newest: &Newest, now: Instant) -> Report {
    let since = now.saturating_duration_since(newest.generated);
    let mut report = Report::clone(&newest.report);
    let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    report.data_age_ms = report.data_age_ms.saturating_add(millis);
    for section in report.sections.all_mut() {
        section.age_ms = section.age_ms.map(|age| age.saturating_add(millis));
    }
    let status = freshness::status(Duration::from_millis(report.data_age_ms));
    if status > report.ingestion.status {
        report.ingestion.status = status;
    }
    if report.ingestion.status != IngestionStatus::Ok && report.ingestion.reason.is_none() {
        report.ingestion.reason = Some(format!(
            "no report has been written for {:.1} s: no node writes this symbol now",
            since.as_secs_f64()
        ));
    }
    metrics::histogram!("tribune_report_age_seconds").record(report.data_age_ms as f64 / 1000.0);
    report
}
