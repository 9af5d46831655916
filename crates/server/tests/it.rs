//! The server over sources that fail, stall and count, which no real corpus does on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;
use tribune_core::{
    CallContext, Document, DocumentId, Error, Hit, JsonObject, Query, Result, Source, SourceFacts, SystemClock,
};
use tribune_server::{ProfileSpec, Service, Settings};

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
    cancelled: Arc<AtomicUsize>,
}

impl Fake {
    fn new(name: &'static str, behaviour: Behaviour) -> Arc<Self> {
        Arc::new(Self {
            name,
            behaviour,
            revision: AtomicUsize::new(0),
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
                tokio::select! {
                    () = cx.cancel.cancelled() => {}
                    () = tokio::time::sleep(Duration::from_secs(60)) => {}
                }
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
    settings.source_timeout = Duration::from_millis(200);
    settings.call_timeout = Duration::from_secs(5);
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
    let response = tribune_server::http::router(service.clone(), None)
        .oneshot(request)
        .await
        .expect("an answer");
    let status = response.status();
    let kind = response
        .headers()
        .get("content-type")
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX)
        .await
        .expect("a body");
    let text = String::from_utf8(body.to_vec()).expect("UTF-8");
    let json = if kind.starts_with("text/event-stream") {
        let mut data = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(str::trim);
        data.rfind(|data| !data.is_empty()).unwrap_or_default().to_owned()
    } else {
        text
    };
    (status, kind, serde_json::from_str(&json).unwrap_or(Value::Null))
}

async fn search(service: &Arc<Service>, query: &str) -> Value {
    let request = modern(
        "tools/call",
        json!({"name": "search", "arguments": {"query": query}}),
        json!({}),
    );
    send(service, request).await.2["result"].clone()
}

#[tokio::test]
async fn a_failing_and_a_slow_source_cost_only_their_own_results() {
    let service = service(vec![
        Fake::new("good", Behaviour::Answers),
        Fake::new("closed", Behaviour::Fails),
        Fake::new("slow", Behaviour::Stalls),
    ]);
    let started = std::time::Instant::now();
    let result = search(&service, "x").await;
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "nobody waits for the slow one"
    );
    assert_eq!(result["isError"], false);
    let answer = &result["structuredContent"];
    assert_eq!(answer["results"].as_array().expect("results").len(), 3);
    assert_eq!(
        answer["missing"],
        json!([
            {"source": "closed", "reason": "the archive is closed"},
            {"source": "slow", "reason": "did not answer within 0.2 seconds"},
        ])
    );
}

#[tokio::test]
async fn when_no_source_answers_the_call_fails_and_says_so() {
    let service = service(vec![Fake::new("closed", Behaviour::Fails)]);
    let result = search(&service, "x").await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(
        text.contains("closed: the archive is closed") && text.contains("try again"),
        "{text}"
    );
}

#[tokio::test]
async fn results_of_several_sources_are_merged() {
    let service = service(vec![
        Fake::new("a", Behaviour::Answers),
        Fake::new("b", Behaviour::Answers),
    ]);
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
async fn every_answer_satisfies_its_output_schema_and_stays_small() {
    let service = service(vec![
        Fake::new("a", Behaviour::Answers),
        Fake::new("closed", Behaviour::Fails),
    ]);
    let tools = send(&service, modern("tools/list", json!({}), json!({}))).await.2;
    for (name, arguments) in [("search", json!({"query": "x"})), ("fetch", json!({"id": "a:1"}))] {
        let tool = tools["result"]["tools"]
            .as_array()
            .expect("tools")
            .iter()
            .find(|t| t["name"] == name)
            .expect("tool");
        let schema = jsonschema::validator_for(&tool["outputSchema"]).expect("a schema");
        let request = modern("tools/call", json!({"name": name, "arguments": arguments}), json!({}));
        let answer = send(&service, request).await.2;
        let structured = &answer["result"]["structuredContent"];
        assert!(schema.is_valid(structured), "{structured}");
        assert!(answer.to_string().len() < 100_000, "{name} stays under 100 KB");
    }
}

#[tokio::test]
async fn a_long_document_is_read_on_with_offset_and_nothing_is_lost() {
    let service = service(vec![Fake::new("a", Behaviour::Answers)]);
    let mut text = String::new();
    let mut offset = 0;
    loop {
        let arguments = json!({"id": "a:1", "offset": offset});
        let request = modern(
            "tools/call",
            json!({"name": "fetch", "arguments": arguments}),
            json!({}),
        );
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
async fn the_lean_path_answers_as_rmcp_does() {
    let service = service(vec![
        Fake::new("a", Behaviour::Answers),
        Fake::new("closed", Behaviour::Fails),
    ]);
    // A progress token or an unknown parameter sends the same request through rmcp.
    let requests = [
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({"name": "search", "arguments": {"query": "x \"y\" \u{1F600}"}}),
        ),
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
        tools["result"]["tools"][0]["description"]
            .as_str()
            .expect("a description")
            .to_owned()
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
        let names: Vec<String> = tools
            .iter()
            .filter_map(|t| t["name"].as_str().map(str::to_owned))
            .collect();
        (status.as_u16(), names.join(","))
    };
    assert_eq!(names("/mcp", "localhost").await, (200, "search,fetch".to_owned()));
    assert_eq!(
        names("/mcp/research", "localhost").await,
        (200, "search,fetch".to_owned())
    );
    assert_eq!(names("/mcp/team", "localhost").await, (200, "search".to_owned()));
    assert_eq!(names("/mcp", "team.example.org").await, (200, "search".to_owned()));
    assert_eq!(names("/mcp/none", "localhost").await.0, 404);
    assert_eq!(names("/mcp", "other.example.org").await.0, 403);
}

#[tokio::test]
async fn legacy_results_are_put_at_the_top_level_only_when_switched_on() {
    for (on, era) in [(false, "modern"), (true, "modern"), (true, "legacy"), (false, "legacy")] {
        let service = service_with(vec![Fake::new("a", Behaviour::Answers)], Vec::new(), |s| {
            s.legacy_results = on;
        });
        let params = json!({"name": "search", "arguments": {"query": "x"}});
        let request = if era == "modern" {
            modern("tools/call", params, json!({}))
        } else {
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
            Request::post("/mcp")
                .header("host", "localhost")
                .body(Body::from(body.to_string()))
                .expect("a request")
        };
        let result = send(&service, request).await.2["result"].clone();
        assert_eq!(result.get("results").is_some(), on, "{era}: {result}");
        if on {
            assert_eq!(result["results"], result["structuredContent"]["results"]);
        }
    }
}

/// Sends a request over a real connection and closes it before the answer.
async fn hang_up_during(service: &Arc<Service>, request: Request<Body>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(tribune_server::serve(service.clone(), listener, None));
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
    // Time for the call to begin; if an event stream opens first, its head is read.
    let mut head = [0; 1024];
    drop(tokio::time::timeout(Duration::from_millis(300), connection.read(&mut head)).await);
    drop(connection);
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.abort();
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_its_call() {
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
        let service = service_with(vec![source.clone()], Vec::new(), |s| {
            s.source_timeout = Duration::from_secs(60);
        });
        hang_up_during(&service, request).await;
        assert_eq!(
            source.cancelled.load(Ordering::SeqCst),
            1,
            "{path}: the work goes on for nobody"
        );
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_answered_with_what_to_do() {
    let service = service_with(vec![Fake::new("slow", Behaviour::Stalls)], Vec::new(), |settings| {
        settings.source_timeout = Duration::from_secs(60);
        settings.call_timeout = Duration::from_millis(300);
    });
    let result = search(&service, "x").await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("did not"), "{text}");
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
    fn any_id_survives_search_fetch_and_its_citation(key in "\\PC{1,60}|[\\x00-\\x7f]{1,40}|[%/.?#:+ ]{1,20}") {
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
