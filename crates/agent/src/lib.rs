//! A chat agent that uses tools, on any OpenAI-compatible model.
//!
//! - [`settings`]: which model, and how far a turn may go;
//! - [`toolbox`]: the tools that the agent is given;
//! - [`chat`]: a question, what happens meanwhile, and the answer;
//! - [`agent`]: [`Agent`], which takes questions and finds their conversations;
//! - [`turn`]: [`Turn`], which answers one;
//! - `model`: the endpoint, its requests and replies, and how they fail;
//! - `prompt`, `transcript` and `rounds`: what the model is sent, kept within a budget;
//! - `calls`, `confirm`, `consent` and `results`: what it calls, what must be confirmed first, whether it was, and what
//!   came of it;
//! - `fallback`: what the user is told when the model cannot answer;
//! - `claims` and `text`: small things that these need.

pub mod agent;
mod calls;
pub mod chat;
mod claims;
mod confirm;
mod consent;
mod fallback;
mod model;
mod prompt;
mod results;
mod rounds;
pub mod settings;
mod text;
pub mod toolbox;
mod transcript;
pub mod turn;

pub use agent::{Agent, Begun};
pub use chat::{ChatAnswer, ChatRequest, Citation, Event, Events, ToolCallSummary};
pub use settings::Settings;
pub use toolbox::{ToolSet, Toolbox};
pub use turn::Turn;
