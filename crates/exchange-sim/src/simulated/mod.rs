//! The simulated mode: seeded order flow over matching books.

mod catalogue;
pub mod engine;
mod flow;
mod history;
mod open;
pub mod queues;

use std::sync::Arc;

use crate::hub::Hub;
use crate::interval::Millis;
use crate::market::Market;
use engine::Engine;
pub use open::open_markets;
use parking_lot::Mutex;

/// One listed symbol: what clients see and, in simulated mode, what moves it.
#[derive(Debug)]
pub struct Instrument {
    pub market: Market,
    pub engine: Option<Engine>,
}

impl Instrument {
    /// Moves a simulated market up to `now`.
    pub fn advance(&mut self, hub: &Hub, now: Millis) {
        if let Some(engine) = &mut self.engine {
            engine.advance(&mut self.market, hub, now);
        }
    }
}

pub type SharedInstrument = Arc<Mutex<Instrument>>;
