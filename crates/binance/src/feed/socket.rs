//! One WebSocket connection to the exchange.

use std::time::{Duration, Instant};

use futures::{FutureExt, SinkExt, StreamExt};
use reqwest::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use reqwest::{StatusCode, Upgraded, Url};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::subscriptions::Subscriptions;
use crate::rest::{http_client, root_cause};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A day of tickers of every symbol is far below this.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// A connection that is silent for this long is pinged, and has as long again to answer.
const QUIET: Duration = Duration::from_secs(2);
/// The exchange takes five messages a second, our pongs among them.
const BETWEEN_MESSAGES: Duration = Duration::from_millis(300);

pub struct Socket {
    stream: WebSocketStream<Upgraded>,
    pub(super) subscriptions: Subscriptions,
    pub opened: Instant,
    last_frame: Instant,
    last_sent: Option<Instant>,
    /// Set while an answer to our ping is awaited.
    pinged: Option<Instant>,
    /// It is to be replaced: the exchange has announced its end, or it does not bring what it should.
    pub closing: bool,
}

pub enum Frame {
    Text(tokio_tungstenite::tungstenite::Utf8Bytes),
    /// A ping, a pong, or another frame without text.
    Other,
    /// The connection ended, and why.
    Ended(String),
}

impl Socket {
    /// Opens `base`/stream, to which streams are then subscribed.
    pub async fn open(base: &str, now: impl Fn() -> Instant) -> Result<Self, String> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, Self::connect(base, now)).await;
        opened.unwrap_or_else(|_| Err("no connection within 5 seconds".to_owned()))
    }

    /// With an HTTP request like any other, so that proxies and certificates are those of all requests.
    async fn connect(base: &str, now: impl Fn() -> Instant) -> Result<Self, String> {
        let address = base.trim_end_matches('/').replacen("ws", "http", 1);
        let url: Url = format!("{address}/stream").parse().map_err(|_| "the stream address is not a URL".to_owned())?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let client = http_client(&host, CONNECT_TIMEOUT).map_err(|error| error.to_string())?;
        let key = generate_key();
        let request = client
            .get(url)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        let response = request.send().await.map_err(|error| format!("{host}: {}", root_cause(&error)))?;
        let accept = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        let is_accepted = accept.is_some_and(|accept| accept == &derive_accept_key(key.as_bytes()));
        if response.status() != StatusCode::SWITCHING_PROTOCOLS || !is_accepted {
            return Err(format!("{host} answered {} and opened no stream", response.status()));
        }
        let io = response.upgrade().await.map_err(|error| format!("{host}: {}", root_cause(&error)))?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES))
            .read_buffer_size(64 * 1024);
        let stream = WebSocketStream::from_raw_socket(io, Role::Client, Some(limits)).await;
        let now = now();
        Ok(Self {
            stream,
            opened: now,
            last_frame: now,
            last_sent: None,
            pinged: None,
            subscriptions: Subscriptions::default(),
            closing: false,
        })
    }

    /// The next frame; cancel-safe.
    pub async fn next_frame(&mut self) -> Frame {
        match self.stream.next().await {
            Some(Ok(Message::Text(text))) => Frame::Text(text),
            Some(Ok(Message::Close(frame))) => {
                let why = frame.map(|frame| frame.reason.to_string()).filter(|reason| !reason.is_empty());
                Frame::Ended(why.unwrap_or_else(|| "the exchange closed the connection".to_owned()))
            }
            Some(Ok(_)) => Frame::Other,
            Some(Err(error)) => Frame::Ended(error.to_string()),
            None => Frame::Ended("the connection ended".to_owned()),
        }
    }

    pub fn note_frame(&mut self, now: Instant) {
        self.last_frame = now;
        self.pinged = None;
    }

    /// Sends the next subscription message if the rate limit allows it, or a ping after a long silence; says why the
    /// connection is of no use any more. Never waits: what the system does not accept now stays in the buffer.
    pub fn tend(&mut self, now: Instant) -> Result<(), String> {
        if self.pinged.is_some_and(|pinged| now.duration_since(pinged) >= QUIET) {
            return Err("the exchange does not answer pings".to_owned());
        }
        if self.subscriptions.is_unanswered(now) {
            return Err("the exchange does not answer subscriptions".to_owned());
        }
        if self.last_sent.is_none_or(|last| now.duration_since(last) >= BETWEEN_MESSAGES)
            && let Some(message) = self.next_message(now)
        {
            self.last_sent = Some(now);
            self.stream.start_send_unpin(message).map_err(|error| error.to_string())?;
        }
        self.stream.flush().now_or_never().unwrap_or(Ok(())).map_err(|error| error.to_string())
    }

    fn next_message(&mut self, now: Instant) -> Option<Message> {
        if let Some(text) = self.subscriptions.next_message(now) {
            return Some(Message::text(text));
        }
        let is_quiet = self.pinged.is_none() && now.duration_since(self.last_frame) >= QUIET;
        is_quiet.then(|| {
            self.pinged = Some(now);
            Message::Ping(bytes::Bytes::new())
        })
    }
}
