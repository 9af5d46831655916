//! How old data is called ok, degraded or down.

use std::time::Duration;

use super::model::IngestionStatus;

/// Data is fresh up to this age.
pub const FRESH: Duration = Duration::from_secs(1);
/// For this long it may be older before it is called degraded.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// From this age on it is called down.
pub const DOWN: Duration = Duration::from_secs(5);

/// Data only grows older until newer comes, so "older than a second for two seconds" is an age of three.
pub fn status(age: Duration) -> IngestionStatus {
    match age {
        age if age >= DOWN => IngestionStatus::Down,
        age if age >= FRESH + PATIENCE => IngestionStatus::Degraded,
        _ => IngestionStatus::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_ok_then_degraded_then_down() {
        let at = |millis| status(Duration::from_millis(millis));
        assert_eq!((at(0), at(2_999)), (IngestionStatus::Ok, IngestionStatus::Ok));
        assert_eq!(
            (at(3_000), at(4_999)),
            (IngestionStatus::Degraded, IngestionStatus::Degraded)
        );
        assert_eq!((at(5_000), at(1 << 40)), (IngestionStatus::Down, IngestionStatus::Down));
    }
}
