//! A server's tool list: read page by page, checked, sanitised.

use std::collections::HashSet;

use rmcp::model::{PaginatedRequestParams, Tool as RemoteTool, ToolAnnotations};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tribune_core::{Hints, JsonObject};
use tribune_registry::lint::MAX_DESCRIPTION_CHARS;

use crate::naming;
use crate::sanitize::{clean, single_line, truncate};
use crate::spec::ServerSpec;

const MAX_TOOLS: usize = 200;
const MAX_PAGES: usize = 20;
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
const MAX_TITLE_CHARS: usize = 100;
const MAX_REMOTE_NAME_BYTES: usize = 256;

/// The usable tools of one server, sorted by remote name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Catalogue {
    pub tools: Vec<ToolListing>,
    /// For the log: which tools were skipped, and why.
    pub rejected: Vec<String>,
}

/// One tool, with its texts cleaned and truncated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolListing {
    /// The server's own name for it.
    pub remote_name: String,
    /// Our name for it, unless another tool has that name.
    pub name: String,
    pub title: String,
    pub description: String,
    pub input_schema: JsonObject,
    pub hints: Hints,
}

impl Catalogue {
    /// Reads all pages, up to `MAX_PAGES` and `MAX_TOOLS`.
    pub(crate) async fn read(peer: &Peer<RoleClient>, spec: &ServerSpec) -> Result<Self, ServiceError> {
        let only = spec.tools.as_deref();
        let is_wanted = |tool: &RemoteTool| only.is_none_or(|only| only.iter().any(|name| *name == tool.name));
        let mut tools = Vec::new();
        let mut cursor = None;
        let mut is_complete = false;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = peer.list_tools(Some(page)).await?;
            tools.extend(page.tools.into_iter().filter(is_wanted));
            // A cursor that repeats would loop forever.
            let next = page.next_cursor.filter(|next| cursor.as_ref() != Some(next));
            is_complete = next.is_none();
            if is_complete || tools.len() > MAX_TOOLS {
                break;
            }
            cursor = next;
        }
        let is_complete = is_complete && tools.len() <= MAX_TOOLS;
        tools.truncate(MAX_TOOLS);
        Ok(Self::new(&spec.name, tools, only.unwrap_or_default(), is_complete))
    }

    /// `wanted` lists the configured remote names, or nothing for all tools.
    fn new(server: &str, tools: Vec<RemoteTool>, wanted: &[String], is_complete: bool) -> Self {
        let mut catalogue = Self::default();
        let mut seen = HashSet::new();
        for tool in tools {
            if !seen.insert(tool.name.to_string()) {
                continue;
            }
            match ToolListing::new(server, &tool) {
                Ok(listing) => catalogue.tools.push(listing),
                Err(why) => catalogue.rejected.push(format!("{}: {why}", single_line(&tool.name, 60))),
            }
        }
        for name in wanted.iter().filter(|&name| !seen.contains(name)) {
            let problem = format!("{}: the server does not list it", single_line(name, 60));
            catalogue.rejected.push(problem);
        }
        if !is_complete {
            let problem = format!("the list is longer: at most {MAX_TOOLS} tools on {MAX_PAGES} pages are read");
            catalogue.rejected.push(problem);
        }
        // Numbers appended to equal names must not depend on the order in which a server lists its tools.
        catalogue.tools.sort_by(|a, b| a.remote_name.cmp(&b.remote_name));
        catalogue
    }
}

impl ToolListing {
    fn new(server: &str, tool: &RemoteTool) -> Result<Self, String> {
        if tool.name.is_empty() || tool.name.len() > MAX_REMOTE_NAME_BYTES {
            return Err(format!("its name has {} bytes", tool.name.len()));
        }
        let annotations = tool.annotations.clone().unwrap_or_default();
        let remote_title = tool.title.as_deref().or(annotations.title.as_deref()).unwrap_or_default();
        let titles = [remote_title, &tool.name, "Tool"].map(|title| single_line(title, MAX_TITLE_CHARS));
        let title = titles.into_iter().find(|title| !title.is_empty()).unwrap_or_default();
        let description =
            truncate(clean(tool.description.as_deref().unwrap_or_default()).trim(), MAX_DESCRIPTION_CHARS);
        Ok(Self {
            remote_name: tool.name.to_string(),
            name: naming::prefixed(server, &tool.name),
            description: if description.is_empty() { title.clone() } else { description },
            title,
            input_schema: checked_schema(&tool.input_schema)?,
            hints: hints(&annotations),
        })
    }
}

