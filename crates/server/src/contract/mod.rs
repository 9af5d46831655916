//! The tools `search` and `fetch` over all sources, exactly as ChatGPT and Claude require them.

mod describe;
mod fetch;
mod search;

pub use fetch::{FetchTool, FetchedDocument, fetch_document};
pub use search::SearchTool;

use serde_json::Value;
use tribune_core::JsonObject;

/// For schemas written with `json!`.
fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}

/// At most `max` characters of `text`, with an ellipsis where it was cut.
fn clip(text: &str, max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    match text.char_indices().nth(max) {
        None => text.into(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()).into(),
    }
}

pub(crate) use describe::{overview, thousands};
