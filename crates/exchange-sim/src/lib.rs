//! A Binance-compatible exchange on loopback, for tests and demos of Tribune: REST and WebSocket with the shapes, weights,
//! headers, errors, update ids, pings and limits of the real one, and faults on demand. It shares no code with the client
//! that is tested against it.
//!
//! `examples/exchange.rs` is a program that runs one.
//!
//! Modules in reading order:
//! - `number`, `interval`, `clock`: exact numbers, candle intervals, the exchange's clock
//! - `settings`: what an exchange is started with
//! - `faults`, `hub`: what can go wrong on demand, and how messages reach their subscribers
//! - `market`: one symbol as clients see it: order book, trades, candles, tickers, and their stream messages
//! - `simulated`: seeded order flow over matching books, and a generated history that continues into it
//! - `markets`: all of them, with the clock that moves them
//! - `replay`: recordings: their format, the check before they are played, and the player
//! - `api`, `account`, `weight`: requests and errors, signed endpoints, request weight
//! - `venue`: the whole state and its counters
//! - `rest`, `stream`, `server`: endpoints, WebSocket connections, the listener and the routes
//!
//! A module uses only modules listed before it.

#![allow(clippy::disallowed_methods, reason = "the simulator is the clock of its own market")]

mod account;
mod api;
mod clock;
mod faults;
mod hub;
mod interval;
mod market;
mod markets;
mod number;
mod replay;
mod rest;
mod server;
mod settings;
mod simulated;
mod stream;
mod venue;
mod weight;

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use clock::Clock;
pub use faults::Fault;
use hub::Hub;
use markets::Markets;
pub use replay::RecordingError;
pub use settings::{ApiKey, Limits, Mode, Settings, Simulation};
pub use venue::Counts;
use venue::Venue;

/// Why an exchange did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {source}; choose another address or port")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("cannot replay {0}")]
    Replay(#[from] RecordingError),
}

/// A running exchange. Dropping it stops it.
#[derive(Debug)]
pub struct Exchange {
    address: SocketAddr,
    venue: Arc<Venue>,
    server: Option<JoinHandle<()>>,
}

/// Injects faults.
#[derive(Debug, Clone)]
pub struct FaultHandle(Arc<Venue>);

impl FaultHandle {
    pub fn set(&self, fault: &Fault) {
        rest::sim::set_fault(&self.0, fault.clone());
    }

    pub fn clear(&self) {
        self.set(&Fault::Clear);
    }
}

/// Starts an exchange; it serves requests when this returns.
pub async fn start(settings: Settings) -> Result<Exchange, StartError> {
    let listener = TcpListener::bind(settings.listen).await;
    let address = settings.listen;
    let listen = |source| StartError::Listen { address, source };
    start_on(listener.map_err(listen)?, settings).await
}

/// The same on a listener that is bound already; `settings.listen` is ignored.
pub async fn start_on(listener: TcpListener, settings: Settings) -> Result<Exchange, StartError> {
    let address = settings.listen;
    let address = listener.local_addr().map_err(|source| StartError::Listen { address, source })?;
    let venue = open(settings).await?;
    let server = Some(tokio::spawn(server::serve(listener, venue.clone())));
    Ok(Exchange { address, venue, server })
}

async fn open(settings: Settings) -> Result<Arc<Venue>, StartError> {
    match settings.mode.clone() {
        Mode::Simulated(simulation) => Ok(open_simulation(&settings, simulation).await),
        Mode::Replay { files, speed } => {
            let client_wait = settings.limits.client_wait;
            let player = blocking(move || replay::open(files, speed, client_wait)).await?;
            let (markets, progress) = (player.markets.clone(), player.progress.clone());
            let venue = Arc::new(Venue::new(&settings, markets, Some(progress)));
            tokio::spawn(player.run(venue.stopping.clone()));
            Ok(venue)
        }
    }
}

/// Generating the markets takes a moment, on a blocking thread.
async fn open_simulation(settings: &Settings, simulation: Simulation) -> Arc<Venue> {
    let seed = simulation.seed;
    let start = simulation.start.unwrap_or_else(|| Timestamp::now().as_millisecond());
    let clock = Clock::starting_at(start.saturating_mul(1_000_000), 1.0);
    let open = move |hub: &Hub| simulated::open_markets(&simulation, hub, start);
    let markets = Arc::new(blocking(move || Markets::new(seed, clock, open)).await);
    let venue = Arc::new(Venue::new(settings, markets.clone(), None));
    tokio::spawn(markets.run(venue.stopping.clone()));
    venue
}

/// Runs what takes a moment on a thread of its own.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

impl Exchange {
    pub const fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of REST, `http://127.0.0.1:PORT`.
    pub fn rest_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL of the streams, `ws://127.0.0.1:PORT`.
    pub fn stream_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub fn faults(&self) -> FaultHandle {
        FaultHandle(self.venue.clone())
    }

    pub fn counts(&self) -> Counts {
        self.venue.counts()
    }

    /// Whether a replay has ended; a simulation never does.
    pub fn finished(&self) -> bool {
        self.venue.replay.as_ref().is_some_and(|replay| replay.is_finished())
    }

    /// Tells the listener, the markets and every connection to stop.
    pub fn stop(&self) {
        self.venue.stopping.cancel();
    }

    /// Stops and waits until the address is free.
    pub async fn shut_down(mut self) {
        self.stop();
        if let Some(server) = self.server.take() {
            let _ = server.await;
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.stop();
    }
}
