//! Which model, and how far a turn may go.

use std::time::Duration;

#[derive(Clone)]
pub struct Settings {
    /// Of an OpenAI-compatible endpoint, up to and without `/chat/completions`.
    pub base_url: String,
    pub model: String,
    pub api_key: Option<String>,
    /// `None` leaves it to the endpoint.
    pub temperature: Option<f32>,
    /// The longest answer that is asked of the model.
    pub max_output_tokens: u32,
    /// How much may be sent to the model in one request, counted roughly. Older messages and tool results give way.
    pub context_tokens: u32,
    /// How much of one tool's result enters the context.
    pub max_result_chars: usize,
    /// Rounds of tool calls in one turn.
    pub max_rounds: usize,
    /// Messages of the conversation that go with a question.
    pub history: usize,
    /// After this long without a message, the next one begins a new conversation.
    pub idle_after: Duration,
    /// How long the model may be silent: before its first word and between two.
    pub silence: Duration,
    /// How long one request to the model may take.
    pub request_timeout: Duration,
    /// How long a whole turn may take.
    pub turn_timeout: Duration,
    /// Added to the built-in instructions.
    pub instructions: Option<String>,
}

impl Settings {
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key: None,
            temperature: None,
            max_output_tokens: 1024,
            context_tokens: 32_000,
            max_result_chars: 12_000,
            max_rounds: 5,
            history: 10,
            idle_after: Duration::from_secs(30 * 60),
            silence: Duration::from_secs(60),
            request_timeout: Duration::from_secs(120),
            turn_timeout: Duration::from_secs(300),
            instructions: None,
        }
    }
}

/// Without the key.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
