//! The result of a tool call as one JSON object of bounded size.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use tribune_core::{Error, Result, ToolOutput};

use crate::sanitize::{clean, single_line, truncate};

const MAX_ANSWER_BYTES: usize = 1_000_000;
const MAX_ERROR_CHARS: usize = 2_000;
const TRUNCATED: &str = "\n[cut here: the answer was longer]";

/// The structured content if there is any, else the text. A failed call is an error with the server's message.
pub(crate) fn read(server: &str, tool: &str, result: CallToolResult) -> Result<ToolOutput> {
    if result.is_error == Some(true) {
        let message = truncate(text(&result.content).trim(), MAX_ERROR_CHARS);
        let reason = if message.is_empty() { "it did not say why" } else { &message };
        return Err(Error::invalid_argument(format!("`{tool}` of server `{server}` failed: {reason}")));
    }
    if let Some(structure @ Value::Object(_)) = &result.structured_content {
        let json = structure.to_string();
        if json.len() <= MAX_ANSWER_BYTES {
            return Ok(ToolOutput::from_json(json, 1));
        }
        return Ok(as_text(&json));
    }
    Ok(as_text(&text(&result.content)))
}

fn as_text(text: &str) -> ToolOutput {
    let object = serde_json::json!({ "text": fit(text) });
    ToolOutput::from_json(object.to_string(), 1)
}

/// As much of the text as fits into `MAX_ANSWER_BYTES` with JSON escapes.
fn fit(text: &str) -> String {
    let room = MAX_ANSWER_BYTES - TRUNCATED.len() - 64;
    let mut used = 0_usize;
    let end = text.char_indices().find_map(|(at, c)| {
        used += if matches!(c, '"' | '\\' | '\n' | '\t') { 2 } else { c.len_utf8() };
        (used > room).then_some(at)
    });
    match end {
        Some(end) => format!("{}{TRUNCATED}", &text[..end]),
        None => text.to_owned(),
    }
}

/// All text items; other content is only named.
fn text(content: &[ContentBlock]) -> String {
    let items: Vec<String> = content.iter().map(item).collect();
    items.join("\n")
}

fn item(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => clean(&text.text),
        ContentBlock::Image(image) => placeholder("image", Some(&image.mime_type), decoded_len(&image.data)),
        ContentBlock::Audio(audio) => placeholder("audio", Some(&audio.mime_type), decoded_len(&audio.data)),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => clean(text),
            ResourceContents::BlobResourceContents { blob, mime_type, .. } => {
                placeholder("resource", mime_type.as_deref(), decoded_len(blob))
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[link, {}]", single_line(&link.uri, 500)),
        _ => "[content that is not text]".to_owned(),
    }
}

fn placeholder(kind: &str, mime: Option<&str>, bytes: usize) -> String {
    let mime = mime.map(|mime| format!("{}, ", single_line(mime, 60))).unwrap_or_default();
    format!("[{kind}, {mime}{}]", size(bytes))
}

/// How many bytes a base64 text decodes to.
fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use tribune_core::ErrorKind;

    fn answer(result: Value) -> Result<ToolOutput> {
        read("x", "t", serde_json::from_value(result).expect("a result"))
    }

    fn json_of(result: Value) -> Value {
        serde_json::from_str(answer(result).expect("an answer").json()).expect("JSON")
    }

    #[test]
    fn structured_content_is_returned_unchanged() {
        let result = json!({"content": [{"type": "text", "text": "{}"}], "structuredContent": {"b": 1, "a": [2]}});
        assert_eq!(answer(result).expect("an answer").json(), r#"{"b":1,"a":[2]}"#);
    }

    #[test]
    fn other_content_becomes_text() {
        let result = json!({"content": [
            {"type": "text", "text": "one\u{1b}"},
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "audio", "data": "A".repeat(16_000), "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a:b", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
        ], "structuredContent": [1]});
        let text = "one\n[image, image/png, 8 bytes]\n[audio, audio/wav, 12 kB]\ninside\n[resource, 3 bytes]\n[link, file:///x]";
        assert_eq!(json_of(result), json!({ "text": text }));
        assert_eq!(json_of(json!({"content": []})), json!({"text": ""}));
    }

    #[test]
    fn failure_keeps_the_server_message() {
        let failed = json!({"content": [{"type": "text", "text": format!("no\u{7} such {}", "x".repeat(3_000))}], "isError": true});
        let error = answer(failed).expect_err("a failure");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().starts_with("`t` of server `x` failed: no such xxx"), "{error}");
        assert!(error.message().chars().count() <= 2_100);
        let silent = answer(json!({"content": [], "isError": true})).expect_err("a failure");
        assert!(silent.message().ends_with("it did not say why"));
    }

    #[test]
    fn huge_answers_are_truncated() {
        for huge in [
            json!({"content": [{"type": "text", "text": "\"".repeat(2_000_000)}]}),
            json!({"content": [], "structuredContent": {"a": "b".repeat(2_000_000)}}),
        ] {
            let output = answer(huge).expect("an answer");
            assert!(output.json().len() <= MAX_ANSWER_BYTES, "{}", output.json().len());
            assert!(output.json().len() > MAX_ANSWER_BYTES - 1_000);
            assert!(output.json().contains("cut here"));
        }
    }

    proptest! {
        #[test]
        fn base64_sizes_are_exact(bytes in 0_usize..1000) {
            let full = bytes / 3;
            let base64 = format!("{}{}", "AAAA".repeat(full), ["", "AA==", "AAA="][bytes % 3]);
            prop_assert_eq!(decoded_len(&base64), bytes);
        }
    }
}
