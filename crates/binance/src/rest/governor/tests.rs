//! The budget, by a clock that is set by hand.

use super::*;
use crate::testing::{ManualClock, ShiftedClock};
use proptest::prelude::*;

fn governor() -> (Arc<ManualClock>, Arc<Governor>) {
    let clock = Arc::new(ManualClock::at(1_000));
    let governor = Governor::new(clock.clone());
    (clock, governor)
}

fn take(governor: &Arc<Governor>, weight: u32, priority: Priority) -> Result<Permit, RestError> {
    governor.try_acquire(weight, priority)
}

#[test]
fn background_stops_at_half_callers_at_seventy() {
    let (clock, governor) = governor();
    drop(take(&governor, 3_000, Priority::Background).expect("half"));
    assert!(take(&governor, 1, Priority::Background).is_err());
    drop(take(&governor, 1_200, Priority::Interactive).expect("up to 70%"));
    clock.advance_ms(36_000);
    let Err(error) = take(&governor, 1, Priority::Interactive) else {
        panic!("the budget is used up");
    };
    assert_eq!(
        error.to_string(),
        "the request was held back: 4200 of this minute's request budget of 6000 is used (70% may be used); \
         try again in 24 s"
    );
    assert_eq!(error.wait(), Some(Duration::from_secs(24)));
    clock.advance_ms(23_999);
    assert!(take(&governor, 1, Priority::Interactive).is_err());
    clock.advance_ms(1);
    drop(take(&governor, 3_000, Priority::Background).expect("a new minute"));
}

#[test]
fn reading_leaves_weight_for_orders() {
    let (clock, governor) = governor();
    governor.keep_for_orders();
    drop(take(&governor, 3_900, Priority::Interactive).expect("up to 65%"));
    let error = take(&governor, 1, Priority::Interactive).err().expect("kept for orders");
    assert!(error.to_string().contains("65% may be used, and 5% is kept for orders"), "{error}");
    drop(take(&governor, 300, Priority::Order).expect("up to 70%"));
    assert!(take(&governor, 1, Priority::Order).is_err(), "no more than 70% is ever used");
    clock.advance_ms(60_000);
    drop(take(&governor, 1, Priority::Interactive).expect("a new minute"));
}

#[test]
fn pages_use_at_most_a_fifth() {
    let (clock, governor) = governor();
    drop(take(&governor, 1_190, Priority::Page).expect("up to 20%"));
    let error = take(&governor, 11, Priority::Page).err().expect("it is used up");
    assert!(error.to_string().contains("pages may use 20%"), "{error}");
    drop(take(&governor, 10, Priority::Page).expect("1,200 of 6,000"));
    drop(take(&governor, 1_800, Priority::Background).expect("the others have theirs"));
    drop(take(&governor, 1_200, Priority::Interactive).expect("up to 70%"));
    clock.advance_ms(60_000);
    drop(take(&governor, 2_900, Priority::Interactive).expect("a new minute"));
    assert!(take(&governor, 101, Priority::Page).is_err(), "half is used by others");
    drop(take(&governor, 100, Priority::Page).expect("up to half"));
    // What is under way counts until a minute after its answer, for pages too.
    clock.advance_ms(60_000);
    let permit = take(&governor, 1_200, Priority::Page).expect("a new minute");
    clock.advance_ms(60_000);
    assert!(take(&governor, 1, Priority::Page).is_err());
    drop(permit);
    clock.advance_ms(60_000);
    drop(take(&governor, 1_200, Priority::Page).expect("it was answered a minute ago"));
}

#[test]
fn too_heavy_request_is_refused() {
    let (_, governor) = governor();
    governor.set_budget(300);
    assert_eq!(
        take(&governor, 250, Priority::Interactive).err(),
        Some(RestError::TooHeavy { weight: 250, budget: 300 })
    );
    governor.set_budget(0);
    assert_eq!(governor.used(), (0, 300), "no budget at all is not believed");
}

#[test]
fn exchange_count_raises_ours_for_a_minute() {
    let (clock, governor) = governor();
    let permit = take(&governor, 100, Priority::Interactive).expect("permit");
    permit.note_counted(50);
    assert_eq!(governor.used().0, 100);
    permit.note_counted(4_300);
    permit.note_counted(4_200);
    assert_eq!(governor.used().0, 4_300);
    assert!(take(&governor, 1, Priority::Interactive).is_err());
    clock.advance_ms(60_000);
    assert_eq!(governor.used().0, 100, "what has no answer still counts");
    drop(permit);
    clock.advance_ms(60_000);
    assert_eq!(governor.used().0, 0);
}

