//! A report and the time since it was generated, by which its ages grow.

use std::sync::Arc;
use std::time::Duration;

use super::freshness;
use super::model::{IngestionStatus, Report};

/// Reports are written four times a second, so one this old has no writer.
const UNWRITTEN: Duration = Duration::from_secs(2);

/// A report, and how long ago it was generated, at most.
#[derive(Debug, Clone, PartialEq)]
pub struct AgedReport {
    /// As it was generated.
    pub report: Arc<Report>,
    pub since: Duration,
}

impl AgedReport {
    /// How much every age has grown.
    pub fn since_ms(&self) -> u64 {
        millis(self.since)
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

/// As whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
