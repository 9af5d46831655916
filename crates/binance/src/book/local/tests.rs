use super::*;
use crate::number::{Price, Quantity};

fn level(price: i64, quantity: i128) -> Level {
    Level { price: Price::from_units(price), quantity: Quantity::from_units(quantity) }
}

fn diff(first_id: u64, last_id: u64, bids: &[(i64, i128)], asks: &[(i64, i128)]) -> Diff {
    let levels = |side: &[(i64, i128)]| side.iter().map(|(price, quantity)| level(*price, *quantity)).collect();
    Diff { first_id, last_id, time: Some(last_id as i64), bids: levels(bids), asks: levels(asks) }
}

fn snapshot(last_update_id: u64) -> Snapshot {
    Snapshot {
        last_update_id,
        bids: vec![level(100, 1), level(99, 2), level(98, 3)],
        asks: vec![level(101, 1), level(102, 2), level(103, 3)],
        limit: 1000,
    }
}

fn best(book: &LocalBook) -> (i64, i64) {
    let (bid, ask) = (book.depth().bids.best(), book.depth().asks.best());
    (bid.expect("bid").price.units(), ask.expect("ask").price.units())
}

#[test]
fn both_legal_first_events_are_taken() {
    // The snapshot's id inside the event, and right before it.
    for (first, last) in [(8, 12), (11, 12)] {
        let mut book = LocalBook::new(1000);
        assert_eq!(book.event(diff(first, last, &[(100, 0)], &[])), Ok(Outcome::Buffered));
        assert_eq!(book.snapshot(snapshot(10)), Ok(Installed::Synced));
        assert_eq!((best(&book), book.last_update_id()), ((99, 101), 12));
    }
}

#[test]
fn too_old_snapshot_is_fetched_again() {
    let mut book = LocalBook::new(1000);
    book.event(diff(20, 22, &[], &[])).expect("buffered");
    assert_eq!(book.snapshot(snapshot(18)), Ok(Installed::TooOld));
    assert!(!book.is_synced());
    assert_eq!(book.snapshot(snapshot(19)), Ok(Installed::Synced));
}

#[test]
fn buffered_events_in_the_snapshot_are_dropped() {
    let mut book = LocalBook::new(1000);
    book.event(diff(1, 5, &[(100, 0)], &[])).expect("buffered");
    book.event(diff(6, 9, &[(97, 7)], &[])).expect("buffered");
    book.snapshot(snapshot(5)).expect("synced");
    // The first is older than the snapshot: its removal of 100 does not count.
    assert_eq!(best(&book), (100, 101));
    assert_eq!(book.depth().bids.len(), 4);
    assert_eq!(book.event(diff(6, 9, &[(97, 0)], &[])), Ok(Outcome::Old));
    assert_eq!(book.depth().bids.len(), 4);
}

#[test]
fn gap_discards_the_book() {
    let mut book = LocalBook::new(1000);
    book.snapshot(snapshot(10)).expect("a quiet market has no event yet");
    assert_eq!(book.event(diff(11, 12, &[(100, 5)], &[])), Ok(Outcome::Applied));
    assert_eq!(book.event(diff(14, 15, &[], &[])), Err(Fault::Gap { expected: 13, got: 14 }));
    assert!(!book.is_synced() && book.depth().bids.is_empty());
    assert_eq!(book.snapshot(snapshot(14)), Ok(Installed::Synced));
    assert_eq!(book.last_update_id(), 15);
}

#[test]
fn gap_in_the_buffer_is_noticed() {
    let mut book = LocalBook::new(1000);
    book.event(diff(1, 2, &[], &[])).expect("buffered");
    assert_eq!(book.event(diff(4, 5, &[], &[])), Err(Fault::Gap { expected: 3, got: 4 }));
    assert_eq!(book.snapshot(snapshot(2)), Ok(Installed::TooOld));
}

#[test]
fn duplicate_in_the_buffer_is_no_gap() {
    let mut book = LocalBook::new(1000);
    // 13 to 14 overtook 11 to 12.
    for (first, last) in [(13, 14), (11, 12), (13, 14), (15, 16)] {
        let event = diff(first, last, &[(97, i128::from(last))], &[]);
        assert_eq!(book.event(event), Ok(Outcome::Buffered));
    }
    assert_eq!(book.snapshot(snapshot(11)), Ok(Installed::TooOld));
    assert_eq!(book.snapshot(snapshot(12)), Ok(Installed::Synced));
    assert_eq!(book.last_update_id(), 16);
    assert_eq!(book.depth().bids.lookup(Price::from_units(97)), Some(Quantity::from_units(16)));
}

