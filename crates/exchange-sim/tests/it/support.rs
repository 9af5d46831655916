//! A minimal client: HTTP by hand, WebSocket frames as they come.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use tribune_exchange_sim::{Exchange, Limits, Mode, Settings, Simulation};

pub const START: i64 = 1_750_000_000_000;
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn simulation() -> Simulation {
    Simulation {
        seed: 42,
        start: Some(START),
        events_per_second: 50.0,
        levels: 300,
        history_minutes: 2 * 24 * 60,
        warm_up: Duration::from_secs(60),
        ..Simulation::default()
    }
}

pub async fn simulated(limits: Limits) -> Exchange {
    let settings = Settings { mode: Mode::Simulated(simulation()), limits, ..Settings::default() };
    tribune_exchange_sim::start(settings).await.expect("it starts")
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
    /// Whether the body was as long as announced.
    pub complete: bool,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub async fn get(exchange: &Exchange, path: &str) -> Reply {
    request(exchange.addr(), "GET", path, "", "").await
}

pub async fn post(exchange: &Exchange, path: &str, body: &str) -> Reply {
    request(exchange.addr(), "POST", path, "", body).await
}

/// `headers` are complete lines, each with its line end.
pub async fn request(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> Reply {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut bytes = Vec::new();
    // A connection that is cut off gives status 0.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let headers: BTreeMap<String, String> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let announced = headers.get("content-length").and_then(|length| length.parse().ok());
    Reply { status, complete: announced == Some(body.len()), headers, body: body.to_owned() }
}

pub struct Socket(pub WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub async fn open(exchange: &Exchange, path: &str) -> Self {
        let address = format!("{}{path}", exchange.stream_url());
        let (socket, _) = tokio_tungstenite::connect_async(address).await.expect("connected");
        Self(socket)
    }

    pub async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.expect("sent");
    }

    /// The next frame of any kind; `None` once the connection is over.
    pub async fn frame(&mut self) -> Option<Message> {
        let frame = tokio::time::timeout(PATIENCE, self.0.next()).await;
        frame.expect("a frame")?.ok()
    }

    /// The next text; pings are answered by the library on the way.
    pub async fn text(&mut self) -> Option<String> {
        loop {
            match self.frame().await? {
                Message::Text(text) => return Some(text.as_str().to_owned()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    pub async fn json(&mut self) -> Value {
        let text = self.text().await.expect("a message");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// Waits until a condition holds.
pub async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Decimal text as an integer of 10⁻⁸.
pub fn units(value: &Value) -> i128 {
    let text = value.as_str().unwrap_or_else(|| panic!("not a text: {value}"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<8}").parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// A client's book: price to quantity.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Book {
    pub id: u64,
    pub bids: BTreeMap<i128, i128>,
    pub asks: BTreeMap<i128, i128>,
}

impl Book {
    pub fn of(snapshot: &Value) -> Self {
        let mut book = Self { id: snapshot["lastUpdateId"].as_u64().expect("an id"), ..Self::default() };
        set(&mut book.bids, &snapshot["bids"]);
        set(&mut book.asks, &snapshot["asks"]);
        book
    }

    /// False if there is a gap before the diff; one that is already in the book changes nothing.
    pub fn apply(&mut self, diff: &Value) -> bool {
        let (first, last) = (diff["U"].as_u64().expect("U"), diff["u"].as_u64().expect("u"));
        if last <= self.id {
            return true;
        }
        if first > self.id + 1 {
            return false;
        }
        set(&mut self.bids, &diff["b"]);
        set(&mut self.asks, &diff["a"]);
        self.id = last;
        true
    }

    /// Best bid and ask: price and quantity.
    pub fn top(&self) -> [(i128, i128); 2] {
        let bid = self.bids.last_key_value().expect("bids");
        let ask = self.asks.first_key_value().expect("asks");
        [(*bid.0, *bid.1), (*ask.0, *ask.1)]
    }
}

fn set(side: &mut BTreeMap<i128, i128>, levels: &Value) {
    for level in levels.as_array().expect("levels") {
        let (price, quantity) = (units(&level[0]), units(&level[1]));
        if quantity == 0 {
            side.remove(&price);
        } else {
            side.insert(price, quantity);
        }
    }
}
