//! `/live`: pushes changes to open pages. All viewers of one document share one feed, which checks it about once a
//! second while somebody watches, and sends the regions that changed.

mod frame;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures::stream;
use http::{StatusCode, Uri};
use parking_lot::Mutex;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Document, DocumentId, Error, ErrorKind, Links, Principal, Result};
use tribune_page::View;

use super::sources;
use crate::contract::fetch_document;
use crate::identity::Caller;
use crate::request::path_after;
use crate::response::{self, problem};
use crate::service::Service;
use frame::Frame;

/// How often a feed checks for changes.
const PERIOD: Duration = Duration::from_secs(1);
/// Pages that signed-in users may keep live at once; anonymous callers have as many of their own.
const MAX_VIEWERS: usize = 256;
/// Documents that are checked for them: each costs one view per second, and some of the exchange's rate limit.
const MAX_FEEDS: usize = 64;
const BUSY: &str = "Too many live pages; this page shows the state when it was opened";
const NOT_LIVE: &str = "This page has no live updates";

/// The feeds that somebody watches.
pub struct Live {
    feeds: Mutex<HashMap<String, watch::Sender<FeedState>>>,
    user_slots: Arc<Semaphore>,
    anonymous_slots: Arc<Semaphore>,
}

/// What a feed knows of its page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum FeedState {
    /// The first check has not finished.
    #[default]
    Starting,
    Shown(Frame),
    /// There is nothing to watch: the feed has ended.
    Refused(ErrorKind, String),
}

impl Live {
    pub fn new() -> Self {
        Self {
            feeds: Mutex::default(),
            user_slots: Arc::new(Semaphore::new(MAX_VIEWERS)),
            anonymous_slots: Arc::new(Semaphore::new(MAX_VIEWERS)),
        }
    }

    /// Streams what `check` sees. `name` is the same for everybody who would see the same. Nothing is checked before
    /// there is capacity for it.
    async fn watch<F>(
        self: &Arc<Self>,
        name: String,
        viewer: Viewer,
        service: &Arc<Service>,
        check: impl Fn() -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = Result<Frame>> + Send + 'static,
    {
        let slots = if viewer.is_user {
            &self.user_slots
        } else {
            &self.anonymous_slots
        };
        let slot = slots.clone().try_acquire_owned().ok();
        let Some((slot, mut states)) = slot.and_then(|slot| Some((slot, self.feed(name, service, check)?))) else {
            return problem::with_status(StatusCode::SERVICE_UNAVAILABLE, "busy", BUSY);
        };
        let first = states.wait_for(|state| *state != FeedState::Starting).await;
        match first.map(|state| state.clone()) {
            Ok(FeedState::Refused(kind, message)) => return problem::new(kind, &message),
            Ok(_) => {}
            // The feed ended before its first check: the server is stopping.
            Err(_) => return problem::with_status(StatusCode::SERVICE_UNAVAILABLE, "busy", BUSY),
        }
        let subscription = Subscription {
            states,
            seen: Frame::default(),
            keep_alive: service.settings.keep_alive,
            stopping: service.stopping.clone(),
            until: tokio::time::Instant::now() + service.settings.max_sse,
            once: viewer.once,
            is_over: false,
            _slot: slot,
        };
        let events = stream::unfold(subscription, |mut subscription| async move {
            let event = subscription.next().await?;
            Some((Ok::<_, Infallible>(event), subscription))
        });
        response::event_stream(Body::from_stream(events))
    }

    /// Subscribes to the feed of this name, starting it if need be; `None` if there are too many.
    fn feed<F>(
        self: &Arc<Self>,
        name: String,
        service: &Arc<Service>,
        check: impl Fn() -> F + Send + 'static,
    ) -> Option<watch::Receiver<FeedState>>
    where
        F: Future<Output = Result<Frame>> + Send + 'static,
    {
        let mut feeds = self.feeds.lock();
        if let Some(feed) = feeds.get(&name) {
            return Some(feed.subscribe());
        }
        if feeds.len() >= MAX_FEEDS {
            return None;
        }
        let (sender, states) = watch::channel(FeedState::default());
        feeds.insert(name.clone(), sender.clone());
        let feed = Feed {
            live: self.clone(),
            name,
            sender,
        };
        tokio::spawn(feed.run(check, service.stopping.clone()));
        Some(states)
    }
}

/// One page that is checked for everybody who watches it.
struct Feed {
    live: Arc<Live>,
    name: String,
    sender: watch::Sender<FeedState>,
}

impl Feed {
    async fn run<F>(self, check: impl Fn() -> F, stopping: CancellationToken)
    where
        F: Future<Output = Result<Frame>> + Send + 'static,
    {
        let mut is_first = true;
        while !self.close_if_unwatched() && !stopping.is_cancelled() {
            let state = match check().await {
                Ok(frame) => FeedState::Shown(frame),
                Err(error) if is_first && is_refusal(error.kind()) => {
                    let refused = FeedState::Refused(error.kind(), error.message().to_owned());
                    self.sender.send_replace(refused);
                    return;
                }
                Err(error) => FeedState::Shown(Frame::failed(error.message())),
            };
            is_first = false;
            self.sender.send_if_modified(|last| {
                let is_new = *last != state;
                if is_new {
                    *last = state;
                }
                is_new
            });
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Removes the feed if nobody watches it; nobody can subscribe in between.
    fn close_if_unwatched(&self) -> bool {
        let mut feeds = self.live.feeds.lock();
        let is_unwatched = self.sender.receiver_count() == 0;
        if is_unwatched {
            feeds.remove(&self.name);
        }
        is_unwatched
    }
}

/// Also after a panic in a check.
impl Drop for Feed {
    fn drop(&mut self) {
        let mut feeds = self.live.feeds.lock();
        // Another feed may have started under this name.
        if feeds
            .get(&self.name)
            .is_some_and(|feed| feed.same_channel(&self.sender))
        {
            feeds.remove(&self.name);
        }
    }
}

fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::InvalidArgument)
}

/// Who watches, and whether for one frame only.
#[derive(Debug, Clone, Copy)]
struct Viewer {
    is_user: bool,
    once: bool,
}

impl Viewer {
    fn new(caller: &Caller, uri: &Uri) -> Self {
        Self {
            is_user: caller.principal != Principal::Anonymous,
            once: uri.query() == Some("once=1"),
        }
    }
}

/// One page that receives events.
struct Subscription {
    states: watch::Receiver<FeedState>,
    seen: Frame,
    keep_alive: Duration,
    stopping: CancellationToken,
    /// Browsers reconnect by themselves.
    until: tokio::time::Instant,
    /// Ends after the first event.
    once: bool,
    is_over: bool,
    _slot: OwnedSemaphorePermit,
}

impl Subscription {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over {
                return None;
            }
            let FeedState::Shown(frame) = self.states.borrow_and_update().clone() else {
                return None;
            };
            let event = frame.since(&self.seen);
            self.seen = frame;
            if event.is_some() {
                self.is_over = self.once;
                return event;
            }
            tokio::select! {
                () = self.stopping.cancelled() => return None,
                () = tokio::time::sleep_until(self.until) => return None,
                changed = self.states.changed() => changed.ok()?,
                () = tokio::time::sleep(self.keep_alive) => return Some(Bytes::from_static(b": keep-alive\n\n")),
            }
        }
    }
}

