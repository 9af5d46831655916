//! The response of a call: the text for models, the structured content, and the raw JSON.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tribune_core::Links;
use tribune_page::number::grouped;

/// How much of each a page shows; the command returns all of it.
const MAX_SHOWN_BYTES: usize = 200_000;
const MAX_CITED: usize = 20;

/// A response for the template.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    text: Part,
    structured: Option<Part>,
    raw: Part,
    is_error: bool,
    /// Title and address of the pages it cites.
    cited: Vec<(String, String)>,
    /// Size of the whole response.
    bytes: String,
    ms: String,
}

/// One rendering, cut if it is too long for a page.
#[derive(Debug, Serialize)]
struct Part {
    pieces: Vec<Piece>,
    is_cut: bool,
}

/// Text, which may be a link to a page of this server.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Piece {
    text: String,
    link: Option<String>,
}

/// The parts of a response that a page shows.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    result: Option<WireResult<'a>>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireResult<'a> {
    #[serde(default)]
    content: Vec<Content>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct WireError {
    code: i64,
    message: String,
}

impl Answer {
    pub(super) fn new(body: &str, took: Duration, links: &Links) -> Self {
        let wire: Option<Wire<'_>> = serde_json::from_str(body).ok();
        let (result, error) = wire.map_or((None, None), |wire| (wire.result, wire.error));
        let text = match (&result, &error) {
            (Some(result), _) => {
                let texts: Vec<&str> = result.content.iter().map(|item| item.text.as_str()).collect();
                texts.join("\n\n")
            }
            (None, Some(error)) => format!("{} (JSON-RPC error {})", error.message, error.code),
            (None, None) => body.to_owned(),
        };
        let structured = result
            .as_ref()
            .and_then(|result| result.structured_content)
            .map(RawValue::get);
        Self {
            text: Part::plain(&text),
            structured: structured.map(|json| Part::linked(&indented(json), links)),
            raw: Part::plain(body),
            is_error: result.is_none_or(|result| result.is_error),
            cited: structured.map(|json| cited(json, links)).unwrap_or_default(),
            bytes: grouped(&body.len().to_string()),
            ms: format!("{:.1}", took.as_secs_f64() * 1000.0),
        }
    }
}

impl Part {
    fn plain(text: &str) -> Self {
        let (text, is_cut) = cut(text);
        let text = text.to_owned();
        Self {
            pieces: vec![Piece { text, link: None }],
            is_cut,
        }
    }

    /// Turns addresses of pages of this server into links.
    fn linked(json: &str, links: &Links) -> Self {
        let (json, is_cut) = cut(json);
        let page = format!("\"{}/data/", links.base());
        let mut pieces = Vec::new();
        let mut rest = json;
        while let Some(quote) = rest.find(&page) {
            let (before, address) = rest.split_at(quote + 1);
            let Some(end) = address.find(['"', '\\']).filter(|end| address[*end..].starts_with('"')) else {
                let skipped = quote + page.len();
                pieces.push(Piece::text(&rest[..skipped]));
                rest = &rest[skipped..];
                continue;
            };
            pieces.push(Piece::text(before));
            let link = page_here(&address[..end], links);
            pieces.push(Piece {
                text: address[..end].to_owned(),
                link,
            });
            rest = &address[end..];
        }
        pieces.push(Piece::text(rest));
        Self { pieces, is_cut }
    }
}

impl Piece {
    fn text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            link: None,
        }
    }
}

/// The path of a page of this server; `None` for other addresses.
fn page_here(address: &str, links: &Links) -> Option<String> {
    let path = address.strip_prefix(links.base())?;
    path.starts_with("/data/")
        .then(|| format!("{}{path}", links.path_prefix()))
}

fn cut(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(MAX_SHOWN_BYTES);
    (&text[..end], end < text.len())
}