/// Missing hints get MCP's defaults. A read-only tool is never destructive, whatever its annotation says.
fn hints(annotations: &ToolAnnotations) -> Hints {
    let read_only = annotations.read_only_hint.unwrap_or(false);
    Hints {
        read_only,
        destructive: !read_only && annotations.destructive_hint.unwrap_or(true),
        idempotent: annotations.idempotent_hint.unwrap_or(false),
        open_world: annotations.open_world_hint.unwrap_or(true),
    }
}

/// The schema with cleaned texts, or why arguments cannot be checked against it.
fn checked_schema(schema: &JsonObject) -> Result<JsonObject, String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("its input schema is not of the type `object`".to_owned());
    }
    let size = serde_json::to_string(schema).map_or(usize::MAX, |json| json.len());
    if size > MAX_SCHEMA_BYTES {
        return Err(format!("its input schema has {size} bytes; {MAX_SCHEMA_BYTES} are allowed"));
    }
    // Offline, so that a reference to another host is an error and never a request.
    let checked = jsonschema::draft202012::options().offline().build(&Value::Object(schema.clone()));
    checked.map_err(|error| format!("its input schema cannot be used: {}", single_line(&error.to_string(), 200)))?;
    let mut schema = schema.clone();
    clean_texts(&mut schema);
    Ok(schema)
}

/// Cleans titles and descriptions only: constraints must stay as they are.
fn clean_texts(schema: &mut JsonObject) {
    for (key, value) in schema {
        match value {
            Value::String(text) if key == "description" || key == "title" => *text = clean(text),
            value => clean_texts_within(value),
        }
    }
}

fn clean_texts_within(value: &mut Value) {
    match value {
        Value::Object(object) => clean_texts(object),
        Value::Array(items) => items.iter_mut().for_each(clean_texts_within),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn remote(tool: Value) -> RemoteTool {
        serde_json::from_value(tool).expect("a tool")
    }

    fn named(name: &str) -> RemoteTool {
        remote(json!({"name": name, "inputSchema": {"type": "object"}}))
    }

    fn listing(tool: Value) -> Result<ToolListing, String> {
        ToolListing::new("x", &remote(tool))
    }

    #[test]
    fn missing_annotations_get_protocol_defaults() {
        let listing = ToolListing::new("x", &named("do_it")).expect("an listing");
        let worst = Hints { read_only: false, destructive: true, idempotent: false, open_world: true };
        assert_eq!(listing.hints, worst);
        assert_eq!((listing.title.as_str(), listing.description.as_str()), ("do_it", "do_it"));
    }

    #[test]
    fn texts_are_cleaned_and_truncated() {
        let listing = listing(json!({
            "name": "t", "title": "A\u{1b}[1m\nB", "description": format!("\u{200b}{}", "d".repeat(2000)),
            "inputSchema": {"type": "object", "properties": {"a": {"enum": ["\u{7}"], "description": "x\u{7}y"}}},
            "annotations": {"readOnlyHint": true, "destructiveHint": true, "openWorldHint": false},
        }))
        .expect("an listing");
        assert_eq!(listing.title, "A[1m B");
        assert_eq!(listing.description.chars().count(), 1000);
        assert_eq!(listing.input_schema["properties"]["a"], json!({"enum": ["\u{7}"], "description": "xy"}));
        let reads = Hints { idempotent: false, ..Hints::READ };
        assert_eq!(listing.hints, reads);
    }

    #[test]
    fn tools_with_unusable_schemas_are_skipped() {
        let cases = [
            (json!({"type": "array"}), "not of the type"),
            (json!({}), "not of the type"),
            (json!({"type": "object", "x": "y".repeat(MAX_SCHEMA_BYTES)}), "bytes"),
            (json!({"type": "object", "properties": {"a": {"type": 7}}}), "cannot be used"),
            (json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/s"}}}), "cannot be used"),
        ];
        for (schema, why) in cases {
            let problem = listing(json!({"name": "t", "inputSchema": schema})).expect_err(why);
            assert!(problem.contains(why), "{problem}");
        }
    }

    #[test]
    fn tools_are_sorted_and_problems_reported() {
        let tools = vec![named("b"), named("a"), named("b"), named("c")];
        let catalogue = Catalogue::new("x", tools, &["a".to_owned(), "z".to_owned()], false);
        let names: Vec<&str> = catalogue.tools.iter().map(|listing| listing.remote_name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let problems = ["z: the server does not list it", "the list is longer: at most 200 tools on 20 pages are read"];
        assert_eq!(catalogue.rejected, problems);
    }
}
