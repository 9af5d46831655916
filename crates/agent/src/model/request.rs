//! Requests to a model, in the OpenAI protocol.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// One entry of `messages`.
pub(crate) type Message = Value;

pub(crate) fn system(text: &str) -> Message {
    json!({"role": "system", "content": text})
}

pub(crate) fn user(text: &str) -> Message {
    json!({"role": "user", "content": text})
}

pub(crate) fn assistant(text: &str) -> Message {
    json!({"role": "assistant", "content": text})
}

/// The model's calls: `(id, name, arguments)`.
pub(crate) fn calls<'a>(calls: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Message {
    let call = |(id, name, arguments): (&str, &str, &str)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    json!({"role": "assistant", "tool_calls": calls.map(call).collect::<Vec<_>>()})
}

pub(crate) fn result(call_id: &str, text: &str) -> Message {
    json!({"role": "tool", "content": text, "tool_call_id": call_id})
}

/// A request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) messages: Vec<Message>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f32>,
    /// OpenAI's models refuse this name of the limit, other servers do not know the new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u32>,
    /// Serialised already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain() -> Body<'static> {
        Body {
            model: "m",
            messages: Vec::new(),
            stream: true,
            temperature: Some(0.5),
            max_tokens: Some(7),
            max_completion_tokens: None,
            tools: None,
            tool_choice: None,
        }
    }

    #[test]
    fn tools_are_sent_as_they_were_written() {
        let tools = RawValue::from_string("[{\"type\":\"function\"}]".to_owned()).expect("JSON");
        let request = Body { messages: Vec::new(), tools: Some(&tools), tool_choice: Some("none"), ..plain() };
        let sent = serde_json::to_value(request).expect("JSON");
        assert_eq!((&sent["tools"], &sent["tool_choice"]), (&json!([{"type": "function"}]), &json!("none")));
    }

    #[test]
    fn request_uses_common_fields() {
        let messages = vec![
            system("be kind"),
            user("hello"),
            calls([("c1", "look", "{}")].into_iter()),
            result("c1", "found"),
            assistant("hi"),
        ];
        let request = Body { messages, ..plain() };
        assert_eq!(
            serde_json::to_value(request).expect("JSON"),
            json!({
                "model": "m",
                "temperature": 0.5,
                "max_tokens": 7,
                "stream": true,
                "messages": [
                    {"role": "system", "content": "be kind"},
                    {"role": "user", "content": "hello"},
                    {"role": "assistant", "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                    ]},
                    {"role": "tool", "content": "found", "tool_call_id": "c1"},
                    {"role": "assistant", "content": "hi"},
                ],
            })
        );
    }
}
