//! The protocol, both eras, each transport.
//!
//! - [`handler`]: what an MCP server answers, on rmcp, for every transport;
//! - [`render`]: tools and results as they stand on the wire;
//! - [`streamable`]: `/mcp`, in front of rmcp's Streamable HTTP service;
//! - [`lean`]: the two requests that make up nearly all traffic of the modern era, answered without
//!   a detour; whatever is not exactly as it should be goes to rmcp;
//! - [`collapse`]: an event stream as one JSON answer, for clients that only take JSON;
//! - [`sse`]: the older HTTP+SSE transport;
//! - [`stdio`]: the same over standard input and output.

pub mod collapse;
pub mod handler;
pub mod lean;
mod owners;
pub mod render;
pub mod rpc;
pub mod sse;
pub mod stdio;
pub mod streamable;

pub use handler::Handler;

/// The stateless revision.
pub const MODERN: &str = "2026-07-28";

/// How long clients may keep what a list said: it changes only when sources do.
pub const LIST_TTL_MS: u64 = 60_000;
