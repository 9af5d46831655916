//! For tests: values, a manual clock, and a server with scripted answers.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod values;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tribune_clock::{Clock, SystemClock};

pub use values::*;

use crate::feed::{Beats, BookView, Observer};
use crate::model::Millis;
use crate::number::Notional;
use crate::rest::{Rest, Settings};
use crate::tape::Tape;

/// Keeps nothing.
impl Observer for () {
    fn set_turnover(&self, _: Notional) {}

    fn look(&self, _: &BookView, _: &Tape, _: Beats, _: Millis) {}

    fn interrupted(&self, _: Millis) {}
}

pub struct ManualClock {
    begin: Instant,
    begin_ms: i64,
    passed_ms: Mutex<i64>,
}

impl ManualClock {
    pub fn at(begin_ms: i64) -> Self {
        Self { begin: Instant::now(), begin_ms, passed_ms: Mutex::new(0) }
    }

    pub fn advance_ms(&self, millis: i64) {
        *self.passed_ms.lock().expect("clock") += millis;
    }

    pub fn wall_ms(&self) -> i64 {
        self.begin_ms + *self.passed_ms.lock().expect("clock")
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.wall_ms()).expect("time")
    }

    fn monotonic(&self) -> Instant {
        let passed = *self.passed_ms.lock().expect("clock");
        self.begin + Duration::from_millis(passed.unsigned_abs())
    }
}

/// The machine's clock with a shift: `pass_ms` moves both clocks, `step_ms` only the wall clock.
#[derive(Default)]
pub struct ShiftedClock {
    passed_ms: AtomicU64,
    stepped_ms: AtomicU64,
}

impl ShiftedClock {
    pub fn pass_ms(&self, millis: u64) {
        self.passed_ms.fetch_add(millis, Ordering::SeqCst);
    }

    pub fn step_ms(&self, millis: u64) {
        self.stepped_ms.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        let shift = self.passed_ms.load(Ordering::SeqCst) + self.stepped_ms.load(Ordering::SeqCst);
        SystemClock.now() + Duration::from_millis(shift)
    }

    fn monotonic(&self) -> Instant {
        SystemClock.monotonic() + Duration::from_millis(self.passed_ms.load(Ordering::SeqCst))
    }
}

/// A request as the server received it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub query: String,
    /// Lower case.
    pub head: String,
    pub body: String,
}

impl Asked {
    /// A parameter of the query or the form, still percent-encoded.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').chain(self.body.split('&'));
        pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
    delay: Duration,
    /// Announces so many bytes more than it sends, then hangs up.
    withheld: usize,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: String::new(), body: body.into(), delay: Duration::ZERO, withheld: 0 }
    }

    pub fn json(body: &serde_json::Value) -> Self {
        Self::new(200, body.to_string())
    }

    pub fn refusal(code: i64, message: &str) -> Self {
        Self::new(400, serde_json::json!({"code": code, "msg": message}).to_string())
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub fn after_ms(mut self, millis: u64) -> Self {
        self.delay = Duration::from_millis(millis);
        self
    }

    pub fn half_sent(mut self) -> Self {
        self.withheld = 100;
        self
    }
}

type Handler = dyn Fn(&Asked) -> Reply + Send + Sync;

/// Listens on its own port until the test's runtime ends.
pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub async fn start(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, handler): (_, Arc<Handler>) = (asked.clone(), Arc::new(handler));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, seen.clone(), handler.clone()));
            }
        });
        Self { url, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("asked").clone()
    }

    pub fn client(&self, change: impl FnOnce(&mut Settings)) -> Rest {
        client(&self.url, change)
    }
}

pub fn client(url: &str, change: impl FnOnce(&mut Settings)) -> Rest {
    client_by(Arc::new(SystemClock), url, change)
}

/// The same with another clock.
pub fn client_by(clock: Arc<dyn Clock>, url: &str, change: impl FnOnce(&mut Settings)) -> Rest {
    let mut settings = Settings {
        base_url: url.to_owned(),
        // Longer than anything takes on a busy machine.
        timeout: Duration::from_secs(60),
        ..Settings::default()
    };
    change(&mut settings);
    Rest::new(settings, clock).expect("client")
}

async fn answer(mut stream: TcpStream, seen: Arc<Mutex<Vec<Asked>>>, handler: Arc<Handler>) {
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    seen.lock().expect("seen").push(asked.clone());
    let reply = handler(&asked);
    tokio::time::sleep(reply.delay).await;
    let head = format!(
        "HTTP/1.1 {} Said\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n",
        reply.status,
        reply.body.len() + reply.withheld,
        reply.headers
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&reply.body).await;
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        let mut line = text.lines().next()?.split(' ');
        let method = line.next()?.to_owned();
        let (path, query) = line.next().map(|target| target.split_once('?').unwrap_or((target, "")))?;
        return Some(Asked { method, path: path.to_owned(), query: query.to_owned(), head, body: body.to_owned() });
    }
}

/// Waits until the condition holds; panics after two minutes.
pub async fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < deadline, "never");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
