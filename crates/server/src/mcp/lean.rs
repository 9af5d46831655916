//! A fast path for `tools/list` and `tools/call` of the modern era, which skips rmcp's per-request service.
//!
//! It takes only requests that match the specification exactly. Everything else, such as a header that contradicts
//! the body or an unknown tool, goes to rmcp, which reports every error by its code. A test compares both paths.

use std::borrow::Cow;
use std::sync::Arc;

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use rmcp::model::ClientCapabilities;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tribune_core::JsonObject;

use super::{MODERN, render};
use crate::identity::Caller;
use crate::response;
use crate::service::{Profile, Service, call};

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListParams<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Meta<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallParams<'a> {
    #[serde(rename = "_meta", borrow)]
    meta: Meta<'a>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    arguments: JsonObject,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow)]
    version: Cow<'a, str>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
    capabilities: &'a RawValue,
    /// Progress needs an event stream.
    #[serde(rename = "progressToken")]
    progress: Option<IgnoredAny>,
}

impl Meta<'_> {
    fn is_plain(&self) -> bool {
        let capabilities = self.capabilities.get();
        self.version == MODERN
            && self.progress.is_none()
            && (capabilities == "{}" || serde_json::from_str::<ClientCapabilities>(capabilities).is_ok())
    }
}

/// The response, or `None` for a request that rmcp has to handle.
pub async fn answer(
    service: &Arc<Service>,
    profile: &Profile,
    headers: &HeaderMap,
    caller: &Caller,
    body: &[u8],
) -> Option<Response> {
    let header = |name: &str| single(headers, name);
    if header("mcp-protocol-version")? != MODERN {
        return None;
    }
    let method = header("mcp-method")?;
    if method != "tools/list" && method != "tools/call" {
        return None;
    }
    let request: Envelope<'_> = serde_json::from_slice(body).ok()?;
    let id = request.id.get();
    let id_is_plain = id.starts_with('"') || id.bytes().all(|b| b.is_ascii_digit());
    if request.jsonrpc != "2.0" || request.method != method || !id_is_plain {
        return None;
    }
    let params = request.params.get();
    let state = profile.state_for(caller);
    if method == "tools/list" {
        if service.settings.conformance {
            return None;
        }
        let params: ListParams<'_> = serde_json::from_str(params).ok()?;
        if !params.meta.is_plain() {
            return None;
        }
        let visible = state.visible_to(&caller.principal);
        let list = visible.tools_list.get_or_init(|| render::tools_list(&visible.registry, &service.settings));
        let mut body = start(id, list.len());
        body.extend_from_slice(list);
        return Some(finish(body));
    }

    let params: CallParams<'_> = serde_json::from_str(params).ok()?;
    if !params.meta.is_plain() || header("mcp-name")? != params.name {
        return None;
    }
    let tool = state.registry.lookup(&params.name)?;
    let cx = service.call_context(caller);
    if service.sign_in_for("/mcp", profile, &**tool.tool(), &cx).is_some() {
        return None;
    }
    // When the client goes away this future is dropped, and with it the guard.
    let _cancel_on_disconnect = cx.cancel.clone().drop_guard();
    let outcome = call::run(service, &tool, params.arguments, &cx).await;
    let expected = outcome.as_ref().map_or(512, |output| output.json().len() * 5 / 2 + 256);
    let mut body = start(id, expected);
    render::write_call_result(&outcome, &mut body);
    Some(finish(body))
}

/// The value of a header that occurs exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn start(id: &str, result_bytes: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(result_bytes + id.len() + 48);
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(br#","result":"#);
    body
}

fn finish(mut body: Vec<u8>) -> Response {
    body.push(b'}');
    response::json(StatusCode::OK, body)
}
