//! A chat agent that uses tools, on any OpenAI-compatible model.
//!
//! - [`settings`]: which model, and how far a turn may go;
//! - [`toolbox`]: the tools that the agent is given;
//! - [`chat`]: a question, what happens meanwhile, and the answer.

pub mod chat;
pub mod settings;
pub mod toolbox;

pub use chat::{ChatAnswer, ChatRequest, Citation, Event, Events, ToolCallSummary};
pub use settings::Settings;
pub use toolbox::Toolbox;
