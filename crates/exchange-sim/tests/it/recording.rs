//! Recordings written by hand, and exchanges that play them.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tribune_exchange_sim::{Exchange, Limits, Mode, Settings, StartError};

use crate::support::{PATIENCE, Reply, get, until};

/// 20 seconds into a minute.
pub const T0: i64 = 1_750_000_040_000;
/// The first whole minute after `T0`.
pub const MINUTE_0: i64 = T0 + 40_000;

/// The text of a recording; times are milliseconds after `T0`.
#[derive(Default, Clone)]
pub struct Recording(pub String);

impl Recording {
    /// A book with bids at 100, 99, … and asks at 101, 102, …, seven levels a side, at update 10.
    pub fn of_btc() -> Self {
        let mut recording = Self::default();
        recording.snapshot(0, 10, 7, 7);
        recording.diff(1, 10, 10, &[], &[]);
        recording
    }

    pub fn line(&mut self, after: i64, message: &Value) {
        writeln!(self.0, "{} {message}", (T0 + after) * 1_000_000).expect("memory");
    }

    pub fn stream(&mut self, after: i64, stream: &str, data: &Value) {
        self.line(after, &json!({"stream": stream, "data": data}));
    }

    pub fn snapshot(&mut self, after: i64, id: u64, bids: u64, asks: u64) {
        let level = |price: u64| json!([price.to_string(), "1"]);
        let bids: Vec<Value> = (0..bids).map(|index| level(100 - index)).collect();
        let asks: Vec<Value> = (0..asks).map(|index| level(101 + index)).collect();
        self.line(after, &json!({"lastUpdateId": id, "bids": bids, "asks": asks}));
    }

    pub fn diff(&mut self, after: i64, first: u64, last: u64, bids: &[(u64, u64)], asks: &[(u64, u64)]) {
        self.stream(after, "btcusdt@depth@100ms", &diff("BTCUSDT", first, last, bids, asks));
    }

    pub fn trade(&mut self, after: i64, id: u64) {
        self.trade_at(after, id, "100");
    }

    pub fn trade_at(&mut self, after: i64, id: u64, price: &str) {
        let time = T0 + after;
        let trade =
            json!({"e": "trade", "E": time, "s": "BTCUSDT", "t": id, "p": price, "q": "1", "T": time, "m": true});
        self.stream(after, "btcusdt@trade", &trade);
    }

    /// A trade every two seconds.
    pub fn trades(&mut self, ids: impl Iterator<Item = u64>) {
        ids.for_each(|id| self.trade(2_000 * i64::try_from(id).expect("few"), id));
    }

    pub async fn play(&self, speed: f64) -> Replay {
        Replay::start(&[&self.0], speed).await.expect("it starts")
    }

    /// Plays it to its end.
    pub async fn played(&self) -> Replay {
        let replay = self.play(0.0).await;
        get(&replay.exchange, "/sim/start").await;
        replay.finished().await;
        replay
    }
}

pub fn diff(symbol: &str, first: u64, last: u64, bids: &[(u64, u64)], asks: &[(u64, u64)]) -> Value {
    let levels = |levels: &[(u64, u64)]| -> Value {
        let level = |(price, quantity): &(u64, u64)| json!([price.to_string(), quantity.to_string()]);
        levels.iter().map(level).collect()
    };
    json!({"e": "depthUpdate", "E": T0, "s": symbol, "U": first, "u": last, "b": levels(bids), "a": levels(asks)})
}

pub struct Replay {
    pub exchange: Exchange,
    _folder: tempfile::TempDir,
}

impl Replay {
    /// Each text is a file: `0.txt`, `1.txt`, ….
    pub async fn start(texts: &[&str], speed: f64) -> Result<Self, StartError> {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |(number, text): (usize, &&str)| -> PathBuf {
            let path = folder.path().join(format!("{number}.txt"));
            std::fs::write(&path, text).expect("written");
            path
        };
        let files = texts.iter().enumerate().map(write).collect();
        let settings = Settings {
            mode: Mode::Replay { files, speed },
            limits: Limits { client_wait: PATIENCE, ..Limits::default() },
            ..Settings::default()
        };
        let exchange = tribune_exchange_sim::start(settings).await?;
        Ok(Self { exchange, _folder: folder })
    }

    pub async fn finished(&self) -> Value {
        until("the recording ends", async || self.exchange.finished()).await;
        get(&self.exchange, "/sim/state").await.json()["replay"].clone()
    }

    pub async fn get(&self, request: &str) -> Reply {
        get(&self.exchange, &format!("/api/v3/{request}")).await
    }

    pub async fn json(&self, request: &str) -> Value {
        self.get(request).await.json()
    }

    /// The reason of a 503.
    pub async fn refusal(&self, request: &str) -> String {
        let reply = self.get(request).await;
        assert_eq!((reply.status, &reply.json()["code"]), (503, &json!(-1000)), "{request}: {}", reply.body);
        reply.json()["msg"].as_str().expect("a text").to_owned()
    }

    /// Bids and asks of the book.
    pub async fn depth(&self) -> (usize, usize) {
        let book = self.json("depth?symbol=BTCUSDT&limit=5000").await;
        let count = |side: &str| book[side].as_array().unwrap_or_else(|| panic!("{book}")).len();
        (count("bids"), count("asks"))
    }

    /// Opening (after the first whole minute) and number of trades of each candle.
    pub async fn candles(&self, interval: &str) -> Vec<(i64, u64)> {
        let candles = self.json(&format!("klines?symbol=BTCUSDT&interval={interval}")).await;
        let brief = |row: &Value| (row[0].as_i64().expect("a time") - MINUTE_0, row[8].as_u64().expect("a count"));
        candles.as_array().expect("candles").iter().map(brief).collect()
    }
}
