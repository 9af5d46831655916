//! Opens the simulated markets, with their history and after the warm-up.

use super::Instrument;
use super::catalogue::{self, Listing};
use super::engine::Engine;
use super::flow::{Activity, Flow};
use super::history;
use crate::hub::Hub;
use crate::interval::{DAY, HOUR, Millis};
use crate::market::Market;
use crate::market::candles::Candles;
use crate::market::levels::Levels;
use crate::market::symbol::Status;
use crate::settings::Simulation;

/// Events per second by which the history of a market without events is generated.
const STILL_RATE: f64 = 1.0;

/// All markets as of `start`.
pub fn open_markets(simulation: &Simulation, hub: &Hub, start: Millis) -> Vec<Instrument> {
    let busy =
        catalogue::well_known().into_iter().map(|listing| (listing, simulation.events_per_second, simulation.levels));
    let extra = catalogue::extra(simulation.extra_symbols, simulation.seed)
        .into_iter()
        .map(|listing| (listing, simulation.extra_events_per_second, simulation.extra_levels));
    busy.chain(extra)
        .map(|(listing, per_second, levels)| open_market(listing, simulation, per_second, levels, start, hub))
        .collect()
}

fn open_market(
    listing: Listing,
    simulation: &Simulation,
    per_second: f64,
    levels: usize,
    start: Millis,
    hub: &Hub,
) -> Instrument {
    let warm_up = Millis::try_from(simulation.warm_up.as_millis()).unwrap_or(0);
    let (opened, closed_at) = match listing.symbol.status {
        Status::Trading => (start - warm_up, None),
        Status::Halt => (start - HOUR, Some(start - HOUR)),
        Status::Break => (start - 30 * DAY, Some(start - 30 * DAY)),
    };
    let seed = simulation.seed ^ fingerprint(&listing.symbol.name);
    let mut flow = Flow::new(listing.clone(), seed.rotate_left(17), per_second, levels);
    let minutes = simulation.history_minutes;
    let activity = Activity::new(&listing, if per_second > 0.0 { per_second } else { STILL_RATE });
    let (history, next_trade) = history::generate(&listing, &activity, seed, opened, minutes);
    let first_orders = match listing.symbol.status {
        // A delisted symbol has no orders.
        Status::Break => Vec::new(),
        _ => flow.first_orders(),
    };
    let mut book = Levels::new(1_000_000_000 + seed % 1_000_000_000, &[], &[]);
    for (side, price, quantity) in &first_orders {
        book.set(*side, *price, book.quantity(*side, *price) + quantity);
    }
    let is_trading = listing.symbol.status == Status::Trading;
    let mut market = Market::new(listing.symbol, book, Candles::new(history, Some(0)));
    market.closed_at = closed_at;
    market.tape.begins = opened;
    let engine = is_trading.then(|| {
        let mut engine = Engine::new(flow, next_trade, opened);
        for (side, price, quantity) in first_orders {
            engine.add_shown(side, price, quantity);
        }
        engine
    });
    let mut instrument = Instrument { market, engine };
    instrument.advance(hub, start);
    instrument
}

