//! The tools of one endpoint.
//!
//! - [`lint`]: the rules that hosts hold tools to, checked on every tool that is registered;
//! - `arguments`: arguments that do not fit, explained to the model that sent them;
//! - `registry`: the tools in order, with their argument schemas compiled.

mod arguments;
pub mod lint;
mod registry;

pub use registry::{Registered, RegistrationError, Registry};
