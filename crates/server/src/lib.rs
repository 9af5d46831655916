//! Serves sources and tools: MCP over Streamable HTTP, HTTP+SSE and stdio, pages for people, a JSON API for the chat,
//! and endpoints for operators. The only crate that knows rmcp and axum.
//!
//! In reading order; a module depends only on those above it:
//! - `local_proof`: how the person at this machine is known;
//! - [`connect`]: what to paste into each host;
//! - [`settings`]: what can be configured, with its defaults;
//! - `address`: host names of requests;
//! - [`contract`]: the tools `search`, `fetch` and `find_related`;
//! - `response`: every response the server makes itself: JSON, problems, JSON-RPC errors, pages;
//! - `request`: reading bodies and paths;
//! - [`identity`]: who is calling;
//! - [`audit`]: who called what;
//! - [`supervisor`]: the background tasks of sources, restarted when they fail;
//! - [`service`]: sources, profiles, tool calls and the chat agent, behind every transport;
//! - [`mcp`]: the protocol, both eras, each transport;
//! - `api`: the chat and its conversations as JSON;
//! - `pages`: pages for people;
//! - `ops`: health, readiness, metrics;
//! - `router`: which path leads where;
//! - `serve`: the connections, and the server's start and stop.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod address;
mod api;
pub mod audit;
pub mod connect;
pub mod contract;
pub mod identity;
mod local_proof;
pub mod mcp;
mod metrics;
mod ops;
mod pages;
mod request;
mod response;
mod router;
mod sender;
mod serve;
pub mod service;
pub mod settings;
mod sign_in;
pub mod supervisor;

pub use local_proof::LocalProof;
pub use mcp::stdio::serve_stdio;
pub use metrics::METRICS;
pub use router::{paths, router};
pub use serve::serve;
pub use service::{Chat, Profile, ProfileSpec, Service};
pub use settings::{Config, Settings};

/// Whether the fixtures of the MCP conformance suite are compiled in.
pub const HAS_CONFORMANCE: bool = cfg!(feature = "conformance");
