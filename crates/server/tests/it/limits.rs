//! Limits and failures that must not cost more than they have to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tower::ServiceExt;
use tribune_core::{
    CallContext, CallDisplay, Cited, Clock, Document, DocumentId, Hints, Hit, JsonObject, Query, Result, Scopes,
    Source, SourceFacts, SystemClock, Tool, ToolOutput, ToolSpec, UserId,
};
use tribune_page::{Board, View};
use tribune_server::identity::{Accounts, SignIn, TokenUse, new_token};
use tribune_server::{Service, Settings};
use tribune_storage::{Backend, Store};

use super::{modern, send};

/// A source whose pages are live. Its permalinks stall, and its tools are faulty while `is_faulty`.
#[derive(Default)]
struct Ticker {
    fetches: AtomicUsize,
    revision: AtomicU64,
    is_faulty: std::sync::atomic::AtomicBool,
    rebuilds: AtomicUsize,
}

#[async_trait]
impl Source for Ticker {
    fn name(&self) -> &str {
        "ticker"
    }

    async fn search(&self, _: &Query, _: &CallContext) -> Result<Arc<[Hit]>> {
        Ok(Arc::default())
    }

    async fn fetch(&self, id: &DocumentId, _: &CallContext) -> Result<Option<Document>> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        Ok((!id.key().ends_with("none")).then(|| Document {
            id: id.clone(),
            title: id.to_string(),
            text: String::new(),
            url: None,
            as_of: None,
            metadata: JsonObject::new(),
            passages: Vec::new(),
        }))
    }

    async fn cited(&self, _: &DocumentId, _: &str) -> Result<Option<Cited>> {
        std::future::pending().await
    }

    async fn view(&self, _: &Document, _: Option<jiff::Timestamp>, _: &CallContext) -> Result<Option<View>> {
        Ok(Some(View::Board(Box::new(Board { title: "BTC/USDT".to_owned(), is_live: true, ..Board::default() }))))
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts {
            name: "ticker".to_owned(),
            title: "Ticker".to_owned(),
            noun: "tickers".to_owned(),
            live: true,
            ..SourceFacts::default()
        }
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        self.rebuilds.fetch_add(1, Ordering::SeqCst);
        let count = if self.is_faulty.load(Ordering::SeqCst) { 2 } else { 1 };
        // Two tools of one name are refused by the registry.
        (0..count).map(|_| Arc::new(Ping::new()) as Arc<dyn Tool>).collect()
    }
}

struct Ping(ToolSpec);

impl Ping {
    fn new() -> Self {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        Self(ToolSpec {
            name: "ping".to_owned(),
            title: "Ping".to_owned(),
            description: "Answers.".to_owned(),
            input_schema: object(json!({"type": "object", "properties": {}})),
            output_schema: object(json!({"type": "object"})),
            hints: Hints::READ,
            icon: None,
            display: CallDisplay::default(),
            aliases: Vec::new(),
        })
    }
}

#[async_trait]
impl Tool for Ping {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: JsonObject, _: &CallContext) -> Result<ToolOutput> {
        ToolOutput::structured(&json!({}), 0)
    }
}

fn service(source: &Arc<Ticker>, change: impl FnOnce(&mut Settings)) -> Arc<Service> {
    let mut settings = Settings::new(([127, 0, 0, 1], 8080).into());
    change(&mut settings);
    let sources: Vec<Arc<dyn Source>> = vec![source.clone()];
    Arc::new(Service::new(settings, sources, Vec::new(), Arc::new(SystemClock)).expect("a service"))
}

fn router(service: &Arc<Service>) -> Router {
    tribune_server::router(service.clone(), None)
}

async fn get(router: &Router, path: &str) -> Response {
    let request = Request::get(path).header("host", "localhost").body(Body::empty()).expect("a request");
    router.clone().oneshot(request).await.expect("an answer")
}

#[tokio::test]
async fn failed_rebuild_is_tried_once_per_revision() {
    let source = Arc::new(Ticker::default());
    let service = service(&source, |_| {});
    let list = async || {
        let tools = send(&service, modern("tools/list", json!({}), json!({}))).await.2;
        tools["result"]["tools"].as_array().map_or(0, Vec::len)
    };
    let served = list().await;
    source.is_faulty.store(true, Ordering::SeqCst);
    for revision in 1..=3 {
        source.revision.store(revision, Ordering::SeqCst);
        let before = source.rebuilds.load(Ordering::SeqCst);
        for _ in 0..5 {
            assert_eq!(list().await, served, "the last good tools are served");
        }
        assert_eq!(source.rebuilds.load(Ordering::SeqCst), before + 1);
    }
    source.is_faulty.store(false, Ordering::SeqCst);
    source.revision.store(4, Ordering::SeqCst);
    let before = source.rebuilds.load(Ordering::SeqCst);
    assert_eq!(list().await, served);
    assert!(source.rebuilds.load(Ordering::SeqCst) > before, "a new revision is built");
}

fn initialize() -> Request<Body> {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Body::from(body.to_string()))
        .expect("a request")
}