/// Every page of this server in a `url` field, once.
fn cited(json: &str, links: &Links) -> Vec<(String, String)> {
    let Ok(answer) = serde_json::from_str::<Value>(json) else {
        return Vec::new();
    };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut left = vec![&answer];
    while let Some(value) = left.pop() {
        match value {
            // The last one is visited next.
            Value::Array(items) => left.extend(items.iter().rev()),
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str);
                let page = text("url").and_then(|url| page_here(url, links));
                if let Some(page) = page
                    && found.len() < MAX_CITED
                    && found.iter().all(|(_, known)| *known != page)
                {
                    let title = text("title")
                        .or_else(|| text("id"))
                        .filter(|title| !title.trim().is_empty());
                    found.push((title.unwrap_or(&page).to_owned(), page));
                }
                left.extend(fields.values().rev());
            }
            _ => {}
        }
    }
    found
}

/// Indented JSON with every number and string as it was written: parsing it would round numbers.
pub(super) fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 3 / 2);
    let mut depth: usize = 0;
    let mut chars = json.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push(c);
                copy_string(&mut chars, &mut out);
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

/// Copies the rest of a string with its closing quote.
fn copy_string(chars: &mut impl Iterator<Item = char>, out: &mut String) {
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '\\' => out.extend(chars.next()),
            '"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn links() -> Links {
        Links::new("https://tribune.example.org/t")
    }

    fn answer(body: &str) -> Answer {
        Answer::new(body, Duration::from_micros(1_250), &links())
    }

    fn text(part: &Part) -> String {
        part.pieces.iter().map(|piece| piece.text.as_str()).collect()
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
        assert_eq!(text(&answer.text), "a <b>");
        assert_eq!(text(&answer.raw), body);
        assert!(!answer.is_error);
        assert_eq!(
            (answer.bytes.as_str(), answer.ms.as_str()),
            (body.len().to_string().as_str(), "1.2")
        );
        let structured = answer.structured.expect("structure");
        let linked: Vec<&str> = structured
            .pieces
            .iter()
            .filter_map(|piece| piece.link.as_deref())
            .collect();
        assert_eq!(linked, ["/t/data/notes:beans.md?passage=1#passage"; 2]);
        let first = (
            "Beans".to_owned(),
            "/t/data/notes:beans.md?passage=1#passage".to_owned(),
        );
        assert_eq!(answer.cited, [first]);
    }

    #[test]
    fn failures_are_marked() {
        let failed =
            answer(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#);
        assert!(failed.is_error && failed.structured.is_none());
        assert_eq!(text(&failed.text), "no");
        let refused = answer(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool"}}"#);
        assert!(refused.is_error);
        assert_eq!(text(&refused.text), "unknown tool (JSON-RPC error -32602)");
        let odd = answer("not JSON");
        assert!(odd.is_error);
        assert_eq!(text(&odd.text), "not JSON");
    }

    #[test]
    fn long_response_is_cut_between_characters() {
        let part = Part::plain(&"é".repeat(MAX_SHOWN_BYTES));
        assert!(part.is_cut);
        assert_eq!(text(&part).len(), MAX_SHOWN_BYTES);
        assert!(!Part::plain("short").is_cut);
        let open = format!("{{\"url\": \"{}/data/no end", links().base());
        assert_eq!(text(&Part::linked(&open, &links())), open);
    }

    #[test]
    fn numbers_are_not_rounded() {
        assert_eq!(
            indented(r#"{"a":0.10000000000000000001,"b":[],"c":{},"d":[1e400,"x:,{}\"\\"]}"#),
            "{\n  \"a\": 0.10000000000000000001,\n  \"b\": [],\n  \"c\": {},\n  \"d\": [\n    1e400,\n    \"x:,{}\\\"\\\\\"\n  ]\n}"
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn indentation_matches_serde_json(value in any_json()) {
            let expected = serde_json::to_string_pretty(&value).expect("JSON");
            prop_assert_eq!(&indented(&value.to_string()), &expected);
            prop_assert_eq!(indented(&expected), expected);
        }

        #[test]
        fn any_body_is_shown_unchanged(body in any::<String>()) {
            prop_assert_eq!(text(&answer(&body).raw), body.clone());
            prop_assert_eq!(text(&Part::linked(&body, &links())), body);
        }
    }
}
