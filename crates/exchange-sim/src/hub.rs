//! Streams by name and their subscribers. A message is written once and its bytes are shared.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::faults::{DiffFault, Faults};
use crate::interval::Millis;
use crate::lock::lock;

/// Messages that may wait for a connection. Like the real exchange, this one cuts off a connection that lags further.
pub const MAX_QUEUED: usize = 16_384;

/// The data of a corrupted diff.
const CORRUPT: &str = r#"{"e":"depthUpdate","U":"five","b":7}"#;

/// The sending end of one connection.
#[derive(Debug, Clone)]
pub struct Subscriber {
    id: u64,
    messages: mpsc::Sender<Utf8Bytes>,
    /// Messages are wrapped as `{"stream":…,"data":…}`.
    pub is_combined: bool,
    pub cut: CancellationToken,
}

impl Subscriber {
    fn send(&self, message: Utf8Bytes) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.messages.try_send(message) {
            tracing::warn!(connection = self.id, "cut off a connection that reads too slowly");
            self.cut.cancel();
        }
    }
}

/// Subscribers by symbol and kind of stream: `btcusdt` and `trade`.
type Streams = HashMap<String, HashMap<String, Vec<Subscriber>>>;

#[derive(Debug)]
pub struct Hub {
    streams: RwLock<Streams>,
    subscribers: Mutex<HashMap<u64, Subscriber>>,
    /// Diffs held back to be sent after the next one, by symbol and kind.
    held: Mutex<HashMap<(String, String), String>>,
    faults: Arc<Faults>,
    next_id: AtomicU64,
    sent: AtomicU64,
}

/// The symbol and the kind of a stream.
fn split(stream: &str) -> (&str, &str) {
    stream.split_once('@').unwrap_or((stream, ""))
}

impl Hub {
    pub fn new(faults: Arc<Faults>) -> Self {
        Self {
            streams: RwLock::default(),
            subscribers: Mutex::default(),
            held: Mutex::default(),
            faults,
            next_id: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }

    /// How wrong a fault makes the exchange's clock.
    pub fn skew(&self) -> Millis {
        self.faults.skew()
    }

    /// A time as the exchange's clock tells it.
    pub fn event_time(&self, time: Millis) -> Millis {
        time.saturating_add(self.skew())
    }

    pub fn join(&self, is_combined: bool) -> (Subscriber, mpsc::Receiver<Utf8Bytes>) {
        let (messages, queue) = mpsc::channel(MAX_QUEUED);
        let subscriber = Subscriber {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            messages,
            is_combined,
            cut: CancellationToken::new(),
        };
        lock(&self.subscribers).insert(subscriber.id, subscriber.clone());
        (subscriber, queue)
    }

    pub fn leave<'a>(&self, subscriber: &Subscriber, streams: impl Iterator<Item = &'a String>) {
        lock(&self.subscribers).remove(&subscriber.id);
        for stream in streams {
            self.unsubscribe(subscriber, stream);
        }
    }

    fn read_streams(&self) -> RwLockReadGuard<'_, Streams> {
        self.streams.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_streams(&self) -> RwLockWriteGuard<'_, Streams> {
        self.streams.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn subscribe(&self, subscriber: &Subscriber, stream: &str) {
        let (symbol, kind) = split(stream);
        let mut streams = self.write_streams();
        let kinds = streams.entry(symbol.to_owned()).or_default();
        let subscribers = kinds.entry(kind.to_owned()).or_default();
        if subscribers.iter().all(|other| other.id != subscriber.id) {
            subscribers.push(subscriber.clone());
        }
    }

    pub fn unsubscribe(&self, subscriber: &Subscriber, stream: &str) {
        let (symbol, kind) = split(stream);
        let mut streams = self.write_streams();
        let Some(kinds) = streams.get_mut(symbol) else { return };
        if let Some(subscribers) = kinds.get_mut(kind) {
            subscribers.retain(|other| other.id != subscriber.id);
        }
        kinds.retain(|_, subscribers| !subscribers.is_empty());
        if kinds.is_empty() {
            streams.remove(symbol);
        }
    }

    /// Silently ends all subscriptions to a symbol's streams.
    pub fn lose_streams(&self, symbol: &str) {
        self.write_streams().remove(&symbol.to_lowercase());
    }

    /// The kinds of a symbol's streams that have listeners.
    pub fn kinds(&self, symbol: &str) -> Vec<String> {
        let streams = self.read_streams();
        streams.get(symbol).map_or_else(Vec::new, |kinds| kinds.keys().cloned().collect())
    }