/// Sends many requests at the same moment, from several threads.
async fn at_once(router: &Router, count: usize, request: fn() -> Request<Body>) -> Vec<Response> {
    let barrier = Arc::new(Barrier::new(count));
    let calls = (0..count).map(|_| {
        let (router, barrier) = (router.clone(), barrier.clone());
        tokio::spawn(async move {
            barrier.wait().await;
            router.oneshot(request()).await.expect("an answer")
        })
    });
    let answers = futures::future::join_all(calls).await;
    answers.into_iter().map(|answer| answer.expect("a task")).collect()
}

fn session(response: &Response) -> Option<&str> {
    response.headers().get("mcp-session-id")?.to_str().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_initialize_requests_keep_the_session_limit() {
    const LIMIT: usize = 4;
    for _ in 0..10 {
        let service = service(&Arc::new(Ticker::default()), |settings| settings.config.max_sessions = LIMIT);
        let router = router(&service);
        let answers = at_once(&router, 64, initialize).await;
        assert!(answers.iter().all(|answer| answer.status() == StatusCode::OK));
        let sessions: Vec<&str> = answers.iter().filter_map(session).collect();
        assert_eq!(sessions.len(), LIMIT);

        let delete = Request::delete("/mcp")
            .header("host", "localhost")
            .header("mcp-session-id", sessions[0])
            .header("mcp-protocol-version", "2025-06-18")
            .body(Body::empty())
            .expect("a request");
        let deleted = router.clone().oneshot(delete).await.expect("an answer");
        assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
        let next = router.clone().oneshot(initialize()).await.expect("an answer");
        assert!(session(&next).is_some(), "a closed session frees its slot");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_sse_streams_keep_the_limit() {
    const LIMIT: usize = 4;
    let open = || Request::get("/sse").header("host", "localhost").body(Body::empty()).expect("a request");
    for _ in 0..10 {
        let service = service(&Arc::new(Ticker::default()), |settings| settings.config.max_sessions = LIMIT);
        let router = router(&service);
        let answers = at_once(&router, 64, open).await;
        let is_open = |answer: &&Response| answer.status() == StatusCode::OK;
        assert_eq!(answers.iter().filter(is_open).count(), LIMIT);
        drop(answers);
        assert_eq!(get(&router, "/sse").await.status(), StatusCode::OK);
    }
}

/// As many live pages as the server follows at once.
const MAX_FEEDS: usize = 64;

#[tokio::test]
async fn live_page_is_not_fetched_without_capacity() {
    let source = Arc::new(Ticker::default());
    let router = router(&service(&source, |_| {}));
    let mut pages = Vec::new();
    for number in 0..MAX_FEEDS {
        let page = get(&router, &format!("/live/ticker:{number}")).await;
        assert_eq!(page.status(), StatusCode::OK);
        pages.push(page);
    }
    assert_eq!(source.fetches.load(Ordering::SeqCst), MAX_FEEDS);
    let refused = get(&router, "/live/ticker:more").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(source.fetches.load(Ordering::SeqCst), MAX_FEEDS, "nothing was fetched");
    let same = get(&router, "/live/ticker:0").await;
    assert_eq!(same.status(), StatusCode::OK, "a page that is followed already needs no feed");
}

#[tokio::test]
async fn absent_live_page_is_not_found() {
    let source = Arc::new(Ticker::default());
    let router = router(&service(&source, |_| {}));
    assert_eq!(get(&router, "/live/ticker:none").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(get(&router, "/live/other:1").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn stalled_permalink_times_out() {
    let router = router(&service(&Arc::new(Ticker::default()), |_| {}));
    let opened = tokio::time::timeout(Duration::from_secs(120), get(&router, "/data/ticker:1?at=x"));
    let status = opened.await.expect("an answer within the call timeout").status();
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

/// The clock of the runtime, which a test can pause.
struct RuntimeClock;

impl Clock for RuntimeClock {
    fn now(&self) -> jiff::Timestamp {
        SystemClock.now()
    }

    fn monotonic(&self) -> std::time::Instant {
        tokio::time::Instant::now().into_std()
    }
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_their_token() {
    const DAY: Duration = Duration::from_secs(24 * 3_600);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("streams-{}", std::process::id()));
    let store = Store::new(Backend::Sqlite(folder.join("tribune.db"))).expect("a store");
    let mut service = service(&Arc::new(Ticker::default()), |settings| settings.config.max_sse = 1_000 * DAY);
    let accounts = Accounts::new(&store, SignIn::None, None, Arc::new(RuntimeClock), None);
    Arc::get_mut(&mut service).expect("nobody else has it").accounts = Some(Arc::new(accounts));
    let usage = TokenUse { scopes: Scopes::USUAL, ..TokenUse::default() };
    let made = new_token(UserId::new("ann").expect("a name"), usage, SystemClock.now()).expect("a token");
    store.tokens().add(&made.token, made.sha256).await.expect("stored");
    let router = router(&service);
    let mut streams = Vec::new();
    for path in ["/live", "/live/ticker:1", "/sse"] {
        let request = Request::get(path).header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {}", made.shown));
        let opened = router.clone().oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer");
        assert_eq!(opened.status(), StatusCode::OK, "{path}");
        streams.push(opened.into_body());
    }
    store.tokens().revoke(&made.token.id, SystemClock.now()).await.expect("revoked");
    for stream in streams {
        let ended = tokio::time::timeout(DAY, axum::body::to_bytes(stream, usize::MAX)).await;
        ended.expect("it ends").expect("in good order");
    }
    store.close().await;
    std::fs::remove_dir_all(folder).expect("removed");
}
