//! JSON and YAML: lines of names and values, which words can be found in.

use serde_json::Value;

use super::{Found, decoded};
use crate::extracted::{Extracted, Problem, Reason};

/// Deeper values are written as JSON.
const MAX_DEPTH: usize = 16;
const TITLES: [&str; 4] = ["title", "name", "subject", "label"];

pub(super) fn json(bytes: &[u8]) -> Found {
    read(serde_json::from_slice(bytes).map_err(|error| error.to_string()))
}

/// All documents of a stream.
pub(super) fn yaml(bytes: &[u8]) -> Found {
    let text = decoded(bytes)?;
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
    let values = documents.map_err(|error| error.without_snippet().to_string());
    read(values.map(|mut values| match values.len() {
        1 => values.remove(0),
        _ => Value::Array(values),
    }))
}

fn read(value: Result<Value, String>) -> Found {
    let value = value.map_err(|error| Problem::new(Reason::Damaged, error))?;
    if let Some(conversation) = conversation(&value) {
        return Ok(conversation);
    }
    let title = TITLES.iter().find_map(|name| value.get(name)?.as_str()).map(str::to_owned);
    let mut text = String::new();
    write(&mut text, &value, 0);
    Ok(Extracted { title, text, ..Extracted::default() })
}

/// A day of a channel as Slack exports it.
fn conversation(value: &Value) -> Option<Extracted> {
    let messages = value.as_array().filter(|messages| !messages.is_empty())?;
    let line = |message: &Value| {
        message.get("ts")?;
        let text = message.get("text")?.as_str()?;
        let name = |at: &str| message.pointer(at).and_then(Value::as_str);
        let author = name("/user_profile/real_name").or_else(|| name("/username")).or_else(|| name("/user"))?;
        Some(format!("{author}: {text}\n"))
    };
    let lines: Option<Vec<String>> = messages.iter().map(line).collect();
    Some(Extracted { text: lines?.concat(), ..Extracted::default() })
}

fn write(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let mut entry = |name: &str, value: &Value| match value {
        Value::Object(_) | Value::Array(_) if depth < MAX_DEPTH => {
            text.push_str(&format!("{indent}{name}\n"));
            write(text, value, depth + 1);
        }
        Value::String(value) => text.push_str(&format!("{indent}{name} {}\n", value.trim())),
        value => text.push_str(&format!("{indent}{name} {value}\n")),
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| entry(&format!("{name}:"), value)),
        Value::Array(items) => items.iter().for_each(|value| entry("-", value)),
        value => entry("", value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_lines() {
        let found = json(br#"{"name": "pump", "parts": [{"id": 1, "of": "brass"}, "seal"], "spare": null}"#);
        let found = found.expect("JSON");
        assert_eq!(found.title.as_deref(), Some("pump"));
        assert_eq!(found.text, "name: pump\nparts:\n  -\n    id: 1\n    of: brass\n  - seal\nspare: null\n");
        let found = yaml(b"name: pump\nparts: [seal]\n").expect("YAML");
        assert_eq!(found.text, "name: pump\nparts:\n  - seal\n");
    }

    #[test]
    fn slack_messages_are_a_conversation() {
        let found = json(br#"[{"ts": "1.0", "user": "U1", "text": "Hello", "user_profile": {"real_name": "Ann"}}]"#);
        assert_eq!(found.expect("JSON").text, "Ann: Hello\n");
    }
}
