//! Streams by name and their subscribers. A message is written once and its bytes are shared.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::ws::Utf8Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::faults::{DiffFault, Faults};
use crate::interval::Millis;

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

#[derive(Debug, Default)]
struct State {
    /// By name, such as `btcusdt@trade`; none is empty.
    streams: BTreeMap<String, Vec<Subscriber>>,
    connections: HashMap<u64, Subscriber>,
    /// Diffs held back to be sent after the next one, by stream.
    held: HashMap<String, String>,
}

#[derive(Debug)]
pub struct Hub {
    pub faults: Arc<Faults>,
    state: Mutex<State>,
    next_id: AtomicU64,
    sent: AtomicU64,
}

impl Hub {
    pub fn new(faults: Arc<Faults>) -> Self {
        Self { faults, state: Mutex::default(), next_id: AtomicU64::new(0), sent: AtomicU64::new(0) }
    }

    /// A time as the exchange's clock tells it.
    pub fn event_time(&self, time: Millis) -> Millis {
        time.saturating_add(self.faults.skew())
    }

    pub fn join(&self, is_combined: bool) -> (Subscriber, mpsc::Receiver<Utf8Bytes>) {
        let (messages, queue) = mpsc::channel(MAX_QUEUED);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let subscriber = Subscriber { id, messages, is_combined, cut: CancellationToken::new() };
        self.state.lock().connections.insert(id, subscriber.clone());
        (subscriber, queue)
    }

    pub fn leave(&self, subscriber: &Subscriber) {
        let mut state = self.state.lock();
        state.connections.remove(&subscriber.id);
        state.streams.retain(|_, subscribers| {
            subscribers.retain(|other| other.id != subscriber.id);
            !subscribers.is_empty()
        });
    }

    pub fn subscribe(&self, subscriber: &Subscriber, stream: &str) {
        let mut state = self.state.lock();
        let subscribers = state.streams.entry(stream.to_owned()).or_default();
        if subscribers.iter().all(|other| other.id != subscriber.id) {
            subscribers.push(subscriber.clone());
        }
    }

    pub fn unsubscribe(&self, subscriber: &Subscriber, stream: &str) {
        let mut state = self.state.lock();
        let Some(subscribers) = state.streams.get_mut(stream) else { return };
        subscribers.retain(|other| other.id != subscriber.id);
        if subscribers.is_empty() {
            state.streams.remove(stream);
        }
    }

    /// Silently ends all subscriptions to a symbol's streams.
    pub fn lose_streams(&self, symbol: &str) {
        let beginning = format!("{}@", symbol.to_lowercase());
        self.state.lock().streams.retain(|stream, _| !stream.starts_with(&beginning));
    }

    /// The streams with this beginning that have listeners.
    pub fn streams(&self, beginning: &str) -> Vec<String> {
        let state = self.state.lock();
        let streams = state.streams.range(beginning.to_owned()..).map(|(stream, _)| stream);
        streams.take_while(|stream| stream.starts_with(beginning)).cloned().collect()
    }

    pub fn has_listeners(&self, stream: &str) -> bool {
        self.state.lock().streams.contains_key(stream)
    }

    /// Sends what `write` returns, if anybody listens.
    pub fn publish(&self, stream: &str, write: impl FnOnce() -> Option<String>) {
        if !self.has_listeners(stream) || self.faults.is_muted(symbol_of(stream)) {
            return;
        }
        // `write` may lock a market whose holder publishes: the streams must not be locked meanwhile.
        let Some(text) = write() else { return };
        let raw = Utf8Bytes::from(text);
        let mut wrapped: Option<Utf8Bytes> = None;
        for subscriber in self.state.lock().streams.get(stream).into_iter().flatten() {
            let wrap = || format!("{{\"stream\":\"{stream}\",\"data\":{}}}", raw.as_str()).into();
            subscriber.send(match subscriber.is_combined {
                true => wrapped.get_or_insert_with(wrap).clone(),
                false => raw.clone(),
            });
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends a diff of a book, with the faults of diffs.
    pub fn publish_diff(&self, stream: &str, write: impl FnOnce() -> String) {
        if !self.has_listeners(stream) {
            return;
        }
        let fault = self.faults.next_diff(symbol_of(stream));
        if fault == Some(DiffFault::Drop) {
            return;
        }
        let text = write();
        let held = self.state.lock().held.remove(stream);
        let texts = match fault {
            // A diff behind a held one is sent at once, or the held one would wait for ever.
            Some(DiffFault::Swap) if held.is_none() => {
                self.state.lock().held.insert(stream.to_owned(), text);
                vec![]
            }
            Some(DiffFault::Duplicate) => vec![text.clone(), text],
            Some(DiffFault::Corrupt) => vec![CORRUPT.to_owned()],
            _ => vec![text],
        };
        for text in texts.into_iter().chain(held) {
            self.publish(stream, || Some(text));
        }
    }

    /// Ends every connection without a closing handshake.
    pub fn cut_all(&self) {
        self.state.lock().connections.values().for_each(|subscriber| subscriber.cut.cancel());
    }

    /// Whether some connection's queue is more than half full.
    pub fn is_congested(&self) -> bool {
        let is_behind = |one: &Subscriber| !one.cut.is_cancelled() && one.messages.capacity() < MAX_QUEUED / 2;
        self.state.lock().connections.values().any(is_behind)
    }

    /// Open connections, those ever accepted, and messages sent.
    pub fn counts(&self) -> (usize, u64, u64) {
        let open = self.state.lock().connections.len();
        (open, self.next_id.load(Ordering::Relaxed), self.sent.load(Ordering::Relaxed))
    }
}

fn symbol_of(stream: &str) -> &str {
    stream.split_once('@').map_or(stream, |(symbol, _)| symbol)
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
        hub.publish("a@trade", || {
            assert!(hub.state.try_lock().is_some());
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
        hub.publish("a@trade", || Some("1".to_owned()));
        hub.subscribe(&subscriber, "a@trade");
        hub.subscribe(&subscriber, "a@trade");
        hub.publish("a@trade", || Some("2".to_owned()));
        assert_eq!(queue.try_recv().expect("a message").as_str(), "2");
        assert!(queue.try_recv().is_err(), "once");
    }

    #[test]
    fn slow_connection_is_cut_off() {
        let hub = Hub::new(Arc::new(Faults::new(0)));
        let (subscriber, _queue) = hub.join(false);
        hub.subscribe(&subscriber, "a@trade");
        for _ in 0..MAX_QUEUED {
            hub.publish("a@trade", || Some("{}".to_owned()));
        }
        assert!(hub.is_congested() && !subscriber.cut.is_cancelled());
        hub.publish("a@trade", || Some("{}".to_owned()));
        assert!(subscriber.cut.is_cancelled() && !hub.is_congested());
    }
}
