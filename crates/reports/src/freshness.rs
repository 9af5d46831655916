//! At which age data is ok, degraded or down.

use std::time::Duration;

use super::model::IngestionStatus;

/// Data is fresh up to this age.
pub const FRESH: Duration = Duration::from_secs(1);
/// Data may be older for this long before it is degraded.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Data is down from this age on.
pub const DOWN: Duration = Duration::from_secs(5);

/// `old_for` is how long data is known to have been older than [`FRESH`]. Data that has stopped coming at an age of three
/// seconds has been too old for two.
pub fn status(age: Duration, old_for: Duration) -> IngestionStatus {
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
