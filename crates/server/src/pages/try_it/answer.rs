//! The response of a call: the text for models, the structured content, and the raw JSON.

use std::time::Duration;

use indexmap::IndexMap;
use minijinja::{Value as Shown, context};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tribune_core::Links;
use tribune_page::number::grouped;

/// How much of each a page shows; the command returns all of it.
const MAX_SHOWN_BYTES: usize = 200_000;
/// As many as a search returns at most.
const MAX_CITED: usize = 50;

/// The parts of a response that a page shows.
#[derive(Default, Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    result: Option<WireResult<'a>>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireResult<'a> {
    #[serde(default)]
    content: Vec<Value>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
}

/// A response for the template.
pub(super) fn shown(body: &str, took: Duration, links: &Links) -> Shown {
    let Wire { result, error } = serde_json::from_str(body).unwrap_or_default();
    let text = match (&result, error["message"].as_str()) {
        (Some(result), _) => {
            let texts = result.content.iter().filter_map(|item| item["text"].as_str());
            texts.collect::<Vec<_>>().join("\n\n")
        }
        (None, Some(message)) => format!("{message} (JSON-RPC error {})", error["code"]),
        (None, None) => body.to_owned(),
    };
    let structured = result.as_ref().and_then(|result| result.structured_content);
    context! {
        text => part(&text),
        structured => structured.map(|json| part(&indented(json))),
        raw => part(body),
        is_error => result.as_ref().is_none_or(|result| result.is_error),
        cited => structured.map(|json| cited(json, links)),
        bytes => grouped(&body.len().to_string()),
        ms => format!("{:.1}", took.as_secs_f64() * 1000.0),
    }
}

/// Text, cut if it is too long for a page.
fn part(text: &str) -> Shown {
    let end = text.floor_char_boundary(MAX_SHOWN_BYTES);
    context! { text => &text[..end], is_cut => end < text.len() }
}

/// Title and page of every document of this server in a `url` field, once.
fn cited(json: &RawValue, links: &Links) -> Vec<(String, String)> {
    let mut found = IndexMap::new();
    collect_cited(&serde_json::from_str(json.get()).unwrap_or_default(), links, &mut found);
    let found = found.into_iter().take(MAX_CITED);
    found.map(|(page, title)| (title, page)).collect()
}

fn collect_cited(value: &Value, links: &Links, found: &mut IndexMap<String, String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_cited(item, links, found)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name)?.as_str().filter(|text| !text.trim().is_empty());
            let path = text("url").and_then(|url| url.strip_prefix(links.base()));
            if let Some(path) = path.filter(|path| path.starts_with("/data/")) {
                let page = format!("{}{path}", links.path_prefix());
                let title = text("title").or_else(|| text("id")).unwrap_or(&page).to_owned();
                found.entry(page).or_insert(title);
            }
            fields.values().for_each(|field| collect_cited(field, links, found));
        }
        _ => {}
    }
}

fn indented(json: &RawValue) -> String {
    serde_json::to_string_pretty(&Exact(json)).unwrap_or_default()
}

/// JSON with every number as it was written: parsing would round numbers.
struct Exact<'a>(&'a RawValue);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = self.0.get();
        if let Ok(fields) = serde_json::from_str::<IndexMap<String, &RawValue>>(json) {
            serializer.collect_map(fields.into_iter().map(|(name, value)| (name, Exact(value))))
        } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) {
            serializer.collect_seq(items.into_iter().map(Exact))
        } else {
            self.0.serialize(serializer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn answer(body: &str) -> Value {
        let links = Links::new("https://tribune.example.org/t");
        serde_json::to_value(shown(body, Duration::from_micros(1_250), &links)).expect("JSON")
    }

    #[test]
    fn response_is_shown_three_ways() {
        let body = json!({"jsonrpc": "2.0", "id": 1, "result": {
            "content": [{"type": "text", "text": "a <b>"}],
            "structuredContent": {"results": [
                {"title": "Beans", "url": "https://tribune.example.org/t/data/notes:beans.md?passage=1#passage"},
                {"title": "Again", "url": "https://tribune.example.org/t/data/notes:beans.md?passage=1#passage"},
                {"title": "Elsewhere", "url": "https://example.org/data/x"},
                {"title": "Script", "url": "javascript:alert(1)"},
            ]},
            "isError": false,
        }})
        .to_string();
        let answer = answer(&body);
        assert_eq!(answer["text"]["text"], "a <b>");
        assert_eq!(answer["raw"]["text"], body);
        assert_eq!(answer["is_error"], false);
        assert_eq!((&answer["bytes"], &answer["ms"]), (&json!(body.len().to_string()), &json!("1.2")));
        let structured = answer["structured"]["text"].as_str().expect("structure");
        assert!(structured.starts_with("{\n  \"results\": ["), "{structured}");
        assert_eq!(answer["cited"], json!([["Beans", "/t/data/notes:beans.md?passage=1#passage"]]));
    }

    #[test]
    fn failures_are_marked() {
        let failed =
            answer(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#);
        assert_eq!((&failed["is_error"], &failed["structured"]), (&json!(true), &Value::Null));
        assert_eq!(failed["text"]["text"], "no");
        let refused = answer(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool"}}"#);
        assert_eq!(refused["is_error"], true);
        assert_eq!(refused["text"]["text"], "unknown tool (JSON-RPC error -32602)");
        let odd = answer("not JSON");
        assert_eq!((&odd["is_error"], &odd["text"]["text"]), (&json!(true), &json!("not JSON")));
    }

    #[test]
    fn long_response_is_cut_between_characters() {
        let long = answer(&"é".repeat(MAX_SHOWN_BYTES));
        assert_eq!(long["raw"]["is_cut"], true);
        assert_eq!(long["raw"]["text"].as_str().map(str::len), Some(MAX_SHOWN_BYTES));
        assert_eq!(answer("short")["raw"]["is_cut"], false);
    }

    #[test]
    fn numbers_are_not_rounded() {
        let json =
            RawValue::from_string(r#"{"a":0.10000000000000000001,"b":[],"c":{},"d":[1e400,"x:,{}\"\\"]}"#.to_owned());
        assert_eq!(
            indented(&json.expect("JSON")),
            "{\n  \"a\": 0.10000000000000000001,\n  \"b\": [],\n  \"c\": {},\n  \"d\": [\n    1e400,\n    \"x:,{}\\\"\\\\\"\n  ]\n}"
        );
    }

    proptest! {
        #[test]
        fn any_body_is_shown_unchanged(body in any::<String>()) {
            let shown = answer(&body);
            prop_assert_eq!(shown["raw"]["text"].as_str(), Some(body.as_str()));
        }
    }
}
