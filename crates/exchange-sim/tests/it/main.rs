//! The exchange over its sockets, as a client sees it.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod account;
mod control;
mod faults;
mod recording;
mod refusals;
mod replay;
mod rest;
mod streams;
mod support;
