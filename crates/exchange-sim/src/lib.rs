//! A Binance-compatible exchange on loopback, to test and to show Tribune with: REST and WebSocket with the shapes,
//! weights, headers, errors, update ids, pings and limits of the real one, and faults on demand. It shares no code
//! with the client that is tested against it.
//!
//! ```no_run
//! use tribune_exchange_sim::{Fault, Settings, start};
//!
//! # async fn example() -> Result<(), tribune_exchange_sim::StartError> {
//! let exchange = start(Settings::default()).await?;
//! println!("{} {}", exchange.rest_url(), exchange.stream_url());
//! exchange.faults().set(&Fault::DropConnections);
//! assert_eq!(exchange.counts().organic_429, 0);
//! # Ok(())
//! # }
//! ```
//!
//! In reading order:
//! - `settings`: what it is started with
//! - `number`, `interval`, `clock`: exact numbers, candle lengths, time as a parameter
//! - `market`: one symbol as clients see it: book, trades, candles, tickers, and their messages
//! - `simulated`: seeded order flow over matching books
//! - `replay`: recorded messages, played again
//! - `stream`: WebSocket connections and who listens to what
//! - `rest`, `weight`, `account`: endpoints, what they cost, and the signed ones
//! - `faults`: what can go wrong on demand
//! - `venue`, `server`: everything together, and the listener

mod account;
mod clock;
mod counts;
mod faults;
mod interval;
mod market;
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

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use counts::Counts;
pub use faults::Fault;
pub use settings::{ApiKey, Limits, Mode, Settings, Simulation};
use venue::Venue;

/// Why the exchange did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {source}; choose another address or port")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("cannot replay: {0}")]
    Replay(String),
}

/// A running exchange. Dropping it stops it.
#[derive(Debug)]
pub struct Exchange {
    address: SocketAddr,
    venue: Arc<Venue>,
    server: Option<JoinHandle<()>>,
}

/// Makes things go wrong.
#[derive(Debug, Clone)]
pub struct FaultHandle(Arc<Venue>);

impl FaultHandle {
    pub fn set(&self, fault: &Fault) {
        rest::sim::set_fault(&self.0, fault);
    }

    pub fn clear(&self) {
        self.set(&Fault::Clear);
    }
}

/// Starts an exchange, ready to be asked when this returns.
pub async fn start(settings: Settings) -> Result<Exchange, StartError> {
    let listener = TcpListener::bind(settings.listen).await;
    let address = settings.listen;
    let listen = |source| StartError::Listen { address, source };
    let listener = listener.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let venue = open(settings).await?;
    let doorman = server::Doorman::new(listener, venue.faults.clone());
    let server = Some(tokio::spawn(server::serve(doorman, venue.clone())));
    Ok(Exchange { address, venue, server })
}

async fn open(settings: Settings) -> Result<Arc<Venue>, StartError> {
    match settings.mode.clone() {
        Mode::Simulated(simulation) => Ok(simulated::run::open(&settings, simulation).await),
        Mode::Replay { files, speed } => replay::open(&settings, files, speed).await.map_err(StartError::Replay),
    }
}

impl Exchange {
    pub const fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The base of REST, `http://127.0.0.1:PORT`.
    pub fn rest_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base of the streams, `ws://127.0.0.1:PORT`.
    pub fn stream_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub fn faults(&self) -> FaultHandle {
        FaultHandle(self.venue.clone())
    }

    pub fn counts(&self) -> Counts {
        Counts::of(&self.venue)
    }

    /// Whether a recording has been played to its end; a simulation never ends.
    pub fn finished(&self) -> bool {
        self.venue.replay.as_ref().is_some_and(|replay| replay.finished())
    }

    /// Tells the listener, the markets and every connection to end.
    pub fn stop(&self) {
        self.venue.stopping.cancel();
    }

    /// Stops, and waits until the address is free again.
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
