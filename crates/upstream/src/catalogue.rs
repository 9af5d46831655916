//! What a server offers, read page by page and made fit for models.

use std::collections::HashSet;

use rmcp::model::{PaginatedRequestParams, Tool as Theirs, ToolAnnotations};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tribune_core::lint::MAX_DESCRIPTION_CHARS;
use tribune_core::{Hints, JsonObject};

use crate::naming;
use crate::spec::ServerSpec;
use crate::words::{clean, cut, line};

const MAX_TOOLS: usize = 200;
const MAX_PAGES: usize = 20;
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
const MAX_TITLE_CHARS: usize = 100;
const MAX_OWN_NAME_BYTES: usize = 256;

/// The tools of one server, in the order of their own names, and what could not be taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Catalogue {
    pub offers: Vec<Offer>,
    /// For the log: which tool, and why not.
    pub left_out: Vec<String>,
}

/// One tool, with everything said of it cleaned and cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Offer {
    /// What the server calls it.
    pub own_name: String,
    /// What we call it unless another has that name.
    pub name: String,
    pub title: String,
    pub description: String,
    pub input_schema: JsonObject,
    pub hints: Hints,
}

impl Catalogue {
    /// Asks for all pages, up to bounds that no honest server reaches.
    pub(crate) async fn read(peer: &Peer<RoleClient>, spec: &ServerSpec) -> Result<Self, ServiceError> {
        let only = spec.tools.as_deref();
        let is_wanted = |tool: &Theirs| only.is_none_or(|only| only.iter().any(|name| *name == tool.name));
        let mut tools = Vec::new();
        let mut cursor = None;
        let mut is_whole = false;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = peer.list_tools(Some(page)).await?;
            tools.extend(page.tools.into_iter().filter(is_wanted));
            // A page that leads to itself is the last.
            let next = page.next_cursor.filter(|next| cursor.as_ref() != Some(next));
            is_whole = next.is_none();
            if is_whole || tools.len() > MAX_TOOLS {
                break;
            }
            cursor = next;
        }
        let is_whole = is_whole && tools.len() <= MAX_TOOLS;
        tools.truncate(MAX_TOOLS);
        Ok(Self::of(&spec.name, tools, only.unwrap_or_default(), is_whole))
    }

    /// `wanted` are the own names that were asked for, if not all tools are.
    fn of(server: &str, tools: Vec<Theirs>, wanted: &[String], is_whole: bool) -> Self {
        let mut catalogue = Self::default();
        let mut seen = HashSet::new();
        for tool in tools {
            if !seen.insert(tool.name.to_string()) {
                continue;
            }
            match Offer::of(server, &tool) {
                Ok(offer) => catalogue.offers.push(offer),
                Err(why) => catalogue.left_out.push(format!("{}: {why}", line(&tool.name, 60))),
            }
        }
        for name in wanted.iter().filter(|&name| !seen.contains(name)) {
            let fault = format!("{}: the server does not list it", line(name, 60));
            catalogue.left_out.push(fault);
        }
        if !is_whole {
            let fault = format!("the list goes on: at most {MAX_TOOLS} tools on {MAX_PAGES} pages are read");
            catalogue.left_out.push(fault);
        }
        // Servers list in any order; numbers after equal names must not depend on it.
        catalogue.offers.sort_by(|a, b| a.own_name.cmp(&b.own_name));
        catalogue
    }
}

impl Offer {
    fn of(server: &str, tool: &Theirs) -> Result<Self, String> {
        if tool.name.is_empty() || tool.name.len() > MAX_OWN_NAME_BYTES {
            return Err(format!("its name has {} bytes", tool.name.len()));
        }
        let annotations = tool.annotations.clone().unwrap_or_default();
        let own_title = tool
            .title
            .as_deref()
            .or(annotations.title.as_deref())
            .unwrap_or_default();
        let title = first_filled([line(own_title, MAX_TITLE_CHARS), line(&tool.name, MAX_TITLE_CHARS)]);
        let title = if title.is_empty() { "Tool".to_owned() } else { title };
        let said = cut(
            clean(tool.description.as_deref().unwrap_or_default()).trim(),
            MAX_DESCRIPTION_CHARS,
        );
        Ok(Self {
            own_name: tool.name.to_string(),
            name: naming::fitted(server, &tool.name),
            description: first_filled([said, title.clone()]),
            title,
            input_schema: usable(&tool.input_schema)?,
            hints: hints(&annotations),
        })
    }
}

