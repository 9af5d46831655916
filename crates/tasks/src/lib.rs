//! Tasks as a source and as tools. Every user has their own; who that is comes from the call's context
//! alone, never from an argument.
//!
//! - [`source`]: [`TasksSource`], which finds and cites tasks;
//! - [`tools`]: the six tools;
//! - [`view`]: a task as answers show it; `board`: as its page does;
//! - [`words`]: which tasks a query is about.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod board;
mod source;
mod tools;
mod view;
mod words;

pub use source::{NAME, TasksSource};
pub use view::SCHEME;
