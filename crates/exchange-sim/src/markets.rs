//! All markets of the exchange, with the clock that moves them and the hub that sends their messages.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::faults::Faults;
use crate::hub::Hub;
use crate::interval::{Millis, SECOND};
use crate::market::ticker::Ticker;
use crate::simulated::{Instrument, SharedInstrument};

/// How often simulated markets move up to the clock.
const BEAT: Duration = Duration::from_millis(10);
/// Markets that move before other tasks get the thread.
const MARKETS_PER_TURN: usize = 64;
/// The streams with the tickers of all symbols.
pub const ALL_TICKERS: [&str; 2] = ["!miniTicker@arr", "!ticker@arr"];

#[derive(Debug)]
pub struct Markets {
    pub instruments: IndexMap<String, SharedInstrument>,
    pub hub: Hub,
    pub faults: Arc<Faults>,
    pub clock: Clock,
}

impl Markets {
    /// `open` makes the markets, which may publish to the hub meanwhile.
    pub fn new(seed: u64, clock: Clock, open: impl FnOnce(&Hub) -> Vec<Instrument>) -> Self {
        let faults = Arc::new(Faults::new(seed));
        let hub = Hub::new(faults.clone());
        let named = |instrument: Instrument| {
            let name = instrument.market.symbol.name.clone();
            (name, Arc::new(Mutex::new(instrument)))
        };
        Self { instruments: open(&hub).into_iter().map(named).collect(), hub, faults, clock }
    }

    pub fn lookup(&self, symbol: &str) -> Option<&SharedInstrument> {
        self.instruments.get(symbol)
    }

    /// The time by which markets move.
    pub fn now(&self) -> Millis {
        self.clock.millis()
    }

    /// The time as clients see it, with the skew of a fault.
    pub fn server_time(&self) -> Millis {
        self.hub.event_time(self.now())
    }

    /// Moves simulated markets until the exchange stops.
    pub async fn run(self: Arc<Self>, stopping: CancellationToken) {
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut second = self.now().div_euclid(SECOND);
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                _ = beat.tick() => {}
            }
            let now = self.now();
            for (index, instrument) in self.instruments.values().enumerate() {
                if index % MARKETS_PER_TURN == MARKETS_PER_TURN - 1 {
                    tokio::task::yield_now().await;
                }
                instrument.lock().advance(&self.hub, now);
            }
            if now.div_euclid(SECOND) != second {
                second = now.div_euclid(SECOND);
                self.publish_all_tickers(second * SECOND);
            }
        }
    }

    /// Sends the tickers of all symbols in which something happened in the last second.
    pub fn publish_all_tickers(&self, at: Millis) {
        let shapes: [fn(Ticker, Millis) -> Value; 2] = [Ticker::mini_event, Ticker::event];
        for (stream, shape) in ALL_TICKERS.into_iter().zip(shapes) {
            self.hub.publish(stream, || {
                let active = self.instruments.values().filter_map(|instrument| {
                    let market = &instrument.lock().market;
                    let is_shown = market.is_active && market.has_ticker();
                    is_shown.then(|| shape(market.ticker(at, self.faults.skew()), self.hub.event_time(at)))
                });
                let active: Vec<Value> = active.collect();
                (!active.is_empty()).then(|| Value::Array(active).to_string())
            });
        }
    }
}