#[test]
fn older_snapshot_does_not_replace_the_book() {
    let mut book = LocalBook::new(1000);
    book.snapshot(snapshot(10)).expect("synced");
    book.event(diff(11, 20, &[], &[])).expect("applied");
    book.discard();
    assert_eq!(book.snapshot(snapshot(19)), Ok(Installed::TooOld));
    assert_eq!(book.snapshot(snapshot(20)), Ok(Installed::Synced));

    // Another stream may have begun to count anew.
    book.reopened();
    assert_eq!(book.snapshot(snapshot(3)), Ok(Installed::Synced));
    assert_eq!(book.event(diff(4, 4, &[], &[])), Ok(Outcome::Applied));
}

#[test]
fn empty_side_is_announced_as_zero() {
    let mut book = LocalBook::new(1000);
    book.snapshot(Snapshot { asks: Vec::new(), ..snapshot(10) }).expect("synced");
    let quote = BestQuote { update_id: 10, bid: level(100, 1), ask: level(0, 0) };
    assert_eq!(book.announce(quote), Ok(()));
}

#[test]
fn crossed_or_contradicted_book_is_discarded() {
    let mut book = LocalBook::new(1000);
    book.snapshot(snapshot(10)).expect("synced");
    assert_eq!(book.event(diff(11, 11, &[(101, 1)], &[])), Err(Fault::Crossed));
    assert!(!book.is_synced());

    let mut book = LocalBook::new(1000);
    book.snapshot(snapshot(10)).expect("synced");
    let quote = |update_id, bid: (i64, i128), ask: (i64, i128)| BestQuote {
        update_id,
        bid: level(bid.0, bid.1),
        ask: level(ask.0, ask.1),
    };
    assert_eq!(book.announce(quote(10, (100, 1), (101, 1))), Ok(()));
    // Announced before the event that has it: compared when the book is there.
    assert_eq!(book.announce(quote(12, (100, 7), (101, 1))), Ok(()));
    assert_eq!(book.announce(quote(13, (100, 8), (101, 1))), Ok(()));
    assert_eq!(book.event(diff(11, 12, &[(100, 7)], &[])), Ok(Outcome::Applied));
    assert_eq!(book.event(diff(13, 13, &[(100, 9)], &[])), Err(Fault::Contradicted));
    assert!(!book.is_synced());
}

#[test]
fn levels_beyond_the_snapshot_are_unknown() {
    let mut book = LocalBook::new(1000);
    let cut = Snapshot { limit: 3, ..snapshot(10) };
    book.snapshot(cut).expect("synced");
    assert_eq!(book.depth().bids.reach, Some(Price::from_units(98)));
    book.event(diff(11, 11, &[(100, 0), (99, 0), (90, 5)], &[])).expect("98 is left");
    assert_eq!(best(&book), (98, 101));
    // Between 98 and 90 there may be unknown levels.
    assert_eq!(book.event(diff(12, 12, &[(98, 0)], &[])), Err(Fault::Exhausted));
}

#[test]
fn pruned_levels_limit_the_reach() {
    let mut book = LocalBook::new(3);
    book.snapshot(snapshot(10)).expect("synced");
    assert_eq!(book.depth().asks.reach, None);
    book.event(diff(11, 11, &[], &[(104, 1), (105, 1)])).expect("applied");
    assert_eq!(book.depth().asks.len(), 3);
    assert_eq!(book.depth().asks.reach, Some(Price::from_units(103)));
}

#[test]
fn nonsense_and_endless_buffering_are_faults() {
    let mut book = LocalBook::new(3);
    assert_eq!(book.event(diff(5, 4, &[], &[])), Err(Fault::Backwards));
    for id in 0..1_000 {
        book.event(diff(id, id, &[], &[])).expect("buffered");
    }
    assert_eq!(book.event(diff(1_000, 1_000, &[], &[])), Err(Fault::NoSnapshot));
}
