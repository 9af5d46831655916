//! A client that writes down what the exchange says, and nothing else.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use futures::StreamExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tribune_exchange_sim::{Exchange, Limits, Mode, Settings};

use crate::support::PATIENCE;

/// A plain connection to combined streams.
pub struct Listener(WebSocketStream<TcpStream>);

impl Listener {
    pub async fn open(exchange: &Exchange, streams: &[String]) -> Self {
        let tcp = TcpStream::connect(exchange.addr()).await.expect("connected");
        let address = format!("{}/stream?streams={}", exchange.stream_url(), streams.join("/"));
        let (socket, _) = tokio_tungstenite::client_async(address, tcp).await.expect("upgraded");
        Self(socket)
    }

    /// The next message; `None` once the connection is over.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            match self.0.next().await?.ok()? {
                Message::Text(text) => return Some(text.as_str().to_owned()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }
}

pub fn streams(symbols: &[&str], kinds: &[&str]) -> Vec<String> {
    let of = |symbol: &&str| {
        let symbol = symbol.to_lowercase();
        kinds.iter().map(move |kind| format!("{symbol}@{kind}"))
    };
    symbols.iter().flat_map(of).collect()
}

/// A GET by hand; the body of the answer.
async fn get(exchange: &Exchange, path: &str) -> String {
    let mut stream = TcpStream::connect(exchange.addr()).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: exchange\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    body.to_owned()
}

pub async fn snapshot(exchange: &Exchange, symbol: &str) -> String {
    get(exchange, &format!("/api/v3/depth?symbol={symbol}&limit=5000")).await
}

/// Whether a replay has come to its end.
pub async fn finished(exchange: &Exchange) -> bool {
    let state: Value = serde_json::from_str(&get(exchange, "/sim/state").await).expect("JSON");
    state["replay"]["finished"] == true
}

/// Lines as they are kept: when it came, and what.
#[derive(Debug, Default, Clone)]
pub struct Recording {
    pub lines: Vec<(i64, String)>,
}

impl Recording {
    pub fn note(&mut self, text: String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let nanos = i64::try_from(now.as_nanos()).expect("before 2262");
        self.lines.push((nanos, text));
    }

    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        let read = |text: &String| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        self.lines.iter().map(move |(_, text)| read(text))
    }

    fn text(&self) -> String {
        self.lines.iter().map(|(nanos, text)| format!("{nanos} {text}\n")).collect()
    }

    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.text()).expect("written");
    }

    pub fn write_gz(&self, path: &Path) {
        let file = std::fs::File::create(path).expect("a file");
        let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        gz.write_all(self.text().as_bytes()).expect("written");
        gz.finish().expect("written");
    }
}

/// An exchange that plays recordings.
pub async fn play(files: Vec<PathBuf>, speed: f64) -> Exchange {
    let settings = Settings {
        mode: Mode::Replay { files, speed },
        limits: Limits { client_wait: PATIENCE, ..Limits::default() },
        ..Settings::default()
    };
    tribune_exchange_sim::start(settings).await.expect("it starts")
}
