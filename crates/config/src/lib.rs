//! What the configuration types of all crates share.
//!
//! - `environment`: what sources are built with;
//! - `secret`: secrets, which the configuration names and does not contain;
//! - `check`: numbers, addresses and titles;
//! - `reach`: who can reach a public address;
//! - [`units`]: times and sizes.

mod check;
mod environment;
mod reach;
mod secret;
pub mod units;

pub use check::{check_range, default_title, is_http_url};
pub use environment::Environment;
pub use reach::Reach;
pub use secret::{Secret, SecretUrl};
