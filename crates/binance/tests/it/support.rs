//! What the tests start, and how they wait: for conditions, never for times alone.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tribune_binance::{Rest, feed, rest};
use tribune_core::SystemClock;
use tribune_exchange_sim::{Exchange, Limits, Mode, Settings, Simulation};

pub type Feed = feed::Feed<()>;
pub type Published = feed::Published<()>;

/// How long a test waits before it reports a hang. Longer than anything takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How much a test repeats: `short` in `./test`, `long` in `./test --soak`.
pub fn repetitions<T>(short: T, long: T) -> T {
    if std::env::var_os("TRIBUNE_SOAK").is_some() { long } else { short }
}

/// Small markets that are made quickly.
pub fn simulation() -> Simulation {
    Simulation {
        seed: 7,
        events_per_second: 20.0,
        levels: 200,
        history_minutes: 120,
        warm_up: Duration::from_secs(20),
        ..Simulation::default()
    }
}

pub async fn exchange(simulation: Simulation, limits: Limits) -> Exchange {
    let settings = Settings { mode: Mode::Simulated(simulation), limits, ..Settings::default() };
    tribune_exchange_sim::start(settings).await.expect("it starts")
}

pub fn rest_settings(exchange: &Exchange) -> rest::Settings {
    rest::Settings { base_url: exchange.rest_url(), ..rest::Settings::default() }
}

/// A feed alone, which tracks these symbols.
pub fn feed(exchange: &Exchange, symbols: &[&str]) -> Arc<Feed> {
    feed_at(rest_settings(exchange), exchange.stream_url(), symbols)
}

pub fn feed_at(rest: rest::Settings, stream_url: String, symbols: &[&str]) -> Arc<Feed> {
    let clock = Arc::new(SystemClock);
    let rest = Rest::new(rest, clock.clone()).expect("settings");
    let feed =
        Feed::start(feed::Settings::new(stream_url), rest.with_priority(tribune_binance::Priority::Background), clock);
    for (rank, symbol) in symbols.iter().enumerate() {
        feed.track(&Arc::from(*symbol), true, rank).expect("room for it");
    }
    feed
}

/// Asks until it is so.
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How often an endpoint was asked.
pub fn asked(exchange: &Exchange, endpoint: &str) -> u64 {
    let counts = exchange.counts();
    let path = format!("/api/v3/{endpoint}");
    let of = |name: &str| counts.requests.get(name).copied().unwrap_or(0);
    of(&path) + of(endpoint)
}

/// A way to an exchange that can be cut, and lead to another one.
pub struct Wire {
    address: SocketAddr,
    far: Arc<Mutex<(SocketAddr, CancellationToken)>>,
    stop: CancellationToken,
}

impl Wire {
    pub async fn to(exchange: &Exchange) -> Self {
        let (wire, listener) = Self::held(exchange).await;
        wire.open(listener);
        wire
    }

    /// Connections wait until it is opened.
    pub async fn held(exchange: &Exchange) -> (Self, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let wire = Self {
            address: listener.local_addr().expect("an address"),
            far: Arc::new(Mutex::new((exchange.addr(), CancellationToken::new()))),
            stop: CancellationToken::new(),
        };
        (wire, listener)
    }

    pub fn open(&self, listener: TcpListener) {
        let accept = accept(listener, self.far.clone());
        let stopped = self.stop.clone();
        // With the listener gone connections are refused.
        tokio::spawn(async move { stopped.run_until_cancelled(accept).await });
    }

    pub fn rest_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn stream_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// The exchange is gone.
    pub fn cut(&self) {
        self.stop.cancel();
        self.far.lock().expect("no panic").1.cancel();
    }

    /// Every connection ends, and the next ones lead there.
    pub fn lead_to(&self, exchange: &Exchange) {
        let next = (exchange.addr(), CancellationToken::new());
        let before = std::mem::replace(&mut *self.far.lock().expect("no panic"), next);
        before.1.cancel();
    }
}

async fn accept(listener: TcpListener, far: Arc<Mutex<(SocketAddr, CancellationToken)>>) {
    while let Ok((mut near, _)) = listener.accept().await {
        let (address, ends) = far.lock().expect("no panic").clone();
        tokio::spawn(async move {
            let mut far = TcpStream::connect(address).await.expect("an exchange is there");
            let copy = tokio::io::copy_bidirectional(&mut near, &mut far);
            ends.run_until_cancelled(copy).await
        });
    }
}
