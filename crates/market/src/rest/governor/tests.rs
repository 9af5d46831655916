//! The budget, by a clock that is set by hand.

use super::*;
use crate::rest::testing::ManualClock;
use proptest::prelude::*;

/// At the beginning of a minute.
fn governor() -> (Arc<ManualClock>, Arc<Governor>) {
    let clock = Arc::new(ManualClock::at(60_000 * 1_000_000));
    let governor = Governor::new(clock.clone());
    (clock, governor)
}

fn take(governor: &Arc<Governor>, weight: u32, priority: Priority) -> Result<Permit, RestError> {
    governor.try_acquire(weight, priority)
}

#[test]
fn background_stops_at_half_and_people_at_seventy_percent() {
    let (clock, governor) = governor();
    drop(take(&governor, 3_000, Priority::Background).expect("half"));
    assert!(take(&governor, 1, Priority::Background).is_err());
    drop(take(&governor, 1_200, Priority::Interactive).expect("up to 70%"));
    clock.advance_ms(37_000);
    let Err(error) = take(&governor, 1, Priority::Interactive) else {
        panic!("the budget is used up");
    };
    assert_eq!(
        error.to_string(),
        "the request was held back: 4200 of this minute's request budget of 6000 is used (70% may be used); \
         try again in 24 s"
    );
    assert_eq!(error.wait(), Some(Duration::from_millis(23_050)));
    clock.advance_ms(23_050);
    drop(take(&governor, 3_000, Priority::Background).expect("a new minute"));
}

#[test]
fn what_can_never_go_is_not_told_to_wait() {
    let (_, governor) = governor();
    governor.set_budget(300);
    assert_eq!(
        take(&governor, 250, Priority::Interactive).err(),
        Some(RestError::TooHeavy {
            weight: 250,
            budget: 300
        })
    );
    governor.set_budget(0);
    assert_eq!(governor.used(), (0, 300), "no budget at all is not believed");
}

#[test]
fn the_exchanges_count_only_raises_ours_and_only_in_its_own_minute() {
    let (clock, governor) = governor();
    governor.set_exchange_time(clock.wall_ms());
    let permit = take(&governor, 100, Priority::Interactive).expect("permit");
    let told = |used_weight, date| Told {
        used_weight: Some(used_weight),
        date,
    };
    permit.answered(told(50, None));
    assert_eq!(governor.used().0, 100);
    permit.answered(told(4_300, None));
    assert_eq!(governor.used().0, 4_300);
    assert!(take(&governor, 1, Priority::Interactive).is_err());
    clock.advance_ms(60_000);
    assert_eq!(
        governor.used().0,
        100,
        "what is in flight may be counted in the new minute"
    );
    let before = clock.wall_ms() - 1_000;
    permit.answered(told(4_400, Some(before)));
    assert_eq!(governor.used().0, 100, "a count of the minute before");
    permit.answered(told(150, Some(before + 2_000)));
    assert_eq!(governor.used().0, 150);
}

#[test]
fn minutes_are_those_of_the_exchange() {
    let (clock, governor) = governor();
    drop(take(&governor, 4_200, Priority::Interactive).expect("all"));
    // The exchange is 50 s ahead: its minute ends in 10 s, and what is counted stays counted.
    governor.set_exchange_time(clock.wall_ms() + 50_000);
    assert_eq!(
        take(&governor, 1, Priority::Interactive).err().and_then(|e| e.wait()),
        Some(Duration::from_millis(10_050))
    );
    clock.advance_ms(10_000);
    drop(take(&governor, 4_200, Priority::Interactive).expect("its new minute"));
    // A Date header is worth less than what is known.
    let before = governor.used();
    governor.learn(Told {
        used_weight: None,
        date: Some(0),
    });
    assert_eq!(governor.used(), before);
    // Back over the turn of a minute: it does not begin again when it comes.
    clock.advance_ms(49_990);
    governor.set_exchange_time(1_000 * 60_000);
    drop(take(&governor, 4_200, Priority::Interactive));
    governor.set_exchange_time(1_000 * 60_000 - 5);
    clock.advance_ms(10);
    assert!(take(&governor, 1, Priority::Interactive).is_err());
    // Back by minutes: nothing is forgotten.
    governor.set_exchange_time(clock.wall_ms() - 600_000);
    assert_eq!(governor.used().0, 4_200);
}

#[test]
fn a_pause_holds_everything_until_it_ends() {
    let (clock, governor) = governor();
    governor.pause(Some(Duration::from_secs(120)), true);
    governor.pause(Some(Duration::from_secs(1)), false);
    clock.advance_ms(119_500);
    let error = take(&governor, 1, Priority::Interactive).err();
    assert_eq!(
        error,
        Some(RestError::Paused {
            wait: Duration::from_millis(500),
            banned: true
        })
    );
    assert!(governor.paused_for().is_some());
    clock.advance_ms(500);
    assert!(take(&governor, 1, Priority::Interactive).is_ok());
    // No header, and one that no ban could have.
    assert_eq!(governor.pause(None, false).wait(), Some(Duration::from_secs(60)));
    assert_eq!(governor.pause(Some(Duration::MAX), true).wait(), Some(MAX_PAUSE));
}

#[tokio::test]
async fn waits_are_taken_only_when_they_are_short_enough() {
    let clock: Arc<dyn Clock> = Arc::new(tribune_core::SystemClock);
    let governor = Governor::new(clock);
    // 100 ms before the turn of the minute.
    governor.set_exchange_time(60_000 * 1_000 - 100);
    drop(take(&governor, 4_200, Priority::Interactive).expect("all"));
    let begun = Instant::now();
    let hasty = governor
        .acquire(5, Priority::Interactive, Duration::from_millis(10))
        .await;
    assert!(matches!(hasty, Err(RestError::HeldBack { .. })) && begun.elapsed() < Duration::from_millis(90));
    let patient = governor.acquire(5, Priority::Interactive, Duration::from_secs(1)).await;
    assert!(patient.is_ok() && begun.elapsed() >= Duration::from_millis(100));
}

proptest! {
    /// Whatever is asked for and whenever answers come: in no minute of the exchange does more
    /// than 70% fall, even if each request is counted as late as its answer.
    #[test]
    fn no_minute_is_ever_granted_more_than_its_share(
        steps in proptest::collection::vec((0..30_000i64, 1..2_500u32, any::<bool>(), any::<bool>()), 1..200)
    ) {
        let (clock, governor) = governor();
        let mut open = Vec::new();
        let mut spent = std::collections::HashMap::<i64, u32>::new();
        for (pause, weight, interactive, answer) in steps {
            clock.advance_ms(pause);
            if answer && !open.is_empty() {
                let (permit, since): (Permit, i64) = open.remove(0);
                for minute in since + 1..=clock.wall_ms() / 60_000 {
                    *spent.entry(minute).or_default() += permit.weight;
                }
            }
            let priority = if interactive { Priority::Interactive } else { Priority::Background };
            let minute = clock.wall_ms() / 60_000;
            if let Ok(permit) = governor.try_acquire(weight, priority) {
                *spent.entry(minute).or_default() += weight;
                open.push((permit, minute));
            }
            prop_assert!(spent.values().all(|spent| *spent <= 4_200), "{:?}", spent);
        }
    }
}
