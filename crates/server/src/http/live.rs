//! `/live`: what changes on a page, as it changes. Every page that shows the same thing is told by one feed: it looks
//! about once a second while somebody is there, and sends the parts that have become others.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures::stream;
use http::{StatusCode, Uri};
use serde_json::Value;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Document, DocumentId, Error, ErrorKind, Links, Principal, Result, View};
use tribune_draw::Region;

use super::callers::Caller;
use super::{App, last_part, problem, sources};
use crate::contract::fetch_document;
use crate::mcp::rpc;
use crate::profile::unpoisoned;
use crate::service::Service;

/// How often it is looked whether something has changed.
const PERIOD: Duration = Duration::from_secs(1);
/// Pages of known users that are followed at the same time, and as many of others: strangers cannot take them all.
const MAX_FOLLOWERS: usize = 256;
/// Things that are looked at for them: each costs a look a second, and some of what may be asked of an exchange.
const MAX_FEEDS: usize = 64;
const BUSY: &str = "as many pages are live as may be at once; this one shows how it was when it was opened";
const NOT_LIVE: &str = "this page does not change by itself";

/// The feeds that somebody follows.
pub struct Live {
    feeds: Mutex<HashMap<String, watch::Sender<Frame>>>,
    places_of_users: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// What a page shows now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Frame {
    /// By key, as JSON.
    regions: Vec<(String, Arc<str>)>,
    /// Why it could not be looked.
    trouble: Option<String>,
}

impl Frame {
    fn of(regions: Vec<Region>) -> Self {
        let written = |region: Region| {
            let json = serde_json::to_string(&region.element).unwrap_or_default();
            (region.key, json.into())
        };
        Self {
            regions: regions.into_iter().map(written).collect(),
            trouble: None,
        }
    }

    /// What somebody has to be told who has seen `before`.
    fn since(&self, before: &Self) -> Option<Bytes> {
        if let Some(trouble) = &self.trouble {
            let data = Value::from(trouble.as_str());
            return (before.trouble.as_ref() != Some(trouble))
                .then(|| format!("event: trouble\ndata: {data}\n\n").into());
        }
        let is_new = |(key, json): &&(String, Arc<str>)| !before.regions.iter().any(|(k, j)| k == key && j == json);
        let has_all = before
            .regions
            .iter()
            .map(|(key, _)| key)
            .eq(self.regions.iter().map(|(key, _)| key));
        if has_all && before.trouble.is_none() && !self.regions.iter().any(|region| is_new(&region)) {
            return None;
        }
        // All keys, so that what is no longer there can be taken off the page.
        let keys: Vec<&str> = self.regions.iter().map(|(key, _)| key.as_str()).collect();
        let changed = self.regions.iter().filter(is_new);
        let changed: Vec<String> = changed
            .map(|(key, json)| format!("{}:{json}", Value::from(key.as_str())))
            .collect();
        let keys = Value::from(keys);
        Some(
            format!(
                "event: regions\ndata: {{\"keys\":{keys},\"changed\":{{{}}}}}\n\n",
                changed.join(",")
            )
            .into(),
        )
    }
}

impl Live {
    pub fn new() -> Self {
        Self {
            feeds: Mutex::default(),
            places_of_users: Arc::new(Semaphore::new(MAX_FOLLOWERS)),
            places: Arc::new(Semaphore::new(MAX_FOLLOWERS)),
        }
    }

