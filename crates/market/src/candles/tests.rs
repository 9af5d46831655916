use super::*;
use crate::analytics::fixture::{price, quantity, trade, trades};
use crate::model::Aggressor::{Buyer, Seller};
use crate::model::{Interval, Trade};
use proptest::prelude::*;

/// All candles of the trades, the last one closed by time.
fn built(trades: &[Trade], interval: Interval, seen_from: Millis) -> Vec<BuiltCandle> {
    let mut builder = CandleBuilder::new(interval, seen_from);
    let mut made: Vec<_> = trades
        .iter()
        .flat_map(|trade| builder.push(trade).expect("counted"))
        .collect();
    let end = builder.current().expect("a candle").candle.close_time;
    made.extend(builder.advance(end + 1));
    made
}

#[test]
fn a_candle_worked_by_hand() {
    let trades = [
        trade(1, 60_000, "10", "1", Buyer),
        trade(2, 60_001, "12", "0.5", Seller),
        trade(3, 119_999, "9", "2", Buyer),
        trade(4, 240_000, "11", "1", Seller),
    ];
    let made = built(&trades, Interval::M1, 60_000);
    let first = made[0].candle;
    assert_eq!(
        [first.open, first.high, first.low, first.close],
        ["10", "12", "9", "9"].map(price)
    );
    // 1 + 0.5 + 2 = 3.5; 10 + 6 + 18 = 34; bought 3 for 28.
    assert_eq!(
        (first.volume, first.quote_volume.to_string()),
        (quantity("3.5"), "34".to_owned())
    );
    assert_eq!(
        (first.taker_buy_volume, first.taker_buy_quote_volume.to_string()),
        (quantity("3"), "28".to_owned())
    );
    assert_eq!((first.open_time, first.close_time, first.trades), (60_000, 119_999, 3));
    // Two silent minutes at the close before, then the last trade's own.
    let opens: Vec<_> = made
        .iter()
        .map(|made| (made.candle.open_time, made.candle.open, made.candle.trades))
        .collect();
    let nine = price("9");
    assert_eq!(
        opens[1..],
        [(120_000, nine, 0), (180_000, nine, 0), (240_000, price("11"), 1)]
    );
    assert!(made.iter().all(|made| made.closed && made.complete));
}

#[test]
fn what_was_not_seen_whole_says_so() {
    let trades = [
        trade(1, 61_000, "10", "1", Buyer),
        trade(2, 120_000, "10", "1", Buyer),
        trade(4, 240_000, "10", "1", Buyer), // 3 is missing: somewhere from 120,000 on
        trade(5, 300_000, "10", "1", Buyer),
    ];
    let complete = |seen_from| {
        built(&trades, Interval::M1, seen_from)
            .iter()
            .map(|made| made.complete)
            .collect::<Vec<_>>()
    };
    assert_eq!(complete(60_001), [false, false, false, false, true]);
    assert_eq!(complete(60_000), [true, false, false, false, true]);
}

#[test]
fn trades_are_counted_once_and_in_order() {
    let mut builder = CandleBuilder::new(Interval::M1, 0);
    let mut three = trade(1, 60_000, "10", "3", Buyer);
    three.last_id = 3;
    assert_eq!(builder.push(&three), Ok(vec![]));
    assert_eq!(builder.push(&three), Err(Refused::Seen));
    let mut overlapping = trade(3, 60_000, "10", "3", Buyer);
    overlapping.last_id = 4;
    assert_eq!(builder.push(&overlapping), Err(Refused::Overlapping));
    assert_eq!(builder.push(&trade(4, 59_999, "10", "1", Buyer)), Err(Refused::Late));
    assert_eq!(
        builder.push(&trade(5, Millis::MAX, "10", "1", Buyer)),
        Err(Refused::Impossible)
    );
    assert_eq!(builder.current().map(|current| current.candle.trades), Some(3));
}

#[test]
fn an_open_candle_without_trades_opens_with_its_first() {
    let mut builder = CandleBuilder::new(Interval::M1, 0);
    builder.push(&trade(1, 60_000, "10", "1", Buyer)).expect("counted");
    assert_eq!(builder.advance(130_000).len(), 1);
    assert_eq!(builder.current().map(|current| current.candle.open), Some(price("10")));
    builder.push(&trade(2, 131_000, "12", "1", Buyer)).expect("counted");
    let current = builder.current().expect("open");
    assert_eq!(
        (current.candle.open, current.candle.low, current.closed),
        (price("12"), price("12"), false)
    );
}

#[test]
fn a_long_silence_is_bounded() {
    let trades = [trade(1, 0, "1", "1", Buyer), trade(2, 100_000_000, "1", "1", Buyer)];
    assert_eq!(built(&trades, Interval::S1, 0).len(), 3_600 + 2);
}

#[test]
fn a_candle_is_closed_after_its_last_millisecond() {
    let trades = [trade(1, 0, "1", "1", Buyer), trade(2, 60_000, "1", "1", Buyer)];
    let minutes: Vec<_> = built(&trades, Interval::M1, 0).iter().map(|made| made.candle).collect();
    let closed = |now| closed_at(&minutes, now).len();
    assert_eq!(
        (closed(59_999), closed(60_000), closed(119_999), closed(120_000)),
        (0, 1, 1, 2)
    );
}

#[test]
fn money_is_compared_at_the_wires_precision() {
    let ours = built(&[trade(1, 0, "0.33333333", "0.33333333", Buyer)], Interval::M1, 0)[0].candle;
    // 0.33333333² = 0.1111111088888889: the wire has 0.11111110.
    let wire = Candle {
        quote_volume: Notional::parse("0.11111110").expect("money"),
        taker_buy_quote_volume: Notional::parse("0.11111110").expect("money"),
        ..ours
    };
    assert!(same_on_the_wire(&ours, &wire));
    let other = Candle {
        quote_volume: Notional::parse("0.11111112").expect("money"),
        ..wire
    };
    assert!(!same_on_the_wire(&ours, &other));
    assert!(!same_on_the_wire(&ours, &Candle { trades: 2, ..wire }));
}

proptest! {
    #[test]
    fn nothing_is_lost_or_added(trades in trades()) {
        let made = built(&trades, Interval::M1, 0);
        let volume: i128 = made.iter().map(|made| made.candle.volume.units()).sum();
        prop_assert_eq!(volume, trades.iter().map(|trade| trade.quantity.units()).sum::<i128>());
        let count: u64 = made.iter().map(|made| made.candle.trades).sum();
        prop_assert_eq!(count, trades.iter().map(Trade::count).sum::<u64>());
        for made in &made {
            let candle = made.candle;
            prop_assert!(candle.low <= candle.open.min(candle.close) && candle.open.max(candle.close) <= candle.high);
            prop_assert!(made.complete && candle.taker_buy_volume <= candle.volume);
        }
        for pair in made.windows(2) {
            prop_assert_eq!(pair[0].candle.close_time + 1, pair[1].candle.open_time);
        }
    }
}
