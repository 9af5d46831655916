//! Opens the simulated markets and moves them by the clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use indexmap::IndexMap;
use jiff::Timestamp;

use super::catalogue::{self, Listing};
use super::engine::Engine;
use super::flow::Flow;
use super::history;
use super::matching::{MatchingBook, OrderId};
use crate::faults::Faults;
use crate::interval::{DAY, HOUR, Millis, SECOND};
use crate::market::Market;
use crate::market::candles::Candles;
use crate::market::levels::{Levels, Side};
use crate::market::symbol::Status;
use crate::number::{Price, Quantity};
use crate::settings::{Settings, Simulation};
use crate::stream::all::AllTickers;
use crate::stream::hub::Hub;
use crate::venue::{Label, Listed, Opening, Shared, Venue, lock};

/// How often the markets are moved up to the clock.
const BEAT: Duration = Duration::from_millis(10);
/// Markets that are moved before others get their turn on the thread.
const TURN: usize = 64;

/// Opens the exchange and sets its markets in motion. Making them takes a moment, on a thread of its own.
pub async fn open(settings: &Settings, simulation: Simulation) -> Arc<Venue> {
    let start = simulation.start.unwrap_or_else(|| Timestamp::now().as_millisecond());
    let settings = settings.clone();
    let faults = Arc::new(Faults::new(simulation.seed));
    let hub = Hub::new(faults.clone());
    let make = move || {
        let listed = open_markets(&simulation, &hub, start);
        let opening = Opening {
            label: Label::Simulated,
            listed,
            start: start.saturating_mul(1_000_000),
            pace: 1.0,
            replay: None,
        };
        Arc::new(Venue::open(opening, hub, faults, &settings))
    };
    let venue = match tokio::task::spawn_blocking(make).await {
        Ok(venue) => venue,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    };
    tokio::spawn(run(venue.clone()));
    venue
}

/// All markets as they are at `start`: with a history, and warmed up.
pub fn open_markets(simulation: &Simulation, hub: &Hub, start: Millis) -> IndexMap<String, Shared> {
    let busy = catalogue::well_known()
        .into_iter()
        .map(|listing| (listing, simulation.events_per_second, simulation.levels));
    let extra = catalogue::extra(simulation.extra_symbols, simulation.seed)
        .into_iter()
        .map(|listing| (listing, simulation.extra_events_per_second, simulation.extra_levels));
    busy.chain(extra)
        .map(|(listing, per_second, levels)| {
            let name = listing.symbol.name.clone();
            let listed = open_market(listing, simulation, per_second, levels, start, hub);
            (name, Arc::new(Mutex::new(listed)))
        })
        .collect()
}

fn open_market(
    listing: Listing,
    simulation: &Simulation,
    per_second: f64,
    levels: usize,
    start: Millis,
    hub: &Hub,
) -> Listed {
    let warm_up = Millis::try_from(simulation.warm_up.as_millis()).unwrap_or(0);
    let (opened, closed_at) = match listing.symbol.status {
        Status::Trading => (start - warm_up, None),
        Status::Halt => (start - HOUR, Some(start - HOUR)),
        Status::Break => (start - 30 * DAY, Some(start - 30 * DAY)),
    };
    let seed = simulation.seed ^ fingerprint(&listing.symbol.name);
    let (minutes, next_trade) = history::walk(&listing, seed, opened, simulation.history_minutes);
    let mut flow = Flow::new(listing.clone(), seed.rotate_left(17), per_second, levels);
    let first_orders = match listing.symbol.status {
        // A delisted symbol has no orders.
        Status::Break => Vec::new(),
        _ => flow.first_orders(),
    };
    let (book, shown, next_order) = first_book(&first_orders, 1_000_000_000 + seed % 1_000_000_000);
    let trading = listing.symbol.status == Status::Trading;
    let mut market = Market::new(listing.symbol, shown, Candles::with_history(minutes));
    market.closed_at = closed_at;
    market.tape.begins = opened;
    let flow = trading.then_some(flow);
    let mut engine = Engine::new(book, flow, next_order, next_trade, opened);
    if trading {
        engine.advance(&mut market, hub, start);
    }
    Listed {
        market,
        engine: trading.then_some(engine),
    }
}

