//! The agent against a model that says what it is told to, and against one that others wrote.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]
#![allow(clippy::unwrap_used)]

mod aimock;
mod confirmation;
mod conversations;
mod failures;
mod logs;
mod rounds;
mod streams;
mod support;
