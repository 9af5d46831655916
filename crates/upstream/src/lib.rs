//! Tools of other MCP servers, as tools of ours.
//!
//! - [`config`]: one server in the configuration;
//! - [`spec`]: a server's name, transport and limits;
//! - [`upstreams`]: all servers together; `directory`: the servers and their published tools;
//! - [`server`]: the current state of one server;
//! - `supervisor`: connects to one server, watches it and reconnects;
//! - `connect`: the handshake, in both eras of the protocol;
//! - `child`, `http`: the two transports, with bounds;
//! - `catalogue`: a server's tool list, checked and sanitised;
//! - `naming`, `sanitize`: tool names and text from other servers;
//! - `tool`: calls one remote tool;
//! - `answer`: its result as one JSON object.
//!
//! A failing server affects only its own tools. Tribune passes nothing about the caller to any of them.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod answer;
mod catalogue;
mod child;
pub mod config;
mod connect;
mod directory;
mod http;
mod naming;
mod sanitize;
pub mod server;
pub mod spec;
mod supervisor;
mod tool;
pub mod upstreams;

pub use config::Config;
pub use server::{Era, Status};
pub use spec::{ChildCommand, DEFAULT_TIMEOUT, HttpEndpoint, ServerSpec, Transport};
pub use upstreams::Upstreams;
