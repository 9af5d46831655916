//! What a symbol makes of updates, answers and silence, by a clock that is set by hand.

use super::*;
use crate::book::{Level, Snapshot};
use crate::number::{Price, Quantity};
use crate::rest::RestError;
use crate::testing::ManualClock;

struct Bench {
    clock: ManualClock,
    tracked: Tracked<()>,
}

fn level(price: i64) -> Level {
    Level { price: Price::from_units(price), quantity: Quantity::from_units(1) }
}

fn snapshot(last_update_id: u64) -> Snapshot {
    Snapshot { last_update_id, bids: vec![level(100), level(99)], asks: vec![level(101), level(102)], limit: 1_000 }
}

fn diff(first_id: u64, bid: i64) -> Diff {
    Diff { first_id, last_id: first_id, time: Some(1), bids: vec![level(bid)], asks: Vec::new() }
}

impl Bench {
    /// Opened just now.
    fn new() -> Self {
        let clock = ManualClock::at(1_000_000);
        let now = Moment::now(&clock);
        let published = Arc::new(Published::new("BTCUSDT".into(), true, 0, now));
        let mut tracked = Tracked::new(published, 1_000, now.monotonic);
        tracked.opened(now, 0);
        Self { clock, tracked }
    }

    /// Live at update 10.
    fn live() -> Self {
        let mut bench = Self::new();
        bench.pass(1_000);
        assert_eq!(bench.asks(), Some(Want::Book));
        bench.answer(Ok(snapshot(10)));
        assert_eq!(bench.state(), BookState::Live);
        bench
    }

    /// The same after so many updates, one every tenth of a second.
    fn lively(updates: u64) -> Self {
        let mut bench = Self::live();
        for id in 11..=10 + updates {
            bench.pass(100);
            bench.event(id);
        }
        bench
    }

    fn now(&self) -> Moment {
        Moment::now(&self.clock)
    }

    fn event(&mut self, id: u64) {
        let now = self.now();
        self.tracked.event(diff(id, 98), now);
    }

    fn asks(&mut self) -> Option<Want> {
        let (want, _) = self.tracked.due(self.now().monotonic)?;
        self.tracked.requested(want);
        Some(want)
    }

    fn answer(&mut self, answer: Result<Snapshot, RestError>) {
        let (generation, now) = (self.tracked.generation, self.now());
        self.tracked.answered(generation, answer, now);
    }

    /// Time passes, and the shard looks; whether the streams are to be subscribed to again.
    fn pass(&mut self, millis: i64) -> bool {
        (0..millis / 50).any(|_| {
            self.clock.advance_ms(50);
            self.tracked.is_silent(self.now())
        })
    }

    fn state(&self) -> BookState {
        self.tracked.published.status().state
    }

    fn reason(&self) -> String {
        self.tracked.published.status().reason.clone().unwrap_or_default()
    }
}

fn banned() -> Result<Snapshot, RestError> {
    Err(RestError::Paused { wait: Duration::from_secs(7_200), banned: true })
}

#[test]
fn quiet_book_stays_live_while_checked() {
    let mut bench = Bench::lively(10);
    bench.pass(2_950);
    assert_eq!(bench.asks(), None);
    bench.pass(50);
    assert_eq!(bench.state(), BookState::Live, "silence alone says nothing");
    assert_eq!(bench.asks(), Some(Want::UpdateId), "not a book: it has one");
    bench.answer(Ok(snapshot(20)));
    assert_eq!(bench.state(), BookState::Live);
    bench.pass(5_950);
    assert_eq!(bench.asks(), None, "it was quiet");
    bench.pass(100);
    assert_eq!(bench.asks(), Some(Want::UpdateId));
    bench.answer(Ok(snapshot(80)));
    assert!(!bench.pass(900));
    assert_eq!(bench.state(), BookState::Live, "an update may be on its way");
    bench.pass(100);
    assert_eq!((bench.state(), bench.reason().contains("do not come")), (BookState::Stale, true));
    assert!(bench.pass(2_000));
}

#[test]
fn joining_update_proves_the_book() {
    let mut bench = Bench::lively(10);
    bench.pass(3_000);
    assert_eq!(bench.asks(), Some(Want::UpdateId));
    bench.answer(Ok(snapshot(30)));
    bench.pass(2_000);
    assert_eq!(bench.state(), BookState::Stale);
    bench.event(21);
    assert_eq!(bench.state(), BookState::Live);
    assert_eq!(bench.tracked.published.live().map(|view| view.last_update_id), Some(21));
    assert!(!bench.pass(2_000), "it is well");
    // An exchange that cannot be asked proves nothing either way.
    bench.pass(1_000);
    assert_eq!(bench.asks(), Some(Want::UpdateId));
    bench.answer(banned());
    assert_eq!((bench.state(), bench.asks()), (BookState::Live, None));
}

/// Questions come after 3, 6, 12 … and at last 120 seconds, and soon again once the market moves.
#[test]
fn quiet_markets_are_checked_rarely() {
    let mut bench = Bench::lively(10);
    let asked = |bench: &mut Bench, seconds: i64| {
        let mut count = 0;
        for _ in 0..seconds * 20 {
            bench.pass(50);
            if bench.asks().is_some() {
                bench.answer(Ok(snapshot(bench.tracked.book.last_update_id())));
                count += 1;
            }
        }
        count
    };
    assert_eq!((asked(&mut bench, 190), asked(&mut bench, 1_201)), (6, 10));
    for id in 21..=40 {
        bench.pass(100);
        bench.event(id);
    }
    assert_eq!(asked(&mut bench, 4), 1);
}

