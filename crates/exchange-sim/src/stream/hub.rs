//! Streams by name and who listens to them. A message is written once and its bytes are shared.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::faults::{DiffFate, Faults};
use crate::interval::Millis;

/// Messages that may wait for a connection. One that falls further behind is cut off, as a real exchange does.
pub const QUEUE: usize = 16_384;

/// The data of a diff as no exchange would send it.
const UNREADABLE: &str = r#"{"e":"depthUpdate","U":"five","b":7}"#;

/// The sending end of one connection.
#[derive(Debug, Clone)]
pub struct Peer {
    pub id: u64,
    pub messages: mpsc::Sender<Utf8Bytes>,
    /// Messages are wrapped as `{"stream":…,"data":…}`.
    pub combined: Arc<AtomicBool>,
    pub cut: CancellationToken,
}

impl Peer {
    fn send(&self, message: Utf8Bytes) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.messages.try_send(message) {
            tracing::warn!(connection = self.id, "a connection fell too far behind and was cut off");
            self.cut.cancel();
        }
    }
}

/// A message in the two forms that connections want, each made when first wanted.
struct Message<'a> {
    stream: &'a str,
    raw: Utf8Bytes,
    wrapped: Option<Utf8Bytes>,
}

impl Message<'_> {
    fn wrapped(&mut self) -> Utf8Bytes {
        let Self { stream, raw, wrapped } = self;
        wrapped
            .get_or_insert_with(|| format!("{{\"stream\":\"{stream}\",\"data\":{}}}", raw.as_str()).into())
            .clone()
    }
}

#[derive(Debug)]
pub struct Hub {
    streams: RwLock<HashMap<String, Vec<Peer>>>,
    peers: Mutex<HashMap<u64, Peer>>,
    /// Diffs held back to be sent after the next one, by stream.
    held: Mutex<HashMap<String, String>>,
    faults: Arc<Faults>,
    next_id: AtomicU64,
    sent: AtomicU64,
    accepted: AtomicU64,
}

impl Hub {
    pub fn new(faults: Arc<Faults>) -> Self {
        Self {
            streams: RwLock::default(),
            peers: Mutex::default(),
            held: Mutex::default(),
            faults,
            next_id: AtomicU64::new(1),
            sent: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
        }
    }

    /// A time of the exchange as events carry it.
    pub fn event_time(&self, time: Millis) -> Millis {
        time.saturating_add(self.faults.skew_millis())
    }

    pub fn join(&self, combined: bool) -> (Peer, mpsc::Receiver<Utf8Bytes>) {
        let (messages, queue) = mpsc::channel(QUEUE);
        let peer = Peer {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            messages,
            combined: Arc::new(AtomicBool::new(combined)),
            cut: CancellationToken::new(),
        };
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.lock_peers().insert(peer.id, peer.clone());
        (peer, queue)
    }

    pub fn leave<'a>(&self, peer: &Peer, streams: impl Iterator<Item = &'a String>) {
        self.lock_peers().remove(&peer.id);
        for stream in streams {
            self.unsubscribe(peer, stream);
        }
    }

    fn lock_peers(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn subscribe(&self, peer: &Peer, stream: &str) {
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        streams.entry(stream.to_owned()).or_default().push(peer.clone());
    }

    pub fn unsubscribe(&self, peer: &Peer, stream: &str) {
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(peers) = streams.get_mut(stream) {
            peers.retain(|other| other.id != peer.id);
            if peers.is_empty() {
                streams.remove(stream);
            }
        }
    }

    /// Nobody has the streams of a symbol any more, and nobody is told.
    pub fn lose(&self, symbol: &str) {
        let name = symbol.to_lowercase();
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream, _| stream.split('@').next() != Some(&name));
    }

    pub fn has_listeners(&self, stream: &str) -> bool {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.contains_key(stream)
    }

    /// Nobody listens to anything.
    pub fn is_idle(&self) -> bool {
        self.streams.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Sends what `write` makes, if anybody listens; an empty text is nothing to send.
    pub fn publish(&self, stream: &str, write: impl FnOnce() -> String) {
        if self.faults.is_muted(stream) {
            return;
        }
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        let Some(peers) = streams.get(stream) else {
            return;
        };
        let text = write();
        if text.is_empty() {
            return;
        }
        let mut message = Message {
            stream,
            raw: text.into(),
            wrapped: None,
        };
        for peer in peers {
            let combined = peer.combined.load(Ordering::Relaxed);
            peer.send(if combined {
                message.wrapped()
            } else {
                message.raw.clone()
            });
        }
        self.sent.fetch_add(peers.len() as u64, Ordering::Relaxed);
    }

    /// A diff of a book, to which faults may happen.
    pub fn publish_diff(&self, symbol: &str, stream: &str, write: impl FnOnce() -> String) {
        if !self.has_listeners(stream) {
            return;
        }
        let fate = self.faults.next_diff(symbol);
        if fate == DiffFate::Drop {
            return;
        }
        let text = write();
        let held = self.take_held(stream);
        match fate {
            // Two in a row that shall change places: the first goes out behind the second's successor with it.
            DiffFate::Swap if held.is_none() => self.hold(stream, text),
            DiffFate::Duplicate => {
                self.publish(stream, || text.clone());
                self.publish(stream, || text);
            }
            DiffFate::Garble => self.publish(stream, || UNREADABLE.to_owned()),
            _ => self.publish(stream, || text),
        }
        if let Some(held) = held {
            self.publish(stream, || held);
        }
    }

    fn take_held(&self, stream: &str) -> Option<String> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(stream)
    }

    fn hold(&self, stream: &str, text: String) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(stream.to_owned(), text);
    }

    /// Ends every connection without a closing handshake.
    pub fn cut_all(&self) {
        self.lock_peers().values().for_each(|peer| peer.cut.cancel());
    }

    /// Whether some connection has more than half of its queue to send yet.
    pub fn congested(&self) -> bool {
        self.lock_peers()
            .values()
            .any(|peer| !peer.cut.is_cancelled() && peer.messages.capacity() < QUEUE / 2)
    }

    pub fn connections(&self) -> usize {
        self.lock_peers().len()
    }

    pub fn connections_accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub fn messages_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}
