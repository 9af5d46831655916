//! Tools of other MCP servers, as tools of ours.
//!
//! - [`spec`]: which servers, and how they are reached;
//! - [`upstreams`]: all of them together, and the tools they have now;
//! - [`server`]: what is known of one server;
//! - `life`: how one server is connected to, watched, lost and found again;
//! - `connect`: the two eras of the protocol, and which one a server speaks;
//! - `child`, `http`: the two ways to a server, with bounds;
//! - `catalogue`: what a server offers, made fit for models;
//! - `naming`, `words`: names and sentences of strangers;
//! - `tool`: one tool of theirs as one of ours;
//! - `answer`: what it answered.
//!
//! One dead, slow or mad server costs its own tools and nothing else. Nothing of who is asking is
//! passed on to any of them.

mod answer;
mod catalogue;
mod child;
mod connect;
mod http;
mod life;
mod naming;
pub mod server;
pub mod spec;
mod tool;
pub mod upstreams;
mod words;

pub use server::{Era, Status};
pub use spec::{DEFAULT_TIMEOUT, Reach, ServerSpec};
pub use upstreams::Upstreams;