    /// Follows what `look` sees, under a name that all who would see the same have in common.
    fn follow<F>(
        self: &Arc<Self>,
        name: String,
        asked: Asked,
        service: &Arc<Service>,
        look: impl Fn() -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = Frame> + Send,
    {
        let places = if asked.is_known {
            &self.places_of_users
        } else {
            &self.places
        };
        let place = places.clone().try_acquire_owned().ok();
        let Some((place, frames)) = place.and_then(|place| Some((place, self.feed(name, service, look)?))) else {
            return problem::answer(StatusCode::SERVICE_UNAVAILABLE, "busy", BUSY);
        };
        let follower = Follower {
            frames,
            seen: Frame::default(),
            keep_alive: service.settings.keep_alive,
            ending: service.stopping.clone(),
            until: tokio::time::Instant::now() + service.settings.max_sse,
            asked_once: asked.once,
            is_over: false,
            _place: place,
        };
        let events = stream::unfold(follower, |mut follower| async move {
            let event = follower.next().await?;
            Some((Ok::<_, Infallible>(event), follower))
        });
        rpc::event_stream(Body::from_stream(events))
    }

    fn feed<F>(
        self: &Arc<Self>,
        name: String,
        service: &Arc<Service>,
        look: impl Fn() -> F + Send + 'static,
    ) -> Option<watch::Receiver<Frame>>
    where
        F: Future<Output = Frame> + Send,
    {
        let mut feeds = unpoisoned(&self.feeds);
        if let Some(feed) = feeds.get(&name) {
            return Some(feed.subscribe());
        }
        if feeds.len() >= MAX_FEEDS {
            return None;
        }
        let (feed, frames) = watch::channel(Frame::default());
        feeds.insert(name.clone(), feed.clone());
        let live = self.clone();
        let ending = service.stopping.clone();
        tokio::spawn(async move {
            // Its place is given back also if looking panics.
            let _forget = Forget {
                live: live.clone(),
                name: name.clone(),
                feed: feed.clone(),
            };
            while !live.is_left(&name, &feed) && !ending.is_cancelled() {
                let frame = look().await;
                feed.send_if_modified(|last| {
                    let is_new = *last != frame;
                    if is_new {
                        *last = frame;
                    }
                    is_new
                });
                tokio::time::sleep(PERIOD).await;
            }
        });
        Some(frames)
    }

    fn is_followed(&self, name: &str) -> bool {
        unpoisoned(&self.feeds).contains_key(name)
    }

    /// Forgets a feed that nobody follows. Nobody can begin to in between.
    fn is_left(&self, name: &str, feed: &watch::Sender<Frame>) -> bool {
        let mut feeds = unpoisoned(&self.feeds);
        let is_left = feed.receiver_count() == 0;
        if is_left {
            feeds.remove(name);
        }
        is_left
    }
}

struct Forget {
    live: Arc<Live>,
    name: String,
    feed: watch::Sender<Frame>,
}

impl Drop for Forget {
    fn drop(&mut self) {
        let mut feeds = unpoisoned(&self.live.feeds);
        // Another may have begun under this name.
        if feeds.get(&self.name).is_some_and(|feed| feed.same_channel(&self.feed)) {
            feeds.remove(&self.name);
        }
    }
}

/// Who asks, and whether once.
#[derive(Debug, Clone, Copy)]
struct Asked {
    is_known: bool,
    once: bool,
}

impl Asked {
    fn new(caller: &Caller, uri: &Uri) -> Self {
        Self {
            is_known: caller.principal != Principal::Anonymous,
            once: uri.query() == Some("once=1"),
        }
    }
}

/// One page that is told.
struct Follower {
    frames: watch::Receiver<Frame>,
    seen: Frame,
    keep_alive: Duration,
    ending: CancellationToken,
    /// Browsers come back by themselves.
    until: tokio::time::Instant,
    /// Only wants to know how it is now.
    asked_once: bool,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over {
                return None;
            }
            let frame = self.frames.borrow_and_update().clone();
            let event = frame.since(&self.seen);
            self.seen = frame;
            if event.is_some() {
                self.is_over = self.asked_once;
                return event;
            }
            tokio::select! {
                () = self.ending.cancelled() => return None,
                () = tokio::time::sleep_until(self.until) => return None,
                changed = self.frames.changed() => changed.ok()?,
                () = tokio::time::sleep(self.keep_alive) => return Some(Bytes::from_static(b": keep-alive\n\n")),
            }
        }
    }
}

/// The sources, as the start page shows them.
pub(super) async fn overview(State(app): State<App>, Extension(caller): Extension<Caller>, uri: Uri) -> Response {
    let asked = Asked::new(&caller, &uri);
    let is_known = asked.is_known;
    let name = if is_known { "sources of users" } else { "sources" };
    let service = app.service.clone();
    app.live.follow(name.to_owned(), asked, &app.service, move || {
        let regions = vec![sources::region(&service, is_known)];
        async move { Frame::of(regions) }
    })
}