fn first_filled(texts: [String; 2]) -> String {
    let [first, second] = texts;
    if first.is_empty() { second } else { first }
}

/// MCP's defaults where the server is silent. A tool that only reads destroys nothing, whatever else it says.
fn hints(said: &ToolAnnotations) -> Hints {
    let read_only = said.read_only_hint.unwrap_or(false);
    Hints {
        read_only,
        destructive: !read_only && said.destructive_hint.unwrap_or(true),
        idempotent: said.idempotent_hint.unwrap_or(false),
        open_world: said.open_world_hint.unwrap_or(true),
    }
}

/// The schema as given, if it is one that arguments can be checked against.
fn usable(schema: &JsonObject) -> Result<JsonObject, String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("its input schema is not of the type `object`".to_owned());
    }
    let size = serde_json::to_string(schema).map_or(usize::MAX, |json| json.len());
    if size > MAX_SCHEMA_BYTES {
        return Err(format!(
            "its input schema has {size} bytes; {MAX_SCHEMA_BYTES} are allowed"
        ));
    }
    let mut schema = Value::Object(schema.clone());
    clean_prose(&mut schema);
    // Offline: a reference to another machine is a fault, never a request.
    jsonschema::draft202012::options()
        .offline()
        .build(&schema)
        .map_err(|e| format!("its input schema cannot be used: {}", line(&e.to_string(), 200)))?;
    match schema {
        Value::Object(schema) => Ok(schema),
        _ => Err("its input schema is not an object".to_owned()),
    }
}

/// What a schema says to its reader is cleaned; what it demands is left alone.
fn clean_prose(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(prose) if key == "description" || key == "title" => *prose = clean(prose),
                    value => clean_prose(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean_prose),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn theirs(tool: Value) -> Theirs {
        serde_json::from_value(tool).expect("a tool")
    }

    fn named(name: &str) -> Theirs {
        theirs(json!({"name": name, "inputSchema": {"type": "object"}}))
    }

    fn one(tool: Value) -> Result<Offer, String> {
        Offer::of("x", &theirs(tool))
    }

    #[test]
    fn silence_means_the_defaults_of_the_protocol() {
        let offer = Offer::of("x", &named("do_it")).expect("an offer");
        let worst = Hints {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        };
        assert_eq!(offer.hints, worst);
        assert_eq!((offer.title.as_str(), offer.description.as_str()), ("do_it", "do_it"));
    }

    #[test]
    fn what_is_said_is_kept_cleaned_and_cut() {
        let offer = one(json!({
            "name": "t", "title": "A\u{1b}[1m\nB", "description": format!("\u{200b}{}", "d".repeat(2000)),
            "inputSchema": {"type": "object", "properties": {"a": {"enum": ["\u{7}"], "description": "x\u{7}y"}}},
            "annotations": {"readOnlyHint": true, "destructiveHint": true, "openWorldHint": false},
        }))
        .expect("an offer");
        assert_eq!(offer.title, "A[1m B");
        assert_eq!(offer.description.chars().count(), 1000);
        assert_eq!(
            offer.input_schema["properties"]["a"],
            json!({"enum": ["\u{7}"], "description": "xy"})
        );
        let reads = Hints {
            idempotent: false,
            ..Hints::READ
        };
        assert_eq!(offer.hints, reads);
    }

    #[test]
    fn schemas_that_cannot_be_used_leave_their_tool_out() {
        let cases = [
            (json!({"type": "array"}), "not of the type"),
            (json!({}), "not of the type"),
            (json!({"type": "object", "x": "y".repeat(MAX_SCHEMA_BYTES)}), "bytes"),
            (
                json!({"type": "object", "properties": {"a": {"type": 7}}}),
                "cannot be used",
            ),
            (
                json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/s"}}}),
                "cannot be used",
            ),
        ];
        for (schema, why) in cases {
            let fault = one(json!({"name": "t", "inputSchema": schema})).expect_err(why);
            assert!(fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn the_order_is_ours() {
        let tools = vec![named("b"), named("a"), named("b"), named("c")];
        let catalogue = Catalogue::of("x", tools, &["a".to_owned(), "z".to_owned()], false);
        let names: Vec<&str> = catalogue.offers.iter().map(|offer| offer.own_name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let faults = [
            "z: the server does not list it",
            "the list goes on: at most 200 tools on 20 pages are read",
        ];
        assert_eq!(catalogue.left_out, faults);
    }
}
