//! A question, what happens meanwhile, and the answer.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a user says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// 1 to 4,000 characters.
    pub message: String,
    /// Goes on with this conversation, however long ago it was. Without one, with the last one if that was not too
    /// long ago.
    #[serde(default)]
    pub conversation_id: Option<Uuid>,
    /// Begins a new conversation even if the last one was a moment ago.
    #[serde(default)]
    pub new_conversation: bool,
    /// A name that the caller gives the request: sent again with the same, it is answered with what was kept.
    #[serde(default)]
    pub request_id: Option<Uuid>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChatAnswer {
    pub message: String,
    pub conversation_id: Uuid,
    /// `None` if no tool was called.
    pub tool_calls: Option<Vec<ToolCallSummary>>,
    /// What the tools' results can be cited by, each address once.
    pub citations: Vec<Citation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCallSummary {
    pub tool: String,
    pub success: bool,
    /// At most 200 characters.
    pub result_preview: Option<String>,
    /// The tool was not run: the user is asked first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_confirmation: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Citation {
    pub title: String,
    pub url: String,
}

/// What happens while an answer is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Where the exchange will be kept.
    Started { conversation_id: Uuid },
    /// More of the answer's text.
    Delta { text: String },
    /// The text so far was not the answer: the model went on to call tools.
    Discard,
    /// `call` tells the calls of one turn apart.
    ToolStart { call: usize, tool: String },
    ToolEnd {
        call: usize,
        #[serde(flatten)]
        summary: ToolCallSummary,
    },
}

/// Receives them; one that cannot keep up or has gone away must not hold the turn up.
pub trait Events: Send + Sync {
    fn emit(&self, event: Event);
}
