//! The server over sources that fail, stall and count, which no real corpus does on demand.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod limits;
mod openapi;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tower::ServiceExt;
use tribune_core::{
    CallContext, Document, DocumentId, Error, Hit, JsonObject, Query, Result, Source, SourceFacts, SystemClock,
};
use tribune_server::{ProfileSpec, Service, Settings};

/// How long a test waits before it reports a hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a [`Fake`] does when it is asked.
#[derive(Clone, Copy)]
enum Behaviour {
    Answers,
    Fails,
    Stalls,
}

struct Fake {
    name: &'static str,
    behaviour: Behaviour,
    revision: AtomicUsize,
    begun: AtomicUsize,
    cancelled: Arc<AtomicUsize>,
}

impl Fake {
    fn new(name: &'static str, behaviour: Behaviour) -> Arc<Self> {
        Arc::new(Self {
            name,
            behaviour,
            revision: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            cancelled: Arc::default(),
        })
    }
}

#[async_trait]
impl Source for Fake {
    fn name(&self) -> &str {
        self.name
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        match self.behaviour {
            Behaviour::Fails => return Err(Error::unavailable("the archive is closed")),
            Behaviour::Stalls => {
                /// Notices when the work is given up.
                struct Watch(Arc<AtomicUsize>);
                impl Drop for Watch {
                    fn drop(&mut self) {
                        self.0.fetch_add(1, Ordering::SeqCst);
                    }
                }
                let _watch = Watch(self.cancelled.clone());
                self.begun.fetch_add(1, Ordering::SeqCst);
                cx.cancel.cancelled().await;
            }
            Behaviour::Answers => {}
        }
        let hit = |n: usize| Hit {
            id: DocumentId::new(self.name, &format!("{n}")).expect("an id"),
            title: format!("{} {n}", self.name),
            snippet: query.text.clone(),
            url: None,
            passage: None,
            score: 1.0,
            coverage: 1.0,
            metadata: None,
        };
        Ok((1..=3).map(hit).collect())
    }

    async fn fetch(&self, id: &DocumentId, _: &CallContext) -> Result<Option<Document>> {
        if id.key() != "1" {
            return Ok(None);
        }
        Ok(Some(Document {
            id: id.clone(),
            title: "one".to_owned(),
            text: "long ".repeat(20_000),
            url: None,
            as_of: None,
            metadata: JsonObject::new(),
            passages: Vec::new(),
        }))
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts {
            name: self.name.to_owned(),
            title: self.name.to_owned(),
            noun: "records".to_owned(),
            documents: Some(3 + self.revision.load(Ordering::SeqCst) as u64),
            ..SourceFacts::default()
        }
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst) as u64
    }
}

fn service_with(
    sources: Vec<Arc<Fake>>,
    profiles: Vec<ProfileSpec>,
    change: impl FnOnce(&mut Settings),
) -> Arc<Service> {
    let mut settings = Settings::new(([127, 0, 0, 1], 8080).into());
    settings.config.source_timeout = PATIENCE;
    settings.config.call_timeout = PATIENCE;
    change(&mut settings);
    let sources = sources.into_iter().map(|source| source as Arc<dyn Source>).collect();
    Arc::new(Service::new(settings, sources, profiles, Arc::new(SystemClock)).expect("a service"))
}

fn service(sources: Vec<Arc<Fake>>) -> Arc<Service> {
    service_with(sources, Vec::new(), |_| {})
}

/// A modern request; `extra` goes into `_meta`.
fn modern(method: &str, mut params: Value, extra: Value) -> Request<Body> {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        meta[key] = value.clone();
    }
    params["_meta"] = meta;
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    request.body(Body::from(body.to_string())).expect("a request")
}

async fn send(service: &Arc<Service>, request: Request<Body>) -> (StatusCode, String, Value) {
    let response = tribune_server::router(service.clone(), None).oneshot(request).await.expect("an answer");
    let status = response.status();
    let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
    let text = String::from_utf8(body.to_vec()).expect("UTF-8");
    let json = if kind.starts_with("text/event-stream") {
        let mut data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        data.rfind(|data| !data.is_empty()).unwrap_or_default().to_owned()
    } else {
        text
    };
    (status, kind, serde_json::from_str(&json).unwrap_or(Value::Null))
}

