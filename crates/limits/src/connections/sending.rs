//! Bytes of responses that clients have not taken yet: bounded for all, and for one connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use bytes::{Buf, Bytes};
use http::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Activity;

/// Larger bodies are sent in pieces, so that what a client does not read can be dropped.
const PIECE: usize = 64 * 1024;
/// One connection may have this part of the budget.
const CONNECTION_PART: usize = 8;

/// Documents that are made into bodies at once, over all connections. Each takes its memory before it is counted.
const MAX_MAKING: usize = 8;

/// The budget of all connections.
pub struct Budget {
    /// 0 limits nothing.
    max: usize,
    used: AtomicUsize,
    making: Arc<Semaphore>,
}

/// Leave to make one document into a body. It stays in the extensions of the response until the body is counted.
#[derive(Clone)]
pub struct Making {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Budget {
    pub fn new(max: usize) -> Self {
        Self { max, used: AtomicUsize::new(0), making: Arc::new(Semaphore::new(MAX_MAKING)) }
    }

    /// Waits until a document may be made into a body.
    pub async fn make(&self) -> Option<Making> {
        let permit = self.making.clone().acquire_owned().await.ok()?;
        Some(Making { _permit: Arc::new(permit) })
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn hold(self: &Arc<Self>, bytes: usize, activity: &Arc<Activity>) -> Held {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        activity.held.fetch_add(bytes, Ordering::Relaxed);
        Held { bytes, budget: self.clone(), activity: activity.clone() }
    }

    /// `None` if the budget, or the connection's part of it, is used up. A single body fits always, however large.
    fn try_hold(self: &Arc<Self>, bytes: usize, activity: &Arc<Activity>) -> Option<Held> {
        let held = self.hold(bytes, activity);
        let fits = |now: usize, max: usize| self.max == 0 || now <= max || now == bytes;
        if fits(self.used(), self.max) && fits(activity.held.load(Ordering::Relaxed), self.max / CONNECTION_PART) {
            return Some(held);
        }
        drop(held);
        activity.is_full.store(true, Ordering::Relaxed);
        None
    }
}

/// A part of the budget.
struct Held {
    bytes: usize,
    budget: Arc<Budget>,
    activity: Arc<Activity>,
}

impl Held {
    fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { bytes, budget: self.budget.clone(), activity: self.activity.clone() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.activity.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.activity.is_full.store(false, Ordering::Relaxed);
    }
}

/// One request, from its arrival until its response has left.
pub struct Sending {
    pub activity: Arc<Activity>,
    /// The client has to read before more is sent.
    is_unread: AtomicBool,
    progress: AtomicU64,
    /// The progress when it was last looked at.
    seen: AtomicU64,
    /// What is left of a large frame.
    rest: Mutex<Option<Rest>>,
}

struct Rest {
    bytes: Bytes,
    held: Option<Held>,
}

impl Sending {
    pub(crate) fn new(activity: Arc<Activity>) -> Self {
        Self {
            activity,
            is_unread: AtomicBool::new(false),
            progress: AtomicU64::new(0),
            seen: AtomicU64::new(u64::MAX),
            rest: Mutex::default(),
        }
    }

    fn progressed(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
        self.activity.progressed();
    }

    fn set_unread(&self, is_unread: bool) {
        if self.is_unread.swap(is_unread, Ordering::Relaxed) != is_unread {
            self.activity.set_unread(is_unread);
        }
    }

