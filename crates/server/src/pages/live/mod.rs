//! `/live`: pushes changes to open pages. All viewers of one document share one feed, which checks it about once a
//! second while somebody watches, and sends the regions that changed.

mod frame;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http::{StatusCode, Uri};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Document, DocumentId, Error, ErrorKind, Links, Principal, Result, Scope, Source};
use tribune_page::View;

use super::sources;
use crate::contract::fetch_document;
use crate::identity::Caller;
use crate::request::path_after;
use crate::response::{self, Refusal, problem};
use crate::service::Service;
use frame::Frame;
use tribune_limits::Place;

/// How often a feed checks for changes.
const PERIOD: Duration = Duration::from_secs(1);
/// Pages that signed-in users may keep live at once; anonymous callers have as many of their own.
const MAX_VIEWERS: usize = 256;
/// Documents that are checked for them: each costs one view per second, and may cost requests to another server.
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

    /// Streams what changes. Nothing is checked before there is capacity for it.
    async fn stream(
        self: &Arc<Self>,
        service: &Arc<Service>,
        watched: Watched,
        caller: &Caller,
        uri: &Uri,
    ) -> Result<Response, Refusal> {
        let slots = match caller.principal {
            Principal::Anonymous => &self.anonymous_slots,
            _ => &self.user_slots,
        };
        let busy = || problem::with_status(StatusCode::SERVICE_UNAVAILABLE, "busy", BUSY);
        let place = service.limits.stream(&caller.principal, caller.peer)?;
        let slot = slots.clone().try_acquire_owned().map_err(|_| busy())?;
        let mut states = self.feed(service, watched).ok_or_else(busy)?;
        let first = states.wait_for(|state| *state != FeedState::Starting).await;
        // The feed ends before its first check if the server is stopping.
        let first = first.map_err(|_| busy())?.clone();
        if let FeedState::Refused(kind, message) = first {
            return Err(problem::new(kind, &message).into());
        }
        let subscription = Subscription {
            states,
            seen: Frame::default(),
            keep_alive: service.settings.config.keep_alive,
            signed_out: caller.clone().has_ended(service.accounts.clone()).boxed(),
            stopping: service.stopping.clone(),
            until: tokio::time::Instant::now() + service.settings.config.max_sse,
            _slot: slot,
            _place: place,
        };
        let events = stream::unfold(subscription, |mut subscription| async move {
            let event = subscription.next().await?;
            Some((Ok::<_, Infallible>(event), subscription))
        });
        let is_once = uri.query() == Some("once=1");
        let events = events.take(if is_once { 1 } else { usize::MAX });
        Ok(response::event_stream(Body::from_stream(events)))
    }

    /// Subscribes to the feed, starting it if need be; `None` if there are too many.
    fn feed(self: &Arc<Self>, service: &Arc<Service>, watched: Watched) -> Option<watch::Receiver<FeedState>> {
        let mut feeds = self.feeds.lock();
        let name = watched.name();
        if let Some(feed) = feeds.get(name) {
            return Some(feed.subscribe());
        }
        if feeds.len() >= MAX_FEEDS {
            return None;
        }
        let (sender, states) = watch::channel(FeedState::default());
        feeds.insert(name.to_owned(), sender.clone());
        let feed = Feed { live: self.clone(), name: name.to_owned(), sender };
        tokio::spawn(feed.run(watched, service.clone()));
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
    async fn run(self, mut watched: Watched, service: Arc<Service>) {
        let mut is_first = true;
        while !self.close_if_unwatched() && !service.stopping.is_cancelled() {
            let state = match watched.frame(&service).await {
                Ok(frame) => FeedState::Shown(frame),
                Err(error) if is_first && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
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
        if feeds.get(&self.name).is_some_and(|feed| feed.same_channel(&self.sender)) {
            feeds.remove(&self.name);
        }
    }
}

/// One page that receives events.
struct Subscription {
    states: watch::Receiver<FeedState>,
    seen: Frame,
    keep_alive: Duration,
    signed_out: BoxFuture<'static, ()>,
    stopping: CancellationToken,
    /// Browsers reconnect by themselves.
    until: tokio::time::Instant,
    _slot: OwnedSemaphorePermit,
    _place: Place,
}

impl Subscription {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let FeedState::Shown(frame) = self.states.borrow_and_update().clone() else {
                return None;
            };
            let event = frame.since(&self.seen);
            self.seen = frame;
            if event.is_some() {
                return event;
            }
            tokio::select! {
                () = self.stopping.cancelled() => return None,
                () = &mut self.signed_out => return None,
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
) -> Result<Response, Refusal> {
    let shown = sources::shown(&service, &caller);
    let is_operator = caller.scopes.contains(Scope::Admin);
    let name = format!("sources {is_operator} {}", shown.join(" "));
    let watched = Watched::Sources { name, shown, is_operator };
    live.stream(&service, watched, &caller, &uri).await
}

/// A live document that everybody may see.
pub(crate) async fn document(
    State(service): State<Arc<Service>>,
    State(live): State<Arc<Live>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let id = path_after(&uri, "/live/");
    let is_live = |id: &DocumentId| {
        let mut sources = service.sources().iter();
        let is_shared = |source: &dyn Source| !source.is_personal() && source.readers().is_everybody();
        sources.any(|source| source.owns(id.scheme()) && source.facts().live && is_shared(&**source))
    };
    let id = DocumentId::parse(&id).ok().filter(is_live);
    let id = id.ok_or_else(|| Error::not_found(NOT_LIVE))?;
    let watched = Watched::Document { id, fetched: None };
    live.stream(&service, watched, &caller, &uri).await
}

/// What a feed checks.
enum Watched {
    /// The sources that a caller is shown.
    Sources { name: String, shown: Vec<String>, is_operator: bool },
    Document {
        id: DocumentId,
        /// Fetched once: what changes comes from its view.
        fetched: Option<Box<Document>>,
    },
}

impl Watched {
    /// Callers who would see the same page share its name, and with it the feed.
    fn name(&self) -> &str {
        match self {
            Self::Sources { name, .. } => name,
            Self::Document { id, .. } => id.as_str(),
        }
    }

    async fn frame(&mut self, service: &Service) -> Result<Frame> {
        let (id, fetched) = match self {
            Self::Sources { shown, is_operator, .. } => {
                return Ok(Frame::new(vec![sources::region(service, shown, *is_operator)]));
            }
            Self::Document { id, fetched } => (id, fetched),
        };
        let deadline = service.clock.monotonic() + service.settings.config.source_timeout;
        let cx = CallContext::new(Principal::Anonymous, deadline).uncited();
        let view = async {
            if fetched.is_none() {
                *fetched = fetch_document(service.sources(), id.as_str(), &cx).await?.map(Box::new);
            }
            let document = fetched.as_deref();
            let document = document.ok_or_else(|| Error::not_found("There is no such document"))?;
            match service.owner(document.id.scheme()) {
                Some(owner) => owner.view(document, None, &cx).await,
                None => Ok(None),
            }
        };
        let view = tokio::time::timeout(service.settings.config.source_timeout, view).await;
        match view.map_err(|_| Error::unavailable("The source timed out"))?? {
            Some(View::Board(board)) if board.is_live => {
                let links = Links::new(service.links.path_prefix());
                Ok(Frame::new(tribune_page::regions(&board, &|id| links.href(id))))
            }
            _ => Err(Error::not_found(NOT_LIVE)),
        }
    }
}