/// A document that changes by itself, and belongs to nobody in particular.
pub(super) async fn document(State(app): State<App>, Extension(caller): Extension<Caller>, uri: Uri) -> Response {
    let id = last_part(&uri, "/live/");
    let is_live = |id: &DocumentId| {
        let mut sources = app.service.sources().iter();
        sources.any(|source| source.owns(id.scheme()) && source.facts().live && !source.is_personal())
    };
    let Some(id) = DocumentId::parse(&id).ok().filter(is_live) else {
        return problem::answer(StatusCode::NOT_FOUND, "not_found", NOT_LIVE);
    };
    let followed = Arc::new(Followed {
        service: app.service.clone(),
        id,
        document: OnceCell::new(),
    });
    let name = followed.id.as_str().to_owned();
    if !app.live.is_followed(&name)
        && let Err(error) = followed.look().await
        && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument)
    {
        return problem::of(&error);
    }
    app.live.follow(name, Asked::new(&caller, &uri), &app.service, move || {
        let followed = followed.clone();
        async move {
            followed.look().await.unwrap_or_else(|error| Frame {
                trouble: Some(error.message().to_owned()),
                ..Frame::default()
            })
        }
    })
}

struct Followed {
    service: Arc<Service>,
    id: DocumentId,
    /// Fetched once: what it shows is in its view.
    document: OnceCell<Document>,
}

impl Followed {
    async fn look(&self) -> Result<Frame> {
        let service = &self.service;
        let deadline = service.clock.monotonic() + service.settings.source_timeout;
        let cx = CallContext::new(Principal::Anonymous, deadline).uncited();
        let looking = async {
            let sources = service.sources();
            let fetch = || async {
                let found = fetch_document(sources, self.id.as_str(), &cx).await?;
                found.ok_or_else(|| Error::not_found("there is no such document"))
            };
            let document = self.document.get_or_try_init(fetch).await?;
            let owner = sources.iter().find(|source| source.owns(document.id.scheme()));
            match owner {
                Some(owner) => owner.view(document, None, &cx).await,
                None => Ok(None),
            }
        };
        let view = tokio::time::timeout(service.settings.source_timeout, looking).await;
        match view.map_err(|_| Error::unavailable("the source did not answer in time"))?? {
            Some(View::Board(board)) if board.is_live => {
                let links = Links::new(service.links.path_prefix());
                Ok(Frame::of(tribune_draw::regions(&board, &links)))
            }
            _ => Err(Error::not_found(NOT_LIVE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(regions: &[(&str, &str)], trouble: Option<&str>) -> Frame {
        let regions = regions.iter().map(|(key, json)| ((*key).to_owned(), (*json).into()));
        Frame {
            regions: regions.collect(),
            trouble: trouble.map(str::to_owned),
        }
    }

    fn told(frame: &Frame, before: &Frame) -> Option<String> {
        let event = frame.since(before)?;
        Some(String::from_utf8(event.to_vec()).expect("UTF-8"))
    }

    #[test]
    fn a_page_is_told_what_has_changed_and_nothing_else() {
        let nothing = Frame::default();
        let first = frame(&[("head", "[1]"), ("panel-x", "[2]")], None);
        let second = frame(&[("head", "[1]"), ("panel-x", "[3]")], None);
        let all =
            "event: regions\ndata: {\"keys\":[\"head\",\"panel-x\"],\"changed\":{\"head\":[1],\"panel-x\":[2]}}\n\n";
        assert_eq!(told(&first, &nothing).as_deref(), Some(all));
        assert_eq!(told(&first, &first), None);
        let changed = "event: regions\ndata: {\"keys\":[\"head\",\"panel-x\"],\"changed\":{\"panel-x\":[3]}}\n\n";
        assert_eq!(told(&second, &first).as_deref(), Some(changed));
        let less = "event: regions\ndata: {\"keys\":[\"head\"],\"changed\":{}}\n\n";
        assert_eq!(told(&frame(&[("head", "[1]")], None), &first).as_deref(), Some(less));
    }

    #[test]
    fn trouble_is_told_once_and_so_is_its_end() {
        let fine = frame(&[("head", "[1]")], None);
        let broken = frame(&[], Some("the exchange is \"down\"\nnow"));
        let event = "event: trouble\ndata: \"the exchange is \\\"down\\\"\\nnow\"\n\n";
        assert_eq!(told(&broken, &fine).as_deref(), Some(event));
        assert_eq!(told(&broken, &broken), None);
        assert_eq!(
            told(&fine, &broken).as_deref(),
            Some("event: regions\ndata: {\"keys\":[\"head\"],\"changed\":{\"head\":[1]}}\n\n")
        );
    }
}