/// The orders as a matching book and as it is shown, and the id that the next order has.
fn first_book(orders: &[(Side, Price, Quantity)], id: u64) -> (MatchingBook, Levels, OrderId) {
    let mut book = MatchingBook::default();
    let mut shown = Levels::standing_at(id);
    let mut next_order = 1;
    for (side, price, quantity) in orders {
        let changed = book.rest(next_order, *side, *price, *quantity);
        shown.set(*side, *price, changed.total);
        next_order += 1;
    }
    (book, shown, next_order)
}

/// FNV-1a: the same on every machine, unlike the standard hasher.
fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Moves the markets until the exchange stops.
pub async fn run(venue: Arc<Venue>) {
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut second = venue.now().div_euclid(SECOND);
    loop {
        tokio::select! {
            () = venue.stopping.cancelled() => return,
            _ = beat.tick() => {}
        }
        let now = venue.now();
        for (index, listed) in venue.listed.values().enumerate() {
            if index % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
            let mut listed = lock(listed);
            let Listed { market, engine } = &mut *listed;
            if let Some(engine) = engine {
                engine.advance(market, &venue.hub, now);
            }
        }
        if now.div_euclid(SECOND) != second {
            second = now.div_euclid(SECOND);
            AllTickers::BOTH
                .iter()
                .for_each(|all| all.publish(&venue, second * SECOND));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut listed = open_market(listing, &simulation(seed), 50.0, 300, START, &hub);
        let Listed { market, engine } = &mut listed;
        for step in steps {
            engine.as_mut().expect("it trades").advance(market, &hub, START + step);
        }
        (market.tape.newest(10_000).copied().collect(), market.levels.json(5_000))
    }

    #[test]
    fn the_same_seed_gives_the_same_events_however_time_is_cut() {
        let whole = outcome(3, &[20_000]);
        assert_eq!(whole, outcome(3, &[7, 1_003, 1_004, 9_999, 20_000]));
        assert_ne!(whole, outcome(4, &[20_000]));
        assert!(whole.0.len() > 50);
    }

    #[test]
    fn markets_stay_sound_for_hours() {
        let hub = hub();
        let (per_second, hours) = (5.0, 3);
        for listing in catalogue::well_known()
            .into_iter()
            .filter(|l| l.symbol.status == Status::Trading)
        {
            let (name, began) = (listing.symbol.name.clone(), listing.price);
            let mut listed = open_market(listing, &simulation(2), per_second, 300, START, &hub);
            let Listed { market, engine } = &mut listed;
            let engine = engine.as_mut().expect("it trades");
            engine.advance(market, &hub, START + hours * HOUR);
            let (bid, ask) = market.levels.top();
            let (bid, ask) = (bid.expect("bids").0, ask.expect("asks").0);
            let spread_bps = (ask - bid) as f64 / bid as f64 * 10_000.0;
            let tick_bps = market.symbol.tick as f64 / bid as f64 * 10_000.0;
            let moved = bid as f64 / began as f64;
            assert!(spread_bps < 5.0 + 3.0 * tick_bps, "{name}: {spread_bps} bps");
            assert!((0.95..1.05).contains(&moved), "{name}: {moved}");
            for side in [Side::Bid, Side::Ask] {
                assert!(engine.book.level_count(side) > 200, "{name}");
            }
        }
    }

    #[test]
    fn what_is_shown_is_what_rests() {
        let hub = hub();
        for (name, listed) in open_markets(&simulation(9), &hub, START) {
            let listed = lock(&listed);
            let Some(engine) = &listed.engine else { continue };
            let (bid, ask) = listed.market.levels.top();
            let (bid, ask) = (bid.expect("bids"), ask.expect("asks"));
            assert!(bid.0 < ask.0, "{name}");
            assert_eq!(engine.book.best(Side::Bid), Some(bid.0), "{name}");
            assert_eq!(
                engine.book.available(Side::Bid, None),
                listed.market.levels.asks().map(|l| l.1).sum::<i128>()
            );
            assert_eq!(
                engine.book.available(Side::Ask, None),
                listed.market.levels.bids().map(|l| l.1).sum::<i128>()
            );
            let symbol = &listed.market.symbol;
            let on_grid = |level: (i64, i128)| level.0 % symbol.tick == 0 && level.1 % symbol.step == 0;
            assert!(
                listed
                    .market
                    .levels
                    .bids()
                    .chain(listed.market.levels.asks())
                    .all(on_grid),
                "{name}"
            );
        }
    }
}