async fn search(service: &Arc<Service>, query: &str) -> Value {
    let request = modern("tools/call", json!({"name": "search", "arguments": {"query": query}}), json!({}));
    send(service, request).await.2["result"].clone()
}

#[tokio::test]
async fn failing_and_slow_sources_cost_only_their_results() {
    let sources = vec![
        Fake::new("good", Behaviour::Answers),
        Fake::new("closed", Behaviour::Fails),
        Fake::new("slow", Behaviour::Stalls),
    ];
    // The slow one would never answer.
    let service = service_with(sources, Vec::new(), |settings| {
        settings.config.source_timeout = Duration::from_secs(2);
    });
    let result = search(&service, "x").await;
    assert_eq!(result["isError"], false);
    let answer = &result["structuredContent"];
    assert_eq!(answer["results"].as_array().expect("results").len(), 3);
    assert_eq!(
        answer["missing"],
        json!([
            {"source": "closed", "reason": "the archive is closed"},
            {"source": "slow", "reason": "timed out after 2.0 seconds"},
        ])
    );
}

#[tokio::test]
async fn call_fails_if_no_source_answers() {
    let service = service(vec![Fake::new("closed", Behaviour::Fails)]);
    let result = search(&service, "x").await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("closed: the archive is closed") && text.contains("try again"), "{text}");
}

#[tokio::test]
async fn results_of_several_sources_are_merged() {
    let service = service(vec![Fake::new("a", Behaviour::Answers), Fake::new("b", Behaviour::Answers)]);
    let result = search(&service, "x").await;
    let ids: Vec<&str> = result["structuredContent"]["results"]
        .as_array()
        .expect("results")
        .iter()
        .filter_map(|hit| hit["id"].as_str())
        .collect();
    assert_eq!(ids, ["a:1", "b:1", "a:2", "b:2", "a:3", "b:3"]);
}

#[tokio::test]
async fn answers_match_their_schema_and_stay_small() {
    let service = service(vec![Fake::new("a", Behaviour::Answers), Fake::new("closed", Behaviour::Fails)]);
    let tools = send(&service, modern("tools/list", json!({}), json!({}))).await.2;
    for (name, arguments) in [("search", json!({"query": "x"})), ("fetch", json!({"id": "a:1"}))] {
        let tool =
            tools["result"]["tools"].as_array().expect("tools").iter().find(|t| t["name"] == name).expect("tool");
        let schema = jsonschema::validator_for(&tool["outputSchema"]).expect("a schema");
        let request = modern("tools/call", json!({"name": name, "arguments": arguments}), json!({}));
        let answer = send(&service, request).await.2;
        let structured = &answer["result"]["structuredContent"];
        assert!(schema.is_valid(structured), "{structured}");
        assert!(answer.to_string().len() < 100_000, "{name} stays under 100 KB");
    }
}

#[tokio::test]
async fn long_document_is_read_completely_by_offset() {
    let service = service(vec![Fake::new("a", Behaviour::Answers)]);
    let mut text = String::new();
    let mut offset = 0;
    loop {
        let arguments = json!({"id": "a:1", "offset": offset});
        let request = modern("tools/call", json!({"name": "fetch", "arguments": arguments}), json!({}));
        let part = send(&service, request).await.2["result"]["structuredContent"].clone();
        let shown = part["text"].as_str().expect("text");
        match part["metadata"]["next_offset"].as_u64() {
            Some(next) => {
                text.push_str(shown.split("\n\n[Cut here").next().expect("text"));
                offset = next;
            }
            None => {
                text.push_str(shown);
                break;
            }
        }
    }
    assert_eq!(text, "long ".repeat(20_000));
}

