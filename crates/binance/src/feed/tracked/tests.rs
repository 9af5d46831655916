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
        let published = Arc::new(Published::new("BTCUSDT".into(), true, 0, None, now));
        let mut tracked = Tracked::new(published, 1_000);
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
        let now = self.now().monotonic;
        self.tracked.wants(now, None, 1_000)
    }

    fn answer(&mut self, answer: Result<Snapshot, RestError>) {
        let (generation, now) = (self.tracked.generation, self.now());
        self.tracked.answered(generation, answer.map(Some), now);
    }

    /// Time passes, and the shard looks. What it has to do at last.
    fn pass(&mut self, millis: i64) -> Next {
        let mut next = Next::Nothing;
        for _ in 0..millis / 50 {
            self.clock.advance_ms(50);
            let now = self.now();
            next = self.tracked.check_silence(now);
            if next != Next::Nothing {
                break;
            }
        }
        next
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
fn joining_update_proves_the_book() {
    let mut bench = Bench::lively(30);
    bench.pass(4_000);
    assert_eq!(bench.state(), BookState::Stale);
    assert_eq!(bench.asks(), Some(Want::UpdateId(40)), "not a book: it has one");
    bench.answer(banned());
    bench.event(41);
    assert_eq!(bench.state(), BookState::Live);
    assert_eq!(bench.tracked.published.live().map(|view| view.last_update_id), Some(41));
}

#[test]
fn quiet_book_stays_live_while_checked() {
    let mut bench = Bench::lively(10);
    assert_eq!(bench.asks(), None);
    bench.pass(16_000);
    assert_eq!(bench.state(), BookState::Live, "silence alone says nothing");
    assert_eq!(bench.asks(), Some(Want::UpdateId(20)));
    bench.answer(Ok(snapshot(20)));
    assert_eq!(bench.state(), BookState::Live);
    bench.pass(16_000);
    assert_eq!(bench.asks(), None, "it was quiet");
    bench.pass(15_000);
    assert_eq!(bench.asks(), Some(Want::UpdateId(20)));
    bench.answer(Ok(snapshot(80)));
    assert_eq!(bench.pass(400), Next::Nothing);
    assert_eq!(bench.state(), BookState::Live, "an update may be on its way");
    bench.pass(200);
    assert_eq!((bench.state(), bench.reason().contains("do not come")), (BookState::Stale, true));
    assert_eq!(bench.pass(2_000), Next::Resubscribe { tried: 0 });
}

#[test]
fn a_comparison_that_was_overtaken_says_nothing() {
    let mut bench = Bench::lively(10);
    bench.pass(16_000);
    assert_eq!(bench.asks(), Some(Want::UpdateId(20)));
    bench.event(21);
    bench.answer(Ok(snapshot(30)));
    assert_eq!(bench.pass(5_000), Next::Nothing);
    assert_eq!(bench.state(), BookState::Live);
}

/// Each time that it is subscribed to again it stays silent, and the exchange's book moves on.
#[test]
fn silent_symbol_is_retried_less_and_less() {
    let mut bench = Bench::lively(30);
    let mut ids = 100;
    let mut tries = Vec::new();
    for _ in 0..40_000 {
        if let Next::Resubscribe { tried } = bench.pass(50) {
            let now = bench.now();
            tries.push((tried, bench.now().wall.as_millisecond()));
            bench.tracked.resubscribed(now);
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
    assert!(gaps[0] >= 30_000 && gaps[1] >= 60_000 && gaps[2] >= 120_000, "{gaps:?}");
    // An update proves it.
    let now = bench.now();
    bench.tracked.install(snapshot(500), now);
    assert_eq!(bench.state(), BookState::Stale);
    bench.event(501);
    assert_eq!(bench.state(), BookState::Live);
}

#[test]
fn outdated_snapshot_waits_for_an_update() {
    let mut bench = Bench::live();
    bench.event(11);
    let now = bench.now();
    bench.tracked.event(diff(12, 101), now);
    assert_eq!((bench.state(), bench.reason().contains("crossed")), (BookState::Resyncing, true));
    let mut asked = 0;
    for _ in 0..400 {
        bench.pass(100);
        match bench.asks() {
            Some(Want::Book) => asked += 1,
            Some(Want::UpdateId(ours)) => assert_eq!(ours, 5),
            Some(Want::MoreLevels) | None => continue,
        }
        bench.answer(Ok(snapshot(5)));
        assert_ne!(bench.state(), BookState::Live);
    }
    assert_eq!((bench.state(), asked), (BookState::Stale, 6), "{}", bench.reason());
    // The exchange has caught up.
    bench.pass(120_000);
    assert!(matches!(bench.asks(), Some(Want::UpdateId(5))));
    bench.answer(Ok(snapshot(12)));
    assert_eq!(bench.asks(), Some(Want::Book));
    bench.answer(Ok(snapshot(12)));
    assert_eq!(bench.state(), BookState::Live);
}

#[test]
fn unreadable_updates_count_as_missing() {
    let mut bench = Bench::lively(5);
    let now = bench.now();
    bench.tracked.unreadable(now);
    assert_eq!((bench.state(), bench.reason().contains("read")), (BookState::Resyncing, true));
    assert_eq!(bench.asks(), Some(Want::Book));
    bench.answer(Ok(snapshot(16)));
    assert_eq!(bench.state(), BookState::Live, "the snapshot has what it said");
    // All of them, from here on.
    let mut live = 0;
    for turn in 0..300 {
        bench.pass(100);
        let now = bench.now();
        bench.tracked.unreadable(now);
        if bench.asks().is_some() {
            bench.answer(Ok(snapshot(20 + turn)));
        }
        live += u32::from(bench.state() == BookState::Live);
    }
    assert!(live <= 1, "{live}");
    let at = bench.tracked.book.last_update_id();
    bench.pass(12_000);
    assert_eq!(bench.asks(), Some(Want::Book), "{at}");
    bench.answer(Ok(snapshot(1_000)));
    assert_eq!(bench.state(), BookState::Stale, "{at}");
    bench.event(1_001);
    assert_eq!(bench.state(), BookState::Live);
}

#[test]
fn shallow_book_is_deepened_while_live() {
    let mut bench = Bench::lively(5);
    let deeper = |bench: &mut Bench| {
        let now = bench.now().monotonic;
        bench.tracked.wants(now, None, 5_000)
    };
    assert_eq!(deeper(&mut bench), None, "not at once");
    for id in 16..=300 {
        bench.pass(100);
        bench.event(id);
    }
    assert_eq!(deeper(&mut bench), Some(Want::MoreLevels));
    bench.event(301);
    bench.event(302);
    let mut deep = snapshot(301);
    deep.limit = 5_000;
    deep.bids.push(level(90));
    bench.answer(Ok(deep));
    let view = bench.tracked.published.live().expect("it stays live");
    assert_eq!((view.last_update_id, view.depth.bids.len()), (302, 4));
    bench.event(303);
    bench.pass(2_000);
    bench.clock.advance_ms(60_000);
    assert_ne!(deeper(&mut bench), Some(Want::MoreLevels), "it is deep");
}

#[test]
fn unconfirmed_book_is_compared() {
    let mut bench = Bench::lively(5);
    let now = bench.now().monotonic;
    bench.tracked.doubt(now);
    assert_eq!(bench.state(), BookState::Live);
    bench.pass(2_000);
    assert_eq!(bench.asks(), Some(Want::UpdateId(15)));
    bench.answer(Ok(snapshot(16)));
    assert_eq!(bench.state(), BookState::Stale, "it was an update");
    assert_eq!(bench.asks(), Some(Want::Book));
    bench.answer(Ok(snapshot(16)));
    assert_eq!(bench.state(), BookState::Live);

    let now = bench.now().monotonic;
    bench.tracked.doubt(now);
    bench.event(17);
    bench.pass(3_000);
    assert_eq!(bench.asks(), None);
}

/// Behind another connection the book is compared; one that went on is started again, and one that is older than
/// what was known only if its updates are too.
#[test]
fn reconnected_book_waits_for_proof() {
    let back = |theirs: u64| {
        let mut bench = Bench::lively(5);
        let now = bench.now();
        bench.tracked.lost("the connection ended", now);
        bench.tracked.opened(now, 0);
        bench.pass(2_100);
        assert_eq!((bench.state(), bench.asks()), (BookState::Stale, Some(Want::UpdateId(15))));
        bench.answer(Ok(snapshot(theirs)));
        bench
    };
    assert_eq!(back(15).state(), BookState::Live);
    let mut ahead = back(30);
    assert_eq!((ahead.state(), ahead.asks()), (BookState::Stale, Some(Want::Book)));
    ahead.answer(Ok(snapshot(30)));
    assert_eq!(ahead.state(), BookState::Live);
    let mut older = back(12);
    assert_eq!((older.state(), older.asks()), (BookState::Stale, None));
    older.event(3);
    older.pass(2_100);
    assert!(matches!(older.asks(), Some(Want::UpdateId(15))));
    older.answer(Ok(snapshot(4)));
    assert_eq!(older.asks(), Some(Want::Book));
    older.answer(Ok(snapshot(4)));
    assert_eq!(older.state(), BookState::Stale, "old, or another count");
    older.event(5);
    assert_eq!(older.state(), BookState::Live);
}

#[test]
fn snapshot_ahead_of_updates_goes_stale() {
    let mut bench = Bench::new();
    bench.pass(1_000);
    assert_eq!(bench.asks(), Some(Want::Book));
    bench.answer(Ok(snapshot(1_000_000)));
    for id in 11..=120 {
        bench.pass(100);
        bench.event(id);
    }
    assert_eq!(bench.state(), BookState::Resyncing);
    assert!(bench.reason().contains("ahead of all updates"), "{}", bench.reason());
    // The same again: stale this time, and not asked for anew all the while.
    bench.pass(100);
    assert_eq!(bench.asks(), Some(Want::Book));
    bench.answer(Ok(snapshot(1_000_000)));
    assert_eq!(bench.state(), BookState::Stale);
    for id in 121..=320 {
        bench.pass(100);
        bench.event(id);
        assert_ne!(bench.asks(), Some(Want::Book), "{id}");
    }
    assert_eq!(bench.state(), BookState::Stale, "{}", bench.reason());
    // It was of this stream after all, which was late.
    bench.event(1_000_001);
    assert_eq!(bench.state(), BookState::Live);
}

#[test]
fn comparison_comes_before_deepening() {
    let mut bench = Bench::lively(300);
    let asks = |bench: &mut Bench| {
        let now = bench.now().monotonic;
        bench.tracked.wants(now, None, 5_000)
    };
    assert_eq!(asks(&mut bench), Some(Want::MoreLevels));
    assert_eq!(asks(&mut bench), None);
    // The deeper snapshot waits behind all others, and updates stop.
    bench.pass(4_000);
    assert_eq!(bench.state(), BookState::Stale);
    assert_eq!(asks(&mut bench), Some(Want::UpdateId(310)));
    bench.answer(Ok(snapshot(400)));
    assert_eq!(bench.pass(3_000), Next::Resubscribe { tried: 0 });
}

#[test]
fn late_book_is_exact_but_stale() {
    let mut bench = Bench::lively(30);
    let now = bench.now();
    bench.tracked.set_late(Some(Duration::from_millis(4_300)), now);
    assert_eq!((bench.state(), &*bench.reason()), (BookState::Stale, "events from the exchange are 4 s late"));
    bench.pass(100);
    bench.event(41);
    assert_eq!(bench.state(), BookState::Stale, "an update that is late as well changes nothing");
    assert_eq!(bench.tracked.published.read().1.map(|view| view.last_update_id), Some(41));
    // What is wrong with it alone stays so when nothing is late any more.
    bench.pass(4_000);
    let overdue = bench.reason();
    assert!(overdue.starts_with("no update for"), "{overdue}");
    let now = bench.now();
    bench.tracked.set_late(None, now);
    assert_eq!((bench.state(), bench.reason()), (BookState::Stale, overdue));
    bench.event(42);
    assert_eq!(bench.state(), BookState::Live);
    let now = bench.now();
    bench.tracked.set_late(Some(Duration::from_secs(3)), now);
    bench.tracked.set_late(None, now);
    assert_eq!(bench.state(), BookState::Live, "nothing else was wrong");
}

#[test]
fn age_counts_from_missing_best_prices() {
    let mut bench = Bench::lively(30);
    let announce = |bench: &mut Bench, update_id| {
        let quote = BestQuote { update_id, bid: level(100), ask: level(101) };
        let now = bench.now();
        bench.tracked.quote(quote, now);
    };
    let age_ms = |bench: &Bench| {
        let confirmed = bench.tracked.published.confirmed();
        bench.now().monotonic.duration_since(confirmed).as_millis()
    };
    announce(&mut bench, 42);
    bench.pass(300);
    // Whatever else the connection brings.
    let now = bench.now().monotonic;
    bench.tracked.published.beat(now);
    assert_eq!((bench.state(), age_ms(&bench)), (BookState::Live, 300));
    bench.event(41);
    bench.tracked.published.beat(now);
    assert_eq!(age_ms(&bench), 0, "the update has come");
    announce(&mut bench, 43);
    bench.pass(1_000);
    assert_eq!(
        (bench.state(), &*bench.reason()),
        (BookState::Stale, "best prices change, but the book's updates do not come")
    );
}