    /// Drops what is left if the client has taken nothing since the last time.
    pub(crate) fn drop_if_stalled(&self) -> bool {
        let progress = self.progress.load(Ordering::Relaxed);
        let is_stalled =
            self.seen.swap(progress, Ordering::Relaxed) == progress && self.is_unread.load(Ordering::Relaxed);
        if is_stalled {
            drop(self.rest.lock().take());
        }
        is_stalled
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.set_unread(false);
        self.activity.ended();
    }
}

/// A response's body on its way to the client.
pub struct Sent {
    inner: Body,
    sending: Arc<Sending>,
    /// `None` for what is too short to count.
    budget: Option<Arc<Budget>>,
    /// For what `inner` has not given yet, if its size is known.
    held: Option<Held>,
    /// How much of the last frame waits.
    left: usize,
}

impl Sent {
    /// The response to send, or `None` if there is no room for it.
    pub fn new(mut response: Response<Body>, sending: Arc<Sending>, budget: &Arc<Budget>) -> Option<Response<Self>> {
        let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
        let held = match size {
            Some(size) => Some(budget.try_hold(size, &sending.activity)?),
            None => None,
        };
        drop(response.extensions_mut().remove::<Making>());
        Some(response.map(|inner| Self { inner, sending, budget: Some(budget.clone()), held, left: 0 }))
    }

    /// A short response, for which there is always room.
    pub fn short(response: Response<Body>, sending: Arc<Sending>) -> Response<Self> {
        response.map(|inner| Self { inner, sending, budget: None, held: None, left: 0 })
    }

    /// The part of the budget for a frame.
    fn hold(&mut self, bytes: usize) -> Option<Held> {
        match &mut self.held {
            Some(held) => Some(held.split(bytes)),
            None => self.budget.as_ref().map(|budget| budget.hold(bytes, &self.sending.activity)),
        }
    }

    fn chunk(&self, bytes: Bytes, held: Option<Held>) -> Chunk {
        self.sending.set_unread(true);
        Chunk { bytes, _held: held, sending: self.sending.clone() }
    }

    /// The next piece of the last frame; an error if the rest was dropped.
    fn piece(&mut self) -> Result<Chunk, Stalled> {
        let mut waiting = self.sending.rest.lock();
        let rest = waiting.as_mut().ok_or(Stalled)?;
        let length = rest.bytes.len().min(PIECE);
        // A copy: a slice would keep the memory of the whole frame.
        let piece = Bytes::copy_from_slice(&rest.bytes[..length]);
        rest.bytes.advance(length);
        let held = rest.held.as_mut().map(|held| held.split(length));
        self.left = rest.bytes.len();
        if self.left == 0 {
            *waiting = None;
        }
        drop(waiting);
        Ok(self.chunk(piece, held))
    }
}

/// A client that hangs up leaves nothing behind.
impl Drop for Sent {
    fn drop(&mut self) {
        drop(self.sending.rest.lock().take());
    }
}

/// The client has not read for too long.
#[derive(Debug, thiserror::Error)]
#[error("the client has not read its response for too long")]
pub struct Stalled;

impl HttpBody for Sent {
    type Data = Chunk;
    type Error = axum::BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Chunk>, Self::Error>>> {
        let this = self.get_mut();
        // Whoever asks for more has sent what they had, or has room for it.
        this.sending.set_unread(false);
        this.sending.progressed();
        if this.left > 0 {
            return Poll::Ready(Some(this.piece().map(Frame::data).map_err(Into::into)));
        }
        let frame = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let frame = match frame.into_data() {
            Ok(bytes) if bytes.len() > PIECE => {
                let held = this.hold(bytes.len());
                *this.sending.rest.lock() = Some(Rest { bytes, held });
                this.sending.activity.waits(&this.sending);
                return Poll::Ready(Some(this.piece().map(Frame::data).map_err(Into::into)));
            }
            Ok(bytes) => {
                let held = this.hold(bytes.len());
                Frame::data(this.chunk(bytes, held))
            }
            Err(other) => match other.into_trailers() {
                Ok(trailers) => Frame::trailers(trailers),
                Err(_) => return Poll::Ready(None),
            },
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, left) = (self.inner.size_hint(), self.left as u64);
        let mut hint = SizeHint::new();
        // The upper bound first: it must never be below the lower one.
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + left);
        }
        hint.set_lower(inner.lower() + left);
        hint
    }
}