/// The lean path and rmcp must not be told apart by what they answer.
#[tokio::test]
async fn lean_path_matches_rmcp() {
    let service = service(vec![Fake::new("a", Behaviour::Answers), Fake::new("closed", Behaviour::Fails)]);
    // A progress token or an unknown parameter sends the same request through rmcp.
    let requests = [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "search", "arguments": {"query": "x \"y\" \u{1F600}"}})),
        ("tools/call", json!({"name": "fetch", "arguments": {"id": "a:1"}})),
        ("tools/call", json!({"name": "fetch", "arguments": {"id": "a:none"}})),
        ("tools/call", json!({"name": "search", "arguments": {}})),
        ("tools/call", json!({"name": "search", "arguments": {"query": 7}})),
    ];
    for (method, params) in requests {
        let (lean_status, lean_kind, lean) = send(&service, modern(method, params.clone(), json!({}))).await;
        let (rmcp_status, rmcp_kind, rmcp) =
            send(&service, modern(method, params, json!({"progressToken": "t"}))).await;
        assert!(lean_kind.starts_with("application/json"), "{lean_kind}");
        assert!(rmcp_kind.starts_with("text/event-stream"), "rmcp took it: {rmcp_kind}");
        assert_eq!((lean_status, &lean), (rmcp_status, &rmcp), "{method}");
    }
}

#[tokio::test]
async fn tool_descriptions_follow_the_data() {
    let source = Fake::new("a", Behaviour::Answers);
    let service = service(vec![source.clone()]);
    let description = async || {
        let tools = send(&service, modern("tools/list", json!({}), json!({}))).await.2;
        tools["result"]["tools"][0]["description"].as_str().expect("a description").to_owned()
    };
    assert!(description().await.contains("3 records"));
    source.revision.fetch_add(1, Ordering::SeqCst);
    assert!(description().await.contains("4 records"));
}

#[tokio::test]
async fn profiles_select_sources_tools_and_host_names() {
    let profiles = vec![ProfileSpec {
        name: "team".to_owned(),
        sources: Some(vec!["b".to_owned()]),
        tools: Some(vec!["search".to_owned()]),
        hosts: vec!["Team.example.org:443".to_owned()],
        admin: false,
    }];
    let sources = vec![Fake::new("a", Behaviour::Answers), Fake::new("b", Behaviour::Answers)];
    let service = service_with(sources, profiles, |_| {});
    let names = async |path: &str, host: &str| {
        let mut request = modern("tools/list", json!({}), json!({}));
        *request.uri_mut() = path.parse().expect("a path");
        request.headers_mut().insert("host", host.parse().expect("a host"));
        let (status, _, answer) = send(&service, request).await;
        let tools = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> = tools.iter().filter_map(|t| t["name"].as_str().map(str::to_owned)).collect();
        (status.as_u16(), names.join(","))
    };
    assert_eq!(names("/mcp", "localhost").await, (200, "search,fetch".to_owned()));
    assert_eq!(names("/mcp/research", "localhost").await, (200, "search,fetch".to_owned()));
    assert_eq!(names("/mcp/team", "localhost").await, (200, "search".to_owned()));
    assert_eq!(names("/mcp", "team.example.org").await, (200, "search".to_owned()));
    assert_eq!(names("/mcp/none", "localhost").await.0, 404);
    assert_eq!(names("/mcp", "other.example.org").await.0, 403);
}

#[tokio::test]
async fn legacy_results_are_optional() {
    for (on, era) in [(false, "modern"), (true, "modern"), (true, "legacy"), (false, "legacy")] {
        let service = service_with(vec![Fake::new("a", Behaviour::Answers)], Vec::new(), |s| {
            s.config.legacy_results = on;
        });
        let params = json!({"name": "search", "arguments": {"query": "x"}});
        let request = if era == "modern" {
            modern("tools/call", params, json!({}))
        } else {
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
            Request::post("/mcp").header("host", "localhost").body(Body::from(body.to_string())).expect("a request")
        };
        let result = send(&service, request).await.2["result"].clone();
        assert_eq!(result.get("results").is_some(), on, "{era}: {result}");
        if on {
            assert_eq!(result["results"], result["structuredContent"]["results"]);
        }
    }
}

async fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let until = std::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(std::time::Instant::now() < until, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Sends a request over a real connection and closes it once the call has begun.
async fn hang_up_during(service: &Arc<Service>, source: &Fake, request: Request<Body>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(tribune_server::serve(service.clone(), listener, None, None));
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    let mut raw = format!("POST {} HTTP/1.1\r\ncontent-length: {}\r\n", parts.uri, body.len());
    for (name, value) in &parts.headers {
        raw.push_str(&format!("{name}: {}\r\n", value.to_str().expect("ASCII")));
    }
    raw.push_str("\r\n");
    let mut connection = tokio::net::TcpStream::connect(address).await.expect("connected");
    connection.write_all(raw.as_bytes()).await.expect("sent");
    connection.write_all(&body).await.expect("sent");
    wait_for("the call begins", || source.begun.load(Ordering::SeqCst) == 1).await;
    drop(connection);
    wait_for("the call is cancelled", || source.cancelled.load(Ordering::SeqCst) == 1).await;
    server.abort();
}

#[tokio::test]
async fn disconnected_client_cancels_its_call() {
    let legacy = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "x"}}});
    let legacy = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Body::from(legacy.to_string()))
        .expect("a request");
    let call = json!({"name": "search", "arguments": {"query": "x"}});
    for (path, request) in [
        ("lean", modern("tools/call", call.clone(), json!({}))),
        ("rmcp, modern", modern("tools/call", call, json!({"progressToken": 1}))),
        ("rmcp, legacy without a session", legacy),
    ] {
        let source = Fake::new("slow", Behaviour::Stalls);
        let service = service_with(vec![source.clone()], Vec::new(), |_| {});
        eprintln!("{path}");
        hang_up_during(&service, &source, request).await;
    }
}

#[tokio::test]
async fn slow_call_times_out() {
    let service = service_with(vec![Fake::new("slow", Behaviour::Stalls)], Vec::new(), |settings| {
        settings.config.call_timeout = Duration::from_millis(300);
    });
    let result = search(&service, "x").await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("timed out"), "{text}");
}

/// Holds a document under whatever key it is asked for.
struct Mirror;

#[async_trait]
impl Source for Mirror {
    fn name(&self) -> &str {
        "mirror"
    }

    async fn search(&self, query: &Query, _: &CallContext) -> Result<Arc<[Hit]>> {
        Ok(Arc::new([Hit {
            id: DocumentId::new("mirror", &query.text).expect("an id"),
            title: "t".to_owned(),
            snippet: String::new(),
            url: None,
            passage: None,
            score: 1.0,
            coverage: 1.0,
            metadata: None,
        }]))
    }

    async fn fetch(&self, id: &DocumentId, _: &CallContext) -> Result<Option<Document>> {
        Ok(Some(Document {
            id: id.clone(),
            title: "t".to_owned(),
            text: id.key().to_owned(),
            url: None,
            as_of: None,
            metadata: JsonObject::new(),
            passages: Vec::new(),
        }))
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts {
            name: "mirror".to_owned(),
            title: "Mirror".to_owned(),
            noun: "documents".to_owned(),
            ..SourceFacts::default()
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_id_survives_search_fetch_and_citation(key in "\\PC{1,60}|[\\x00-\\x7f]{1,40}|[%/.?#:+ ]{1,20}") {
        if key.trim().is_empty() {
            // A blank query is refused, so this mirror cannot show such a key.
            return Ok(());
        }
        let settings = Settings::new(([127, 0, 0, 1], 8080).into());
        let service = Arc::new(Service::new(settings, vec![Arc::new(Mirror)], Vec::new(), Arc::new(SystemClock)).expect("a service"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let found = search(&service, &key).await["structuredContent"]["results"][0].clone();
            let id = found["id"].as_str().expect("an id");
            assert_eq!(id, format!("mirror:{key}"));
            let call = json!({"name": "fetch", "arguments": {"id": id}});
            let fetched = send(&service, modern("tools/call", call, json!({}))).await.2;
            assert_eq!(fetched["result"]["structuredContent"]["text"], key);
            let path = found["url"].as_str().expect("a url").strip_prefix("http://127.0.0.1:8080").expect("ours");
            let request = Request::get(path).header("host", "localhost").header("accept", "application/json");
            let (status, _, cited) = send(&service, request.body(Body::empty()).expect("a request")).await;
            assert_eq!((status.as_u16(), &cited["id"]), (200, &json!(id)), "{path}");
        });
    }
}
