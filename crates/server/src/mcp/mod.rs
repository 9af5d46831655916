//! The protocol: both eras, each transport.
//!
//! - `endpoints`: the paths `/mcp` and `/sse`, and which profile answers there;
//! - `streamable`: Streamable HTTP, in front of rmcp's service;
//! - `message`: reads messages from requests;
//! - `lean`: a fast path for the two requests that make up nearly all traffic of the modern era;
//! - `sessions`: how many sessions may be open, and who owns each;
//! - `collapse`: turns an event stream into one JSON response, for clients that accept only JSON;
//! - `sse`: the older HTTP+SSE transport;
//! - [`stdio`]: standard input and output;
//! - `handler`: the MCP methods, on rmcp, for every transport;
//! - `render`: tools and results on the wire.

mod collapse;
pub(crate) mod endpoints;
mod handler;
mod lean;
mod message;
mod render;
mod sessions;
mod sse;
pub mod stdio;
mod streamable;

pub(crate) use sse::Sse;
pub(crate) use streamable::Streamable;

use handler::Handler;

/// The stateless protocol revision.
pub(crate) const MODERN: &str = "2026-07-28";

/// How long clients may cache a list: it changes only when sources do.
const LIST_TTL_MS: u64 = 60_000;
