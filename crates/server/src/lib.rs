//! Sources and tools, served: MCP over Streamable HTTP, HTTP+SSE and stdio, pages for people,
//! operations. The only crate that knows rmcp and axum.
//!
//! - [`settings`]: what can be set, with its defaults;
//! - [`service`]: the sources and profiles behind every transport;
//! - [`profile`]: one selection of tools, rendered from the data as it is now;
//! - [`contract`]: the tools `search` and `fetch`, exactly as hosts require them;
//! - [`identity`]: who calls, by the token that a request carries;
//! - [`call`]: one tool call with its deadline, log line and metrics;
//! - [`chat`]: the agent, with the tools of a profile;
//! - [`connect`]: what to paste into each host;
//! - [`mcp`]: the protocol, both eras, each transport;
//! - [`http`]: the router, what guards it, pages and operations.

pub mod call;
pub mod chat;
pub mod connect;
pub mod contract;
pub mod http;
pub mod identity;
pub mod mcp;
pub mod profile;
pub mod service;
pub mod settings;

pub use chat::Chat;
pub use http::serve;
pub use mcp::stdio::serve_stdio;
pub use profile::{Profile, ProfileSpec};
pub use service::Service;
pub use settings::Settings;