/// FNV-1a: the same on every machine, unlike the standard hasher.
fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::queues::Incoming;
    use super::*;
    use crate::faults::Faults;
    use crate::interval::MINUTE;
    use crate::market::candles::{Candle, Range};
    use crate::market::levels::Side;
    use crate::market::tape::Trade;

    const START: Millis = 1_750_000_000_000;

    fn simulation(seed: u64) -> Simulation {
        Simulation {
            seed,
            events_per_second: 50.0,
            levels: 300,
            history_minutes: 100,
            warm_up: Duration::from_secs(10),
            ..Simulation::default()
        }
    }

    fn hub() -> Hub {
        Hub::new(Arc::new(Faults::new(0)))
    }

    fn outcome(seed: u64, steps: &[Millis]) -> (Vec<Trade>, String) {
        let hub = hub();
        let listing = catalogue::well_known().swap_remove(0);
        let mut instrument = open_market(listing, &simulation(seed), 50.0, 300, START, &hub);
        for step in steps {
            instrument.advance(&hub, START + step);
        }
        let market = &instrument.market;
        let trades = market.tape.newest(10_000).copied().collect();
        (trades, market.levels.json(5_000, 5_000))
    }

    #[test]
    fn same_seed_gives_same_events() {
        let whole = outcome(3, &[20_000]);
        assert_eq!(whole, outcome(3, &[7, 1_003, 1_004, 9_999, 20_000]));
        assert_ne!(whole, outcome(4, &[20_000]));
        assert!(whole.0.len() > 50);
    }

    /// Means over minutes: volume, trades, root of the squared return, range.
    fn minute_statistics(candles: &[Candle]) -> [f64; 4] {
        let count = candles.len() as f64;
        let mean = |figure: fn(&Candle) -> f64| candles.iter().map(figure).sum::<f64>() / count;
        [
            mean(|candle| candle.volume as f64),
            mean(|candle| candle.trades as f64),
            mean(|candle| (candle.close as f64 / candle.open as f64).ln().powi(2)).sqrt(),
            mean(|candle| (candle.high as f64 / candle.low as f64).ln()),
        ]
    }

    /// Time is given to the engine by hand: the flow trades for an hour in the middle of a minute.
    #[test]
    fn simulated_minutes_continue_the_history() {
        let (hub, minutes) = (hub(), 60);
        let opened = START + 25_000;
        assert_ne!(opened % MINUTE, 0);
        let seam = opened - opened % MINUTE;
        let simulation = Simulation { history_minutes: 600, warm_up: Duration::ZERO, ..simulation(7) };
        for listing in catalogue::well_known() {
            let name = listing.symbol.name.clone();
            // A fine grid, a medium one and two coarse ones.
            if !["BTCUSDT", "XRPUSDT", "LINKUSDT", "PEPEUSDT"].contains(&name.as_str()) {
                continue;
            }
            let mut instrument = open_market(listing, &simulation, 20.0, 1_200, opened, &hub);
            let now = seam + (minutes + 1) * MINUTE;
            instrument.advance(&hub, now);
            let market = &instrument.market;
            let candles = |start: Millis, end: Millis| -> Vec<Candle> {
                let range = Range {
                    interval: "1m".parse().expect("an interval"),
                    start: Some(start),
                    end: Some(end),
                    limit: 1_000,
                };
                market.candles.range(&range, now).into_iter().map(|(candle, _)| candle).collect()
            };
            let history = candles(0, seam - 1);
            let simulated = candles(seam + MINUTE, now - 1);
            assert_eq!((history.len(), simulated.len()), (599, 60), "{name}");
            let expected = minute_statistics(&history);
            let figures = minute_statistics(&simulated);
            for (figure, tolerance) in [(0, 1.15), (1, 1.15), (2, 1.5), (3, 1.5)] {
                let ratio = figures[figure] / expected[figure];
                let range = 1.0 / tolerance..tolerance;
                assert!(range.contains(&ratio), "{name}: figure {figure} is {ratio} times that of the history");
            }
            let highest =
                |candles: &[Candle]| candles.iter().map(|candle| candle.volume).max().expect("candles") as f64;
            let ratio = highest(&simulated) / highest(&history);
            assert!(ratio < 1.3, "{name}: a bar of {ratio} times the highest in the history");
            // The minute in which the history ends and the flow begins is like the others.
            let seam_volume = candles(seam, seam)[0].volume as f64 / expected[0];
            assert!((0.6..1.5).contains(&seam_volume), "{name}: {seam_volume}");
        }
    }

    #[test]
    fn markets_stay_sound_for_hours() {
        let hub = hub();
        let (per_second, hours) = (5.0, 3);
        for listing in catalogue::well_known().into_iter().filter(|l| l.symbol.status == Status::Trading) {
            let (name, began) = (listing.symbol.name.clone(), listing.price);
            let mut instrument = open_market(listing, &simulation(2), per_second, 300, START, &hub);
            instrument.advance(&hub, START + hours * HOUR);
            let market = &instrument.market;
            let [bid, ask] = market.levels.top().map(|level| level.expect("a level").0);
            let spread_bps = (ask - bid) as f64 / bid as f64 * 10_000.0;
            let tick_bps = market.symbol.tick as f64 / bid as f64 * 10_000.0;
            let moved = bid as f64 / began as f64;
            assert!(spread_bps < 5.0 + 3.0 * tick_bps, "{name}: {spread_bps} bps");
            assert!((0.95..1.05).contains(&moved), "{name}: {moved}");
            for side in Side::BOTH {
                assert!(market.levels.count(side) > 200, "{name}");
            }
        }
    }

    #[test]
    fn levels_are_the_resting_orders_on_the_grid() {
        let hub = hub();
        for Instrument { mut market, engine } in open_markets(&simulation(9), &hub, START) {
            let Some(mut engine) = engine else { continue };
            let name = market.symbol.name.clone();
            let [bid, ask] = market.levels.top().map(|level| level.expect("a level").0);
            assert!(bid < ask, "{name}");
            let symbol = market.symbol.clone();
            let on_grid = |level: (i64, i128)| level.0 % symbol.tick == 0 && level.1 % symbol.step == 0;
            let mut levels = Side::BOTH.into_iter().flat_map(|side| market.levels.side(side));
            assert!(levels.all(on_grid), "{name}");
            drop(levels);
            // The resting orders are what the levels show.
            for side in Side::BOTH {
                let quantity = market.levels.side(side).map(|level| level.1).sum();
                let order = Incoming { side: side.opposite(), limit: None, quantity, rests: false };
                let trades = engine.submit(&mut market, &hub, &order, START).trades;
                let traded: i128 = trades.iter().map(|trade| trade.quantity).sum();
                assert_eq!((traded, market.levels.best(side)), (quantity, None), "{name}");
            }
        }
    }
}
