//! The question, the events of a turn, and the answer.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A question of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// 1 to 4,000 characters; may be empty beside a decision.
    #[serde(default)]
    pub message: String,
    /// Continues this conversation. Default: the latest one, unless it is idle.
    #[serde(default)]
    pub conversation_id: Option<Uuid>,
    /// Always starts a new conversation.
    #[serde(default)]
    pub new_conversation: bool,
    /// Idempotency key: the same id gets the stored answer.
    #[serde(default)]
    pub request_id: Option<Uuid>,
    /// Ids of [`Confirmation`]s: these calls run.
    #[serde(default)]
    pub confirm: Vec<Uuid>,
    /// These do not.
    #[serde(default)]
    pub decline: Vec<Uuid>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChatAnswer {
    pub message: String,
    pub conversation_id: Uuid,
    /// `None` if no tool was called.
    pub tool_calls: Option<Vec<ToolCallSummary>>,
    /// The calls that the answer asks about.
    pub confirmations: Vec<Confirmation>,
    /// Whether a tool answered; if not, the answer comes from the model alone.
    pub looked_up: bool,
    /// Sources of the answer, each address once.
    pub citations: Vec<Citation>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolCallSummary {
    pub tool: String,
    /// What the call did, or would have done, in a few words.
    pub label: String,
    pub success: bool,
    /// At most 200 characters.
    pub result_preview: Option<String>,
    /// The call waits for the user's decision.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_confirmation: bool,
}

/// A destructive call that waits for the user's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confirmation {
    pub id: Uuid,
    pub tool: String,
    /// What the user is asked: `Delete the task "Buy milk"?`.
    pub question: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Citation {
    pub title: String,
    pub url: String,
}

/// What happens during a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The conversation of the exchange.
    Started { conversation_id: Uuid },
    /// More of the answer's text.
    Delta { text: String },
    /// The text so far is not the answer: the model called tools instead.
    Discard,
    /// `call` is the number of the call in this turn.
    ToolStart { call: usize, tool: String, label: String },
    ToolEnd {
        call: usize,
        #[serde(flatten)]
        summary: ToolCallSummary,
    },
}

/// Receives events. It must not block the turn.
pub trait Events: Send + Sync {
    fn emit(&self, event: Event);

    /// The model has answered once: about how many tokens it read and wrote.
    fn used(&self, _tokens: usize) {}
}
