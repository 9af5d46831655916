//! Requests to a model, in the OpenAI protocol.

use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls, ChatCompletionRequestAssistantMessage,
    ChatCompletionRequestMessage, ChatCompletionRequestSystemMessage, ChatCompletionRequestToolMessage,
    ChatCompletionRequestUserMessage, ChatCompletionToolChoiceOption, CreateChatCompletionRequest, FunctionCall,
    ToolChoiceOptions,
};
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) type Message = ChatCompletionRequestMessage;

/// Whether the model may call tools in this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolUse {
    Allowed,
    /// It must answer without further calls.
    Over,
}

/// The field that limits an answer: OpenAI's models refuse the old one, other servers do not know the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputLimit {
    MaxTokens(u32),
    MaxCompletionTokens(u32),
}

pub(crate) fn system(text: &str) -> Message {
    Message::System(ChatCompletionRequestSystemMessage {
        content: text.into(),
        name: None,
    })
}

pub(crate) fn user(text: &str) -> Message {
    Message::User(ChatCompletionRequestUserMessage {
        content: text.into(),
        name: None,
    })
}

pub(crate) fn assistant(text: &str) -> Message {
    Message::Assistant(ChatCompletionRequestAssistantMessage {
        content: Some(text.into()),
        ..ChatCompletionRequestAssistantMessage::default()
    })
}

/// The model's calls: `(id, name, arguments)`.
pub(crate) fn calls<'a>(calls: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Message {
    let call = |(id, name, arguments): (&str, &str, &str)| {
        ChatCompletionMessageToolCalls::Function(ChatCompletionMessageToolCall {
            id: id.to_owned(),
            function: FunctionCall {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            },
        })
    };
    Message::Assistant(ChatCompletionRequestAssistantMessage {
        tool_calls: Some(calls.map(call).collect()),
        ..ChatCompletionRequestAssistantMessage::default()
    })
}

pub(crate) fn result(call_id: &str, text: &str) -> Message {
    Message::Tool(ChatCompletionRequestToolMessage {
        content: text.into(),
        tool_call_id: call_id.to_owned(),
    })
}

/// A request with tools that are serialised already.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    #[serde(flatten)]
    request: CreateChatCompletionRequest,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

/// Every compatible server knows the old name of the limit.
#[allow(deprecated)]
pub(super) fn body<'a>(
    model: &str,
    temperature: Option<f32>,
    limit: OutputLimit,
    messages: Vec<Message>,
    tools: Option<&'a RawValue>,
    tool_use: ToolUse,
) -> Body<'a> {
    let over = tools.is_some() && tool_use == ToolUse::Over;
    let mut request = CreateChatCompletionRequest {
        model: model.to_owned(),
        messages,
        temperature,
        stream: Some(true),
        tool_choice: over.then_some(ChatCompletionToolChoiceOption::Mode(ToolChoiceOptions::None)),
        ..CreateChatCompletionRequest::default()
    };
    match limit {
        OutputLimit::MaxTokens(tokens) => request.max_tokens = Some(tokens),
        OutputLimit::MaxCompletionTokens(tokens) => request.max_completion_tokens = Some(tokens),
    }
    Body { request, tools }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_sent_as_they_were_written() {
        let tools = RawValue::from_string("[{\"type\":\"function\"}]".to_owned()).expect("JSON");
        let request = body(
            "m",
            None,
            OutputLimit::MaxTokens(7),
            Vec::new(),
            Some(&tools),
            ToolUse::Over,
        );
        let sent = serde_json::to_value(request).expect("JSON");
        assert_eq!(
            (&sent["tools"], &sent["tool_choice"]),
            (&json!([{"type": "function"}]), &json!("none"))
        );
    }

    #[test]
    fn what_is_sent_is_what_every_server_understands() {
        let messages = vec![
            system("be kind"),
            user("hello"),
            calls([("c1", "look", "{}")].into_iter()),
            result("c1", "found"),
            assistant("hi"),
        ];
        let request = body("m", Some(0.5), OutputLimit::MaxTokens(7), messages, None, ToolUse::Over);
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
