//! The model, and the limits of a turn.

use std::time::Duration;

use serde::Deserialize;

/// Which of its tools the agent may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolAccess {
    #[default]
    All,
    /// Only tools that change nothing.
    Read,
}

#[derive(Clone)]
pub struct Settings {
    /// An OpenAI-compatible endpoint, without `/chat/completions`.
    pub base_url: String,
    pub model: String,
    pub api_key: Option<String>,
    /// `None` for the default of the endpoint.
    pub temperature: Option<f32>,
    /// Maximum length of an answer.
    pub max_output_tokens: u32,
    /// Token budget of one request, estimated. Older messages and tool results are cut to fit.
    pub context_tokens: u32,
    /// Maximum length of one tool result for the model.
    pub max_result_chars: usize,
    /// Rounds of tool calls in one turn.
    pub max_rounds: usize,
    /// Earlier messages sent with a question.
    pub history: usize,
    /// After this long without a message, a new conversation starts.
    pub idle_after: Duration,
    /// Maximum time between two pieces of an answer.
    pub silence: Duration,
    /// Timeout of one request to the model.
    pub request_timeout: Duration,
    /// Timeout of a whole turn.
    pub turn_timeout: Duration,
    /// Which of its tools the agent may use.
    pub tools: ToolAccess,
    /// Added to the built-in instructions.
    pub instructions: Option<String>,
}
