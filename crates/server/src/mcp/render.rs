//! Tools and results on the wire.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::HeaderValue;
use rmcp::model::{
    CacheScope, CallToolResult, ContentBlock, Icon, Implementation, ListToolsResult, MetaObject, Tool, ToolAnnotations,
};
use serde_json::{Value, json};
use tribune_core::{Result, ToolOutput, ToolSpec};
use tribune_registry::Registry;

use super::LIST_TTL_MS;
use crate::settings::Settings;

const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

pub fn implementation() -> Implementation {
    let mut implementation = Implementation::new("tribune", env!("CARGO_PKG_VERSION"));
    implementation.title = Some("Tribune".to_owned());
    implementation
}

/// `_meta` with the name of this server, for results of the modern era.
pub fn server_meta() -> MetaObject {
    let mut meta = MetaObject::default();
    meta.insert(SERVER_INFO_KEY.to_owned(), SERVER_INFO.clone());
    meta
}

static SERVER_INFO: LazyLock<Value> = LazyLock::new(|| json!(implementation()));

/// The end of every modern result.
static SERVER_META_JSON: LazyLock<String> =
    LazyLock::new(|| format!(r#""_meta":{}"#, json!({SERVER_INFO_KEY: *SERVER_INFO})));

/// Where hosts read who may call a tool, besides at its top level.
const SECURITY: &str = "securitySchemes";
/// Where hosts read how to get a token for a call that was refused.
const CHALLENGE: &str = "mcp/www_authenticate";

/// Who may call the tools of a server on which hosts can get tokens by themselves.
fn security(tool: &dyn tribune_core::Tool, auth_required: bool) -> Value {
    let token = json!({"type": "oauth2", "scopes": [tool.scope().as_str()]});
    match auth_required || tool.needs_user() {
        true => json!([token]),
        false => json!([{"type": "noauth"}, token]),
    }
}

/// Copies what hosts need to know for a sign-in to the top level of each tool, where the protocol has no place for it.
pub fn add_security(result: &mut Value) {
    let tools = result.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten() {
        let security = tool.get("_meta").and_then(|meta| meta.get(SECURITY)).cloned();
        if let (Some(security), Some(tool)) = (security, tool.as_object_mut()) {
            tool.insert(SECURITY.to_owned(), security);
        }
    }
}

fn tool(spec: &ToolSpec) -> Tool {
    let mut tool = Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(spec.input_schema.clone()));
    tool.title = Some(spec.title.clone());
    tool.output_schema = Some(Arc::new(spec.output_schema.clone()));
    tool.annotations = Some(ToolAnnotations::from_raw(
        Some(spec.title.clone()),
        Some(spec.hints.read_only),
        Some(spec.hints.destructive),
        Some(spec.hints.idempotent),
        Some(spec.hints.open_world),
    ));
    tool.icons = spec.icon.as_ref().map(|address| {
        let mut icon = Icon::new(address.clone());
        if address.starts_with("data:image/svg+xml") {
            icon = icon.with_mime_type("image/svg+xml");
        }
        vec![icon]
    });
    tool
}

/// Who may be shown a cached list.
pub fn cache_scope(registry: &Registry) -> CacheScope {
    if registry.depends_on_caller { CacheScope::Private } else { CacheScope::Public }
}

pub fn list_tools(registry: &Registry, modern: bool, settings: &Settings) -> ListToolsResult {
    let listed = registry.tools().map(|offered| {
        let mut tool = tool(offered.spec());
        if settings.offers_oauth {
            let mut meta = MetaObject::default();
            meta.insert(SECURITY.to_owned(), security(&**offered, settings.auth_required));
            tool.meta = Some(meta);
        }
        tool
    });
    let mut list = ListToolsResult::with_all_items(listed.collect());
    list.ttl_ms = Some(LIST_TTL_MS);
    list.cache_scope = Some(cache_scope(registry));
    list.meta = modern.then(server_meta);
    list
}

/// The result of a modern `tools/list`, serialised.
pub fn tools_list(registry: &Registry, settings: &Settings) -> Bytes {
    let mut list = serde_json::to_value(list_tools(registry, true, settings)).unwrap_or_default();
    add_security(&mut list);
    serde_json::to_vec(&list).map_or_else(
        // Strings, numbers and maps with string keys always serialise.
        |_| Bytes::from_static(br#"{"resultType":"complete","tools":[]}"#),
        Bytes::from,
    )
}

/// The outcome of a call for rmcp: a result, or an error that the model can read.
pub fn call_result(outcome: &Result<ToolOutput>, modern: bool, challenge: Option<&HeaderValue>) -> CallToolResult {
    let mut result = match outcome {
        Ok(output) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(output.text())]);
            result.structured_content = serde_json::from_str(output.json()).ok();
            result
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.message())]),
    };
    result.meta = modern.then(server_meta);
    if let Some(challenge) = challenge.and_then(|challenge| challenge.to_str().ok()) {
        let meta = result.meta.get_or_insert_default();
        meta.insert(CHALLENGE.to_owned(), json!([challenge]));
    }
    result
}

/// The same as bytes: the result of a modern `tools/call`. The JSON is copied as it is, and once more as a string.
pub fn write_call_result(outcome: &Result<ToolOutput>, into: &mut Vec<u8>) {
    into.extend_from_slice(br#"{"resultType":"complete","content":[{"type":"text","text":"#);
    match outcome {
        Ok(output) => {
            match output.own_text() {
                Some(text) => write_string(text, into),
                None => write_json_as_string(output.json(), into),
            }
            into.extend_from_slice(br#"}],"structuredContent":"#);
            into.extend_from_slice(output.json().as_bytes());
            into.extend_from_slice(br#","isError":false,"#);
        }
        Err(error) => {
            write_string(error.message(), into);
            into.extend_from_slice(br#"}],"isError":true,"#);
        }
    }
    into.extend_from_slice(SERVER_META_JSON.as_bytes());
    into.push(b'}');
}

/// JSON as a JSON string. Compact JSON has no control characters: only quotes and backslashes need escaping.
fn write_json_as_string(json: &str, into: &mut Vec<u8>) {
    let bytes = json.as_bytes();
    into.push(b'"');
    let mut copied = 0;
    for at in memchr::memchr2_iter(b'"', b'\\', bytes) {
        into.extend_from_slice(&bytes[copied..at]);
        into.push(b'\\');
        copied = at;
    }
    into.extend_from_slice(&bytes[copied..]);
    into.push(b'"');
}

fn write_string(text: &str, into: &mut Vec<u8>) {
    // Writing a string into memory cannot fail.
    drop(serde_json::to_writer(into, text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn json_as_string_round_trips(text in "\\PC{0,80}|[\\x00-\\x7f]{0,60}") {
            let json = json!({"text": text, "quote\"": ["\\", "\n"]}).to_string();
            let mut written = Vec::new();
            write_json_as_string(&json, &mut written);
            prop_assert_eq!(serde_json::from_slice::<String>(&written).expect("a JSON string"), json);
        }

        #[test]
        fn both_writers_agree(text in "\\PC{0,80}|[\\x00-\\x7f]{0,60}", fails: bool) {
            let outcome = if fails {
                Err(tribune_core::Error::not_found(text))
            } else {
                ToolOutput::structured(&json!({"results": [{"text": text}]}), 1)
            };
            let mut written = Vec::new();
            write_call_result(&outcome, &mut written);
            let ours: Value = serde_json::from_slice(&written).expect("JSON");
            let theirs = serde_json::to_value(call_result(&outcome, true, None)).expect("JSON");
            prop_assert_eq!(ours, theirs);
        }
    }
}
