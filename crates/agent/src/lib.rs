//! A chat agent that uses tools, on any OpenAI-compatible model.
//!
//! - [`config`]: `[agent]` in the configuration;
//! - [`settings`]: which model, and how far a turn may go;
//! - [`toolbox`]: the tools that the agent is given;
//! - [`chat`]: the question, events and the answer;
//! - [`agent`]: [`Agent`], which accepts questions and finds their conversations;
//! - [`turn`]: [`Turn`], which answers one;
//! - `model`: the endpoint, its requests and replies, and how they fail;
//! - `prompt`, `transcript` and `rounds`: what the model is sent, within a budget;
//! - `calls`, `confirm` and `results`: tool calls, decisions of the user about them, and their results;
//! - `raw_call`: tool calls that a model wrote as text;
//! - `fallback`: answers that the server writes;
//! - `claims` and `text`: helpers.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod agent;
mod calls;
pub mod chat;
mod claims;
pub mod config;
mod confirm;
mod fallback;
mod metrics;
mod model;
mod prompt;
mod raw_call;
mod results;
mod rounds;
pub mod settings;
mod text;
pub mod toolbox;
mod transcript;
pub mod turn;

pub use agent::{Accepted, Agent};
pub use chat::{ChatAnswer, ChatRequest, Citation, Confirmation, Event, Events, ToolCallSummary};
pub use config::Config;
pub use metrics::METRICS;
#[doc(hidden)]
pub use model::text_of_stream;
pub use settings::{Settings, ToolAccess};
pub use toolbox::{ToolSet, Toolbox};
pub use turn::Turn;