/// Each time that it is subscribed to again it stays silent, and the exchange's book moves on.
#[test]
fn silent_symbol_is_retried_less_and_less() {
    let mut bench = Bench::lively(30);
    let mut ids = 100;
    let mut tries = Vec::new();
    for _ in 0..40_000 {
        if bench.pass(50) {
            let now = bench.now();
            tries.push((bench.tracked.resubscribed(now), now.wall.as_millisecond()));
            bench.tracked.opened(now, 0);
        }
        if tries.len() == 4 {
            break;
        }
        if bench.asks().is_some() {
            ids += 1;
            bench.answer(Ok(snapshot(ids)));
        }
        if !tries.is_empty() {
            assert_eq!(bench.state(), BookState::Stale);
        }
    }
    assert_eq!(tries.iter().map(|(tried, _)| *tried).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let gaps: Vec<i64> = tries.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(gaps[0] >= 15_000 && gaps[1] >= 30_000 && gaps[2] >= 60_000, "{gaps:?}");
    // An update proves it.
    bench.pass(1_000);
    assert_eq!(bench.asks(), Some(Want::Book));
    bench.answer(Ok(snapshot(500)));
    assert_eq!(bench.state(), BookState::Stale);
    bench.event(501);
    assert_eq!(bench.state(), BookState::Live);
}

#[test]
fn outdated_snapshot_is_not_taken() {
    let mut bench = Bench::live();
    bench.event(11);
    let now = bench.now();
    bench.tracked.event(diff(12, 101), now);
    assert_eq!((bench.state(), bench.reason().contains("crossed")), (BookState::Resyncing, true));
    let mut asked = 0;
    for _ in 0..400 {
        bench.pass(100);
        if bench.asks().is_some() {
            asked += 1;
            bench.answer(Ok(snapshot(5)));
        }
        assert_eq!(bench.state(), BookState::Resyncing);
    }
    assert!((5..12).contains(&asked), "{asked}");
    bench.pass(10_000);
    assert_eq!(bench.asks(), Some(Want::Book));
    bench.answer(Ok(snapshot(12)));
    assert_eq!(bench.state(), BookState::Live);
}

#[test]
fn repeated_faults_back_off() {
    let mut bench = Bench::live();
    let mut asked = 0;
    for id in 0..300 {
        bench.event(100 + 2 * id);
        if bench.asks().is_some() {
            asked += 1;
            bench.answer(Ok(snapshot(100 + 2 * id)));
        }
        bench.pass(100);
    }
    assert!((5..12).contains(&asked), "every update leaves a gap: {asked}");
}

/// A new snapshot has what could not be read, but not what may follow.
#[test]
fn book_is_stale_until_an_update_can_be_read() {
    let mut bench = Bench::lively(5);
    let now = bench.now();
    bench.tracked.unreadable(now);
    assert_eq!((bench.state(), bench.reason().contains("read")), (BookState::Resyncing, true));
    bench.pass(200);
    assert_eq!(bench.asks(), Some(Want::Book));
    bench.answer(Ok(snapshot(16)));
    assert_eq!((bench.state(), bench.reason().contains("read")), (BookState::Stale, true));
    bench.event(17);
    assert_eq!(bench.state(), BookState::Live);
}

/// Updates of the next stream do not join the book: readers keep it until there is another.
#[test]
fn reconnected_book_begins_anew() {
    let mut bench = Bench::lively(5);
    let now = bench.now();
    bench.tracked.lost("the connection ended", now);
    assert_eq!((bench.state(), &*bench.reason(), bench.asks()), (BookState::Stale, "the connection ended", None));
    assert_eq!(bench.tracked.published.status().view.as_ref().map(|view| view.last_update_id), Some(15));
    bench.tracked.opened(now, 0);
    // An exchange that was restarted counts anew.
    bench.event(3);
    assert_eq!((bench.state(), bench.asks()), (BookState::Stale, Some(Want::Book)));
    bench.answer(Ok(snapshot(3)));
    assert_eq!(bench.tracked.published.live().map(|view| view.last_update_id), Some(3));
}

#[test]
fn late_book_is_exact_but_stale() {
    let mut bench = Bench::lively(30);
    let set_late = |bench: &mut Bench, is_late| {
        let now = bench.now();
        bench.tracked.set_late(is_late, now);
    };
    set_late(&mut bench, true);
    assert_eq!((bench.state(), &*bench.reason()), (BookState::Stale, LATE));
    bench.pass(100);
    bench.event(41);
    assert_eq!(bench.state(), BookState::Stale, "an update that is late as well changes nothing");
    assert_eq!(bench.tracked.published.status().view.as_ref().map(|view| view.last_update_id), Some(41));
    set_late(&mut bench, false);
    assert_eq!(bench.state(), BookState::Live, "nothing else was wrong");
    // What is wrong with it alone stays so when nothing is late any more.
    set_late(&mut bench, true);
    announce(&mut bench, 43);
    bench.pass(1_000);
    set_late(&mut bench, false);
    assert_eq!((bench.state(), &*bench.reason()), (BookState::Stale, NOT_COMING));
    bench.event(42);
    assert_eq!(bench.state(), BookState::Live);
}

fn announce(bench: &mut Bench, update_id: u64) {
    let quote = BestQuote { update_id, bid: level(100), ask: level(101) };
    let now = bench.now();
    bench.tracked.quote(quote, now);
}

#[test]
fn announced_prices_reveal_missing_updates() {
    let mut bench = Bench::lively(30);
    announce(&mut bench, 42);
    bench.pass(950);
    bench.event(41);
    assert_eq!(bench.state(), BookState::Live);
    announce(&mut bench, 43);
    assert!(!bench.pass(1_000));
    assert_eq!((bench.state(), &*bench.reason()), (BookState::Stale, NOT_COMING));
    assert!(bench.pass(2_000));
}