/// Bytes that the connection has not sent yet.
pub struct Chunk {
    bytes: Bytes,
    _held: Option<Held>,
    sending: Arc<Sending>,
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.sending.progressed();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    const DOCUMENT: usize = 5 * PIECE;

    struct Connection {
        budget: Arc<Budget>,
        activity: Arc<Activity>,
    }

    impl Connection {
        fn new(budget: &Arc<Budget>) -> Self {
            Self { budget: budget.clone(), activity: Arc::default() }
        }

        fn respond(&self) -> Option<Sent> {
            let response = Response::new(Body::from(vec![7; DOCUMENT]));
            Some(Sent::new(response, self.activity.begin(), &self.budget)?.into_body())
        }
    }

    async fn next(sent: &mut Sent) -> Option<Result<Chunk, axum::BoxError>> {
        let frame = poll_fn(|cx| Pin::new(&mut *sent).poll_frame(cx)).await?;
        Some(frame.map(|frame| frame.into_data().ok().expect("data")))
    }

    #[tokio::test]
    async fn bytes_are_held_until_they_are_taken() {
        let budget = Arc::new(Budget::new(100 * DOCUMENT));
        let connection = Connection::new(&budget);
        let mut sent = connection.respond().expect("room");
        assert_eq!(sent.size_hint().exact(), Some(DOCUMENT as u64));
        let mut taken = 0;
        while let Some(chunk) = next(&mut sent).await {
            assert_eq!(budget.used(), DOCUMENT - taken);
            taken += chunk.expect("a piece").remaining();
            assert_eq!(sent.size_hint().exact(), Some((DOCUMENT - taken) as u64));
        }
        assert_eq!((taken, budget.used()), (DOCUMENT, 0));
        assert!(sent.is_end_stream());
    }

    #[tokio::test]
    async fn one_connection_gets_part_of_the_budget() {
        let budget = Arc::new(Budget::new(2 * CONNECTION_PART * DOCUMENT));
        let (greedy, other) = (Connection::new(&budget), Connection::new(&budget));
        let held = [greedy.respond(), greedy.respond()];
        assert!(held.iter().all(Option::is_some) && greedy.respond().is_none());
        assert!(other.respond().is_some());
        drop(held);
        assert!(greedy.respond().is_some());
        assert_eq!(budget.used(), 0);
    }

    /// Leave to make a body, if there is some now.
    async fn make(budget: &Budget) -> Option<Making> {
        tokio::time::timeout(Duration::ZERO, budget.make()).await.ok().flatten()
    }

    #[tokio::test]
    async fn few_documents_are_in_the_making() {
        let budget = Arc::new(Budget::new(2 * DOCUMENT));
        let mut making = Vec::new();
        for _ in 0..MAX_MAKING {
            making.push(make(&budget).await.expect("room"));
        }
        let greedy = Connection::new(&budget);
        let held = greedy.respond();
        // A body that is refused makes room, and so does one that is counted.
        for (size, is_sent) in [(2 * DOCUMENT, false), (1, true)] {
            assert!(make(&budget).await.is_none());
            let mut response = Response::new(Body::from(vec![7; size]));
            response.extensions_mut().insert(making.pop().expect("one in the making"));
            let sent = Sent::new(response, Connection::new(&budget).activity.begin(), &budget);
            assert_eq!(sent.is_some(), is_sent);
            making.push(make(&budget).await.expect("room"));
        }
        drop(held);
    }

    #[tokio::test]
    async fn unread_rest_is_dropped() {
        let budget = Arc::new(Budget::new(100 * DOCUMENT));
        let connection = Connection::new(&budget);
        let mut sent = connection.respond().expect("room");
        let unread = next(&mut sent).await;
        assert!(!sent.sending.drop_if_stalled(), "it was just given");
        assert!(sent.sending.drop_if_stalled());
        assert_eq!(budget.used(), PIECE);
        drop(unread);
        assert_eq!(budget.used(), 0);
        let error = next(&mut sent).await.expect("an end").err().expect("an error");
        assert!(error.is::<Stalled>());
    }
}