#[test]
fn wait_lasts_until_enough_is_free() {
    let (clock, governor) = governor();
    for weight in [1_000, 2_000, 1_200] {
        drop(take(&governor, weight, Priority::Interactive).expect("room"));
        clock.advance_ms(10_000);
    }
    let wait = |weight| take(&governor, weight, Priority::Interactive).err().and_then(|e| e.wait());
    assert_eq!(wait(1_000), Some(Duration::from_secs(30)), "the first has gone");
    assert_eq!(wait(1_001), Some(Duration::from_secs(40)), "the second too");
}

#[test]
fn pause_blocks_requests_until_it_ends() {
    let (clock, governor) = governor();
    governor.pause(Some(Duration::from_secs(120)), true);
    governor.pause(Some(Duration::from_secs(1)), false);
    clock.advance_ms(119_500);
    let error = take(&governor, 1, Priority::Interactive).err();
    let wait = Duration::from_millis(500);
    assert_eq!(error, Some(RestError::Paused { wait, banned: true }));
    assert!(governor.paused_for().is_some());
    clock.advance_ms(500);
    assert!(take(&governor, 1, Priority::Interactive).is_ok());
    // No header, and one that no ban could have.
    assert_eq!(governor.pause(None, false).wait(), Some(Duration::from_secs(60)));
    assert_eq!(governor.pause(Some(Duration::MAX), true).wait(), Some(MAX_PAUSE));
    // Another that was under way was only asked to slow down; the ban holds.
    let slower = governor.pause(Some(Duration::from_secs(1)), false);
    let (wait, banned) = (MAX_PAUSE, true);
    assert_eq!(slower, RestError::Paused { wait, banned });
}

#[test]
fn zero_retry_after_still_pauses() {
    let (_, governor) = governor();
    let paused = |seconds| governor.pause(Some(Duration::from_secs(seconds)), false).wait();
    assert_eq!([paused(0), paused(9)], [1, 9].map(|seconds| Some(Duration::from_secs(seconds))));
}

#[tokio::test]
async fn short_waits_are_waited() {
    let used_up = |ms_ago| {
        let clock = Arc::new(ShiftedClock::default());
        let governor = Governor::new(clock.clone());
        drop(take(&governor, 4_200, Priority::Interactive).expect("all"));
        clock.pass_ms(ms_ago);
        governor
    };
    let hasty = used_up(30_000).acquire(5, Priority::Interactive, Duration::from_millis(10)).await;
    assert!(matches!(hasty, Err(RestError::HeldBack { .. })));
    let patient = used_up(59_600).acquire(5, Priority::Interactive, Duration::from_secs(60)).await;
    assert!(patient.is_ok());
}

proptest! {
    /// Whatever is asked for, whenever answers come and whatever the exchange's clock says: in no minute of the
    /// exchange does more than 70% fall, wherever between leave and answer it counts each request.
    #[test]
    fn no_minute_exceeds_its_share(
        ahead in 0..60_000i64,
        steps in proptest::collection::vec((prop_oneof![0..200i64, 0..30_000i64], 1..2_500u32, any::<bool>(), any::<bool>()), 1..200)
    ) {
        let (clock, governor) = governor();
        let minute = || (clock.wall_ms() + ahead).div_euclid(60_000);
        let mut open = Vec::new();
        let mut counted = std::collections::HashMap::<i64, u32>::new();
        for (pause, weight, interactive, answer) in steps {
            for _ in 0..2 {
                // Grants without an answer count in each minute that they see.
                let before = minute();
                clock.advance_ms(pause / 2);
                for later in before + 1..=minute() {
                    let pending: u32 = open.iter().map(|(_, weight)| weight).sum();
                    *counted.entry(later).or_default() += pending;
                }
            }
            if answer && !open.is_empty() {
                drop(open.remove(0));
            }
            let priority = if interactive { Priority::Interactive } else { Priority::Background };
            if let Ok(permit) = governor.try_acquire(weight, priority) {
                *counted.entry(minute()).or_default() += weight;
                open.push((permit, weight));
            }
            prop_assert!(counted.values().all(|weight| *weight <= 4_200), "{:?}", counted);
        }
    }
}
