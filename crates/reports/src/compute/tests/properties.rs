//! Properties of every report.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use tribune_analytics::{Unavailable, Window, trade_flow};
use tribune_binance::testing::{books, trades};
use tribune_binance::{Level, Notional, Price, Quantity};

/// The largest quantity that can be read from a message: 38 digits.
const LARGEST: i128 = 10i128.pow(38) - 1;

/// Numbers of all scales. None is negative: the wire format cannot express that.
fn hostile_books() -> impl Strategy<Value = Depth> {
    let price = || prop_oneof![0..=i64::MAX, 0..1_000i64, Just(i64::MAX)];
    let quantity = || prop_oneof![0..=LARGEST, 0..1_000i128, Just(LARGEST)];
    let side = move || vec((price(), quantity()), 0..30);
    let reach = || proptest::option::of(any::<i64>().prop_map(Price::from_units));
    (side(), side(), reach(), reach()).prop_map(|(bids, asks, bid_reach, ask_reach)| {
        let level =
            |(price, quantity)| Level { price: Price::from_units(price), quantity: Quantity::from_units(quantity) };
        let mut book =
            Depth { bids: bids.into_iter().map(level).collect(), asks: asks.into_iter().map(level).collect() };
        (book.bids.reach, book.asks.reach) = (bid_reach, ask_reach);
        book
    })
}

fn hostile_trades() -> impl Strategy<Value = Vec<Trade>> {
    let one = (any::<i64>(), 0..=i128::MAX, any::<i64>(), any::<bool>(), any::<u64>(), 0..5u64);
    vec(one, 0..40).prop_map(|all| {
        let made = all.into_iter().map(|(price, quantity, time, bought, first_id, more)| Trade {
            price: Price::from_units(price),
            quantity: Quantity::from_units(quantity),
            time: if price % 2 == 0 { T0 + time % 40_000 } else { time },
            aggressor: if bought { Aggressor::Buyer } else { Aggressor::Seller },
            first_id,
            last_id: first_id.saturating_add(more),
        });
        made.collect()
    })
}

fn hostile_day() -> impl Strategy<Value = (i64, i64, i128, i128, Option<i64>)> {
    any::<(i64, i64, i128, i128, Option<i64>)>()
}

fn round_trips(report: &Report) {
    let text = serde_json::to_string(report).expect("JSON");
    let read: Report = serde_json::from_str(&text).expect("the same");
    assert_eq!(&read, report);
    assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
}

proptest! {
    #[test]
    fn figures_lie_within_their_bounds(book in books(), trades in trades()) {
        let scene = Scene::new();
        scene.published.tape.opened(T0 - 1);
        for trade in trades {
            scene.published.tape.push(Trade { time: T0 + trade.time / 100, ..trade }, true);
        }
        scene.show(book, 100);
        let report = scene.report(40_000);
        let imbalance = report.depth.as_ref().expect("depth").imbalance.expect("both sides");
        prop_assert!((-1.0..=1.0).contains(&imbalance));
        let (bid, ask) = (report.best_bid.expect("a bid").price.decimal(), report.best_ask.expect("an ask").price.decimal());
        let (mid, micro) = (report.mid_price.expect("mid"), report.micro_price.expect("micro"));
        prop_assert!(bid < mid && mid < ask && bid <= micro && micro <= ask);
        prop_assert!(report.spread_bps > Some(0.0));
        if let Some(flow) = &report.flow {
            prop_assert_eq!(flow.buy_volume - flow.sell_volume, flow.net_flow);
        }
        if let Some(profile) = &report.liquidity.volume_profile {
            prop_assert!(profile.val < profile.poc && profile.poc < profile.vah);
        }
        round_trips(&report);
    }

    /// Reading trades without a copy gives the same as with one.
    #[test]
    fn flow_sums_all_trades(trades in trades(), repeated in 1..6u64) {
        let scene = Scene::new();
        scene.published.tape.opened(T0 - 1);
        let mut all = Vec::new();
        // Enough for parts to be sealed.
        for round in 0..repeated {
            let (time, id) = all.last().map_or((0, 0), |last: &Trade| (last.time - T0, last.last_id));
            for trade in &trades {
                all.push(Trade {
                    time: T0 + time + trade.time / 500,
                    first_id: id + trade.first_id,
                    last_id: id + trade.last_id,
                    ..*trade
                });
            }
            prop_assert!(round < repeated);
        }
        for trade in &all {
            prop_assert!(scene.published.tape.push(*trade, true));
        }
        let end = all.last().expect("trades").time - T0;
        scene.show(three_levels(), end as u64);
        let result = scene.report(end as u64).flow.expect("flow");
        let whole = trade_flow(&all, Window::last(FLOW_SECS, T0 + end), T0 - 1).expect("flow");
        prop_assert_eq!(result.net_flow, whole.net_flow_base.decimal());
        prop_assert_eq!(result.buy_volume, whole.buy_volume_base.decimal());
        prop_assert_eq!(result.trade_count, whole.trades);
        prop_assert_eq!(result.orders_per_sec, whole.orders_per_sec);
    }

    #[test]
    fn hostile_numbers_never_panic(
        book in hostile_books(), trades in hostile_trades(), day in hostile_day(), opened in any::<i64>(),
        exchange_now in prop_oneof![any::<i64>(), Just(T0)], millis in 0..100_000u64,
    ) {
        let scene = Scene::new();
        scene.published.tape.opened(if opened % 2 == 0 { T0 - 1_000_000 } else { opened });
        for trade in trades {
            scene.published.tape.push(trade, true);
        }
        scene.show(book, millis / 2);
        let (last, open, volume, money, time) = day;
        let day = Day {
            last: Price::from_units(last),
            open: Price::from_units(open),
            high: Price::from_units(last),
            low: Price::from_units(open),
            volume: Quantity::from_units(volume),
            quote_volume: Notional::from_units(money),
            exchange_time: time,
            received: scene.at(millis),
        };
        let inputs = Inputs { day: Some(day), exchange_now, ..scene.inputs(millis) };
        let slow = slow(&inputs);
        let report = report(&inputs, &slow, (&NodeId::from("n"), u64::MAX, 0));
        valid(&report);
        round_trips(&report);
        let known = report.best_bid.is_some() && report.best_ask.is_some();
        prop_assert_eq!(known, report.mid_price.is_some());
        prop_assert!(known || report.sections.book.reason.is_some());
    }
}

#[test]
fn overflowing_sum_is_null() {
    let scene = Scene::new();
    let level = |price| Level { price: Price::from_units(price), quantity: Quantity::from_units(i128::MAX) };
    let book = Depth { bids: [level(1), level(2)].into_iter().collect(), asks: [level(3)].into_iter().collect() };
    scene.show(book, 0);
    let report = scene.report(0);
    assert_eq!(report.depth, None);
    assert_eq!(report.sections.book.reason, Some(Unavailable::TooLarge.to_string()));
}
