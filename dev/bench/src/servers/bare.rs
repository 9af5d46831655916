//! Two axum servers without an MCP library: what HTTP alone costs, and what
//! HTTP with the protocol's least work costs.

use std::{borrow::Cow, sync::Arc};

use anyhow::{Context, Result};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{ACCEPT, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    answers::{Answer, Answers},
    protocol::{TOOL, TOOLS_CALL, TOOLS_LIST, VERSION},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Bytes prepared once; sending them only counts a reference.
#[derive(Clone)]
struct Constant {
    content_type: HeaderValue,
    body: Bytes,
}

impl Constant {
    fn new(answer: &Answer) -> Result<Self> {
        Ok(Self {
            content_type: HeaderValue::from_str(&answer.content_type).context("Content-Type")?,
            body: Bytes::from(answer.body.clone()),
        })
    }
}

struct Constants {
    list: Constant,
    search: Constant,
}

/// The ceiling: reads the request, looks at one header, sends constant bytes.
pub fn constant(answers: &Answers) -> Result<Router> {
    let constants =
        Arc::new(Constants { list: Constant::new(&answers.list)?, search: Constant::new(&answers.search)? });
    Ok(Router::new().route("/mcp", post(send_constant)).with_state(constants))
}

/// The body is taken although nothing looks at it: it has to be read off the
/// connection before the next request.
async fn send_constant(State(constants): State<Arc<Constants>>, headers: HeaderMap, _body: Bytes) -> Response {
    let is_list = headers.get("mcp-method").is_some_and(|method| method == TOOLS_LIST);
    let Constant { content_type, body } = if is_list { constants.list.clone() } else { constants.search.clone() };
    ([(CONTENT_TYPE, content_type)], body).into_response()
}

struct Results {
    list: Value,
    search: Value,
}

/// The least a server without a library can do and still speak the protocol.
pub fn json(answers: &Answers) -> Result<Router> {
    let results = Arc::new(Results { list: answers.list.result()?, search: answers.search.result()? });
    Ok(Router::new().route("/mcp", post(send_json)).with_state(results))
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: Value,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    arguments: Option<Map<String, Value>>,
    #[serde(borrow, rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Cow<'a, str>,
    /// Being an object is all that is asked of it, and reading it checks that.
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    _capabilities: Map<String, Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: &'a Value,
}

async fn send_json(State(results): State<Arc<Results>>, headers: HeaderMap, body: Bytes) -> Response {
    match answer(&results, &headers, &body) {
        Ok(body) => ([(CONTENT_TYPE, JSON)], body).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

fn answer(results: &Results, headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let request: Request<'_> = serde_json::from_slice(body).map_err(|_| Refusal::bad("not a valid request"))?;
    check(&request, headers)?;
    let result = match request.method.as_ref() {
        TOOLS_LIST => &results.list,
        TOOLS_CALL => search(&request.params, &results.search)?,
        _ => return Err(Refusal::UNKNOWN_METHOD),
    };
    serde_json::to_vec(&Message { jsonrpc: "2.0", id: &request.id, result })
        .map_err(|_| Refusal::bad("the answer cannot be serialised"))
}

fn check(request: &Request<'_>, headers: &HeaderMap) -> Result<(), Refusal> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let accept = header(ACCEPT.as_str()).unwrap_or_default();
    let content_type = header(CONTENT_TYPE.as_str()).unwrap_or_default();
    let media = accept.contains("application/json")
        && accept.contains("text/event-stream")
        && content_type.starts_with("application/json");
    let version = request.params.meta.version == VERSION && header("mcp-protocol-version") == Some(VERSION);
    let named = request.method != TOOLS_CALL
        || header("mcp-name").is_some_and(|name| request.params.name.as_deref() == Some(name));
    let agreed = header("mcp-method") == Some(request.method.as_ref()) && named;
    if request.jsonrpc == "2.0" && media && version && agreed {
        Ok(())
    } else {
        Err(Refusal::bad("headers and request disagree"))
    }
}

fn search<'a>(params: &Params<'_>, result: &'a Value) -> Result<&'a Value, Refusal> {
    let has_query =
        params.arguments.as_ref().is_some_and(|arguments| arguments.get("query").is_some_and(Value::is_string));
    if params.name.as_deref() == Some(TOOL) && has_query {
        Ok(result)
    } else {
        Err(Refusal::bad("unknown tool or no query"))
    }
}

struct Refusal {
    status: StatusCode,
    code: i32,
    reason: &'static str,
}

impl Refusal {
    const UNKNOWN_METHOD: Self = Self { status: StatusCode::NOT_FOUND, code: -32601, reason: "unknown method" };

    fn bad(reason: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: -32600, reason }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = json!({ "code": self.code, "message": self.reason });
        let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
        (self.status, [(CONTENT_TYPE, JSON)], body.to_string()).into_response()
    }
}
