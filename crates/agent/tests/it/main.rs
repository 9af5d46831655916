//! The agent against a model that says what it is told to, and against one that others wrote.

#![allow(clippy::unwrap_used)]

mod aimock;
mod confirmation;
mod conversations;
mod failures;
mod logs;
mod rounds;
mod streams;
mod support;
