//! The client against the simulated exchange, over its sockets.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

#[allow(dead_code)]
mod by_hand;
mod oracle;
mod reconnect;
#[allow(dead_code)]
mod recording;
mod replay;
mod soak;
#[allow(dead_code)]
mod support;
