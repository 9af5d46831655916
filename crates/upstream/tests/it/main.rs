//! Against servers built with the official Python and TypeScript SDKs, in both eras and over both transports, and
//! against things that are not MCP servers.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod calls;
mod eras;
mod hostile;
mod listing;
mod reconnect;
mod support;
