//! Ids that sort by time.

use jiff::Timestamp;
use uuid::{Builder, Uuid};

/// An id (UUID version 7) that sorts by the time of its making, to a quarter of a microsecond: two things made one after
/// the other within a millisecond keep their order.
pub fn id_of_time(at: Timestamp) -> Uuid {
    let nanoseconds = u128::try_from(at.as_nanosecond()).unwrap_or_default();
    let (milliseconds, rest) = (nanoseconds / 1_000_000, nanoseconds % 1_000_000);
    // 12 bits of what is left of the millisecond, then chance.
    let fraction = u16::try_from(rest * 4096 / 1_000_000).unwrap_or_default().to_be_bytes();
    let mut tail = [0; 10];
    tail.copy_from_slice(&Uuid::new_v4().as_bytes()[..10]);
    tail[..2].copy_from_slice(&fraction);
    Builder::from_unix_timestamp_millis(u64::try_from(milliseconds).unwrap_or_default(), &tail).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_the_time_and_keep_the_order_of_a_microsecond() {
        let at: Timestamp = "2026-01-01T00:00:00.5Z".parse().expect("a time");
        let (seconds, nanoseconds) = id_of_time(at).get_timestamp().expect("version 7").to_unix();
        assert_eq!((seconds, nanoseconds), (1_767_225_600, 500_000_000));
        for step in 0..2000 {
            let of = |microsecond: i128| {
                let at = at.as_nanosecond() + microsecond * 1000;
                id_of_time(Timestamp::from_nanosecond(at).expect("a time"))
            };
            assert!(of(step) < of(step + 1), "{step}");
        }
        assert_ne!(id_of_time(at), id_of_time(at));
        assert_eq!(id_of_time(Timestamp::MIN).get_version_num(), 7);
        assert_eq!(id_of_time(Timestamp::MAX).get_variant(), uuid::Variant::RFC4122);
    }
}