    pub fn has_listeners(&self, symbol: &str, kind: &str) -> bool {
        let streams = self.read_streams();
        streams.get(symbol).is_some_and(|kinds| kinds.contains_key(kind))
    }

    /// Sends what `write` returns, if anybody listens.
    pub fn publish(&self, symbol: &str, kind: &str, write: impl FnOnce() -> Option<String>) {
        if !self.has_listeners(symbol, kind) || self.faults.is_muted(symbol) {
            return;
        }
        // `write` may lock a market whose holder publishes: the streams must not be locked meanwhile.
        let Some(text) = write() else { return };
        let raw = Utf8Bytes::from(text);
        let mut wrapped: Option<Utf8Bytes> = None;
        let streams = self.read_streams();
        let subscribers = streams.get(symbol).and_then(|kinds| kinds.get(kind));
        for subscriber in subscribers.into_iter().flatten() {
            let wrap = || format!("{{\"stream\":\"{symbol}@{kind}\",\"data\":{}}}", raw.as_str()).into();
            subscriber.send(match subscriber.is_combined {
                true => wrapped.get_or_insert_with(wrap).clone(),
                false => raw.clone(),
            });
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends a diff of a book, with the faults of diffs.
    pub fn publish_diff(&self, symbol: &str, kind: &str, write: impl FnOnce() -> String) {
        if !self.has_listeners(symbol, kind) {
            return;
        }
        let fault = self.faults.next_diff(symbol);
        if fault == DiffFault::Drop {
            return;
        }
        let text = write();
        let key = (symbol.to_owned(), kind.to_owned());
        let held = lock(&self.held).remove(&key);
        let texts = match fault {
            // A diff behind a held one is sent at once, or the held one would wait for ever.
            DiffFault::Swap if held.is_none() => {
                lock(&self.held).insert(key, text);
                vec![]
            }
            DiffFault::Duplicate => vec![text.clone(), text],
            DiffFault::Corrupt => vec![CORRUPT.to_owned()],
            _ => vec![text],
        };
        for text in texts.into_iter().chain(held) {
            self.publish(symbol, kind, || Some(text));
        }
    }

    /// Ends every connection without a closing handshake.
    pub fn cut_all(&self) {
        lock(&self.subscribers).values().for_each(|subscriber| subscriber.cut.cancel());
    }

    /// Whether some connection's queue is more than half full.
    pub fn is_congested(&self) -> bool {
        let is_behind = |one: &Subscriber| !one.cut.is_cancelled() && one.messages.capacity() < MAX_QUEUED / 2;
        lock(&self.subscribers).values().any(is_behind)
    }

    pub fn connections(&self) -> usize {
        lock(&self.subscribers).len()
    }

    pub fn connections_accepted(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
    }

    pub fn messages_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An order that trades while another client subscribes must not stop the exchange.
    #[test]
    fn streams_are_not_locked_while_a_message_is_written() {
        let hub = Hub::new(Arc::new(Faults::new(0)));
        let (subscriber, mut queue) = hub.join(true);
        hub.subscribe(&subscriber, "a@trade");
        hub.publish("a", "trade", || {
            assert!(hub.streams.try_write().is_ok());
            Some("{}".to_owned())
        });
        let message = queue.try_recv().expect("a message");
        assert_eq!(message.as_str(), r#"{"stream":"a@trade","data":{}}"#);
    }

    #[test]
    fn lost_stream_comes_back_with_a_subscription() {
        let hub = Hub::new(Arc::new(Faults::new(0)));
        let (subscriber, mut queue) = hub.join(false);
        hub.subscribe(&subscriber, "a@trade");
        hub.lose_streams("A");
        hub.publish("a", "trade", || Some("1".to_owned()));
        hub.subscribe(&subscriber, "a@trade");
        hub.subscribe(&subscriber, "a@trade");
        hub.publish("a", "trade", || Some("2".to_owned()));
        assert_eq!(queue.try_recv().expect("a message").as_str(), "2");
        assert!(queue.try_recv().is_err(), "once");
    }

    #[test]
    fn slow_connection_is_cut_off() {
        let hub = Hub::new(Arc::new(Faults::new(0)));
        let (subscriber, _queue) = hub.join(false);
        hub.subscribe(&subscriber, "a@trade");
        for _ in 0..MAX_QUEUED {
            hub.publish("a", "trade", || Some("{}".to_owned()));
        }
        assert!(hub.is_congested() && !subscriber.cut.is_cancelled());
        hub.publish("a", "trade", || Some("{}".to_owned()));
        assert!(subscriber.cut.is_cancelled() && !hub.is_congested());
    }
}
