//! One WebSocket connection to the exchange.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::http::Uri;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::dial::{Io, dial};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A day of tickers of every symbol is far below this.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// Streams named in one subscription.
const STREAMS_A_MESSAGE: usize = 100;
/// The exchange takes five messages a second, our pongs among them.
const BETWEEN_MESSAGES: Duration = Duration::from_millis(300);

/// A connection, when it last said anything, and what is still to be said to it.
pub struct Socket {
    stream: WebSocketStream<Box<dyn Io>>,
    pub opened: Instant,
    pub heard: Instant,
    said: Instant,
    /// Set while an answer to our ping is awaited.
    pinged: Option<Instant>,
    to_say: VecDeque<(Wish, String)>,
    next_id: u64,
    /// Subscriptions that the exchange has answered.
    answered: u64,
    /// It did not take one of them.
    refused: bool,
    /// The exchange has announced that it will close it.
    pub closing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Subscribe,
    Unsubscribe,
}

impl Wish {
    const fn method(self) -> &'static str {
        match self {
            Self::Subscribe => "SUBSCRIBE",
            Self::Unsubscribe => "UNSUBSCRIBE",
        }
    }
}

/// What a connection gives.
pub enum Heard {
    Text(tokio_tungstenite::tungstenite::Utf8Bytes),
    /// A ping, a pong, or something without meaning here.
    Nothing,
    /// The connection ended, and why.
    Ended(String),
}

impl Socket {
    /// Opens `base`/stream, to which streams are then subscribed.
    pub async fn open(base: &str, now: impl Fn() -> Instant) -> io::Result<Self> {
        tokio::time::timeout(CONNECT_TIMEOUT, Self::connect(base, now))
            .await
            .unwrap_or_else(|_| {
                Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "no connection within 5 seconds",
                ))
            })
    }

    async fn connect(base: &str, now: impl Fn() -> Instant) -> io::Result<Self> {
        let address = format!("{}/stream", base.trim_end_matches('/'));
        let uri: Uri = address.parse().map_err(io::Error::other)?;
        let io = dial(&uri).await?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES))
            .read_buffer_size(64 * 1024);
        let opened = tokio_tungstenite::client_async_with_config(address, io, Some(limits)).await;
        let (stream, _) = opened.map_err(io::Error::other)?;
        let now = now();
        Ok(Self {
            stream,
            opened: now,
            heard: now,
            said: now,
            pinged: None,
            to_say: VecDeque::new(),
            next_id: 1,
            answered: 0,
            refused: false,
            closing: false,
        })
    }

    /// The next thing heard; safe to drop before it comes.
    pub async fn hear(&mut self) -> Heard {
        match self.stream.next().await {
            Some(Ok(Message::Text(text))) => Heard::Text(text),
            Some(Ok(Message::Close(frame))) => {
                let why = frame
                    .map(|frame| frame.reason.to_string())
                    .filter(|reason| !reason.is_empty());
                Heard::Ended(why.unwrap_or_else(|| "the exchange closed the connection".to_owned()))
            }
            Some(Ok(_)) => Heard::Nothing,
            Some(Err(error)) => Heard::Ended(error.to_string()),
            None => Heard::Ended("the connection ended".to_owned()),
        }
    }

    /// Something came.
    pub fn note_heard(&mut self, now: Instant) {
        self.heard = now;
        self.pinged = None;
    }

    pub fn subscribe(&mut self, streams: Vec<String>) {
        self.to_say
            .extend(streams.into_iter().map(|stream| (Wish::Subscribe, stream)));
    }

    pub fn unsubscribe(&mut self, streams: Vec<String>) {
        self.to_say
            .extend(streams.into_iter().map(|stream| (Wish::Unsubscribe, stream)));
    }

    /// As many streams as go together into one message.
    fn next_message(&mut self) -> Option<String> {
        let wish = self.to_say.front()?.0;
        let same = self.to_say.iter().take_while(|(other, _)| *other == wish).count();
        let streams: Vec<String> = self
            .to_say
            .drain(..same.min(STREAMS_A_MESSAGE))
            .map(|(_, stream)| stream)
            .collect();
        let id = self.next_id;
        self.next_id += 1;
        Some(serde_json::json!({"method": wish.method(), "params": streams, "id": id}).to_string())
    }

    /// Whether everything has been said.
    pub fn is_idle(&self) -> bool {
        self.to_say.is_empty()
    }

    pub fn note_answer(&mut self, is_taken: bool) {
        self.answered += 1;
        self.refused |= !is_taken;
    }

    /// Whether the exchange has taken every subscription: before that nothing can be expected to come.
    pub fn is_settled(&self) -> bool {
        self.is_idle() && !self.refused && self.answered + 1 >= self.next_id
    }

    /// Whether the exchange has not answered a subscription for so long that it never will.
    pub fn is_ignored(&self, now: Instant, patience: Duration) -> bool {
        let waits = self.is_idle() && !self.refused && !self.is_settled();
        waits && now.duration_since(self.said) >= patience
    }

    /// Says the next thing that is to be said, if it may be said yet, and asks for a sign of life
    /// where there was none for long.
    pub async fn speak(&mut self, now: Instant, quiet: Duration) -> Result<(), String> {
        if now.duration_since(self.said) < BETWEEN_MESSAGES && self.next_id > 2 {
            return Ok(());
        }
        let message = match self.next_message() {
            Some(text) => Message::text(text),
            None if self.pinged.is_none() && now.duration_since(self.heard) >= quiet => {
                self.pinged = Some(now);
                Message::Ping(bytes::Bytes::new())
            }
            None => return Ok(()),
        };
        self.said = now;
        let sent = tokio::time::timeout(CONNECT_TIMEOUT, self.stream.send(message)).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the exchange does not read what it is sent".to_owned()),
        }
    }

    /// Whether a sign of life was asked for and did not come.
    pub fn is_dead(&self, now: Instant, patience: Duration) -> bool {
        self.pinged.is_some_and(|pinged| now.duration_since(pinged) >= patience)
    }
}
