//! Every function with hostile numbers: it may refuse them, and must not panic.

use proptest::collection::vec;
use proptest::prelude::*;

use super::figure::{Standing, Window};
use super::icebergs::IcebergTracker;
use super::profile::{Histogram, RowWidth, volume_profile};
use super::walls::WallTracker;
use super::{anomalies, cost, depth, flow, impact, quotes, vacuums, volatility};
use tribune_binance::{Aggressor, Candle, Depth, Interval, Level, Notional, Price, Quantity, Trade};

/// Many small ones, and every value that can be read from the wire.
fn price() -> impl Strategy<Value = Price> {
    prop_oneof![0..200i64, 0..=i64::MAX].prop_map(Price::from_units)
}

fn quantity() -> impl Strategy<Value = Quantity> {
    let most = 10i128.pow(38);
    prop_oneof![0..200i128, 0..most / 1_000_000_000_000_000_000, 0..most].prop_map(Quantity::from_units)
}

fn levels() -> impl Strategy<Value = Vec<Level>> {
    vec((price(), quantity()), 0..40).prop_map(|levels| {
        let level = |(price, quantity)| Level { price, quantity };
        levels.into_iter().map(level).collect()
    })
}

fn book() -> impl Strategy<Value = Depth> {
    let reach = || proptest::option::of(price());
    (levels(), levels(), reach(), reach()).prop_map(|(bids, asks, bid_reach, ask_reach)| {
        let mut book = Depth { bids: bids.into_iter().collect(), asks: asks.into_iter().collect() };
        (book.bids.reach, book.asks.reach) = (bid_reach, ask_reach);
        book
    })
}

fn trades() -> impl Strategy<Value = Vec<Trade>> {
    let one = (price(), quantity(), time(), any::<bool>(), any::<(u64, u64)>());
    let trade = |(price, quantity, time, bought, (first_id, last_id))| Trade {
        price,
        quantity,
        time,
        aggressor: if bought { Aggressor::Buyer } else { Aggressor::Seller },
        first_id,
        last_id,
    };
    vec(one.prop_map(trade), 0..20)
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![0..1_000_000i64, any::<i64>()]
}

fn candles() -> impl Strategy<Value = Vec<Candle>> {
    let one = ([price(), price(), price(), price()], quantity(), time(), time(), any::<u64>());
    type Drawn = ([Price; 4], Quantity, i64, i64, u64);
    let candle = |([open, high, low, close], volume, open_time, close_time, trades): Drawn| Candle {
        open_time,
        close_time,
        open,
        high,
        low,
        close,
        volume,
        quote_volume: Notional::from_units(volume.units()),
        trades,
    };
    vec(one.prop_map(candle), 0..60)
}

proptest! {
    #[test]
    fn books(book in book(), size in quantity(), levels in any::<usize>(), distance in any::<u32>()) {
        let _ = quotes::quotes(&book);
        let _ = depth::top_imbalance(&book, levels);
        let _ = depth::band(&book, distance);
        for side in [cost::Action::Buy, cost::Action::Sell] {
            for size in [cost::Size::Base(size), cost::Size::Quote(Notional::from_units(size.units()))] {
                if let Ok(cost) = cost::cost(&book, side, size) {
                    prop_assert!(cost.levels_used > 0 && cost.standing == Standing::Sound);
                }
            }
        }
    }

    #[test]
    fn trades_and_views(views in vec((book(), trades(), time()), 0..6), window in (time(), time())) {
        let mut walls = WallTracker::default();
        let mut icebergs = IcebergTracker::default();
        let window = Window { start_ms: window.0, end_ms: window.1 };
        for (book, trades, time) in &views {
            walls.observe(book, trades, *time);
            icebergs.observe(book, trades, *time);
            let _ = flow::trade_flow(trades, window, *time);
            let _ = impact::impact_samples(&[(*time, 1.0), (window.end_ms, 2.0)], trades);
            let _ = quotes::Touch::of(book);
        }
        let _ = anomalies::vanished_check(&walls.walls(), window.start_ms);
        let _ = anomalies::iceberg_check(&icebergs);
    }

    #[test]
    fn profiles(trades in trades(), candles in candles(), width in price(), window in (time(), time())) {
        let window = Window { start_ms: window.0, end_ms: window.1 };
        for width in [RowWidth::Given(width), RowWidth::FromTick(width)] {
            let of_trades = Histogram::of_trades(&trades, window, 0, width);
            let of_candles = Histogram::of_candles(&candles, window, width);
            for made in [of_trades, of_candles].into_iter().flatten() {
                let _ = volume_profile(&made);
                let _ = vacuums::vacuums(&made);
            }
        }
    }

    #[test]
    fn statistics(candles in candles(), period in 0..30usize) {
        let _ = volatility::realised(&candles, Interval::M1);
        let _ = volatility::atr(&candles, Interval::M1, period);
        let _ = impact::amihud(&candles, Interval::M1);
        let _ = anomalies::volume_outlier(&candles);
        let _ = anomalies::return_outlier(&candles);
    }
}