/// The sources, as the start page shows them.
pub(crate) async fn overview(
    State(service): State<Arc<Service>>,
    State(live): State<Arc<Live>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Response {
    let viewer = Viewer::new(&caller, &uri);
    let name = if viewer.is_user { "sources of users" } else { "sources" };
    let sources_of = service.clone();
    let check = move || {
        let regions = vec![sources::region(&sources_of, viewer.is_user)];
        async move { Ok(Frame::new(regions)) }
    };
    live.watch(name.to_owned(), viewer, &service, check).await
}

/// A live document that everybody may see.
pub(crate) async fn document(
    State(service): State<Arc<Service>>,
    State(live): State<Arc<Live>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Response {
    let id = path_after(&uri, "/live/");
    let is_live = |id: &DocumentId| {
        let mut sources = service.sources().iter();
        sources.any(|source| source.owns(id.scheme()) && source.facts().live && !source.is_personal())
    };
    let Some(id) = DocumentId::parse(&id).ok().filter(is_live) else {
        return problem::with_status(StatusCode::NOT_FOUND, "not_found", NOT_LIVE);
    };
    let name = id.as_str().to_owned();
    let watched = Arc::new(WatchedDocument {
        service: service.clone(),
        id,
        document: OnceCell::new(),
    });
    let check = move || {
        let watched = watched.clone();
        async move { watched.frame().await }
    };
    live.watch(name, Viewer::new(&caller, &uri), &service, check).await
}

struct WatchedDocument {
    service: Arc<Service>,
    id: DocumentId,
    /// Fetched once: what changes comes from its view.
    document: OnceCell<Document>,
}

impl WatchedDocument {
    async fn frame(&self) -> Result<Frame> {
        let service = &self.service;
        let deadline = service.clock.monotonic() + service.settings.source_timeout;
        let cx = CallContext::new(Principal::Anonymous, deadline).uncited();
        let view = async {
            let sources = service.sources();
            let fetch = || async {
                let found = fetch_document(sources, self.id.as_str(), &cx).await?;
                found.ok_or_else(|| Error::not_found("There is no such document"))
            };
            let document = self.document.get_or_try_init(fetch).await?;
            let owner = sources.iter().find(|source| source.owns(document.id.scheme()));
            match owner {
                Some(owner) => owner.view(document, None, &cx).await,
                None => Ok(None),
            }
        };
        let view = tokio::time::timeout(service.settings.source_timeout, view).await;
        match view.map_err(|_| Error::unavailable("The source timed out"))?? {
            Some(View::Board(board)) if board.is_live => {
                let links = Links::new(service.links.path_prefix());
                Ok(Frame::new(tribune_page::regions(&board, &|id| links.href(id))))
            }
            _ => Err(Error::not_found(NOT_LIVE)),
        }
    }
}
