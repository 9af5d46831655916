//! A report and the time since it was generated, by which its ages grow; at which age data is ok, degraded or down.

use std::sync::Arc;
use std::time::Duration;

use super::model::{IngestionStatus, Report};

/// Data is fresh up to this age.
pub(crate) const FRESH: Duration = Duration::from_secs(1);
/// Data may be older for this long before it is degraded.
const PATIENCE: Duration = Duration::from_secs(2);
/// Data is down from this age on.
const DOWN: Duration = Duration::from_secs(5);
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
        status(self.age(), Duration::ZERO).max(self.report.ingestion.status)
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

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `old_for` is how long data is known to have been older than [`FRESH`]. Data that has stopped coming at an age of three
/// seconds has been too old for two.
pub(crate) fn status(age: Duration, old_for: Duration) -> IngestionStatus {
    if age >= DOWN {
        IngestionStatus::Down
    } else if age >= FRESH + PATIENCE || old_for >= PATIENCE {
        IngestionStatus::Degraded
    } else {
        IngestionStatus::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_ok_then_degraded_then_down() {
        let at = |millis| status(Duration::from_millis(millis), Duration::ZERO);
        assert_eq!((at(0), at(2_999)), (IngestionStatus::Ok, IngestionStatus::Ok));
        assert_eq!((at(3_000), at(4_999)), (IngestionStatus::Degraded, IngestionStatus::Degraded));
        assert_eq!((at(5_000), at(1 << 40)), (IngestionStatus::Down, IngestionStatus::Down));
    }

    #[test]
    fn late_data_is_degraded_too() {
        let late = |old_for| status(Duration::from_millis(1_300), Duration::from_millis(old_for));
        assert_eq!((late(1_999), late(2_000)), (IngestionStatus::Ok, IngestionStatus::Degraded));
    }
}
