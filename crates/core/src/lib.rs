//! The vocabulary of Tribune: what every other crate speaks, and nothing else.
//!
//! No I/O and no frameworks live here. The modules, in the order a reader wants them:
//!
//! - [`id`]: [`DocumentId`], the name of one citable thing, exact through search, fetch and URL;
//! - [`document`]: [`Document`] and [`Hit`], what sources give back;
//! - [`source`]: the [`Source`] trait, anything that can be searched and fetched;
//! - [`tool`]: [`Tool`], [`ToolSpec`] and [`ToolOutput`];
//! - [`links`]: [`Links`], the addresses that answers cite;
//! - [`printable`]: text that others chose, in a line for people;
//! - [`wire`]: what an answer takes on the wire, and how it is kept within what hosts take;
//! - [`user`]: [`UserId`], the name of an owner; [`scope`]: what a caller may do; [`readers`]: who may see a
//!   document;
//! - [`context`]: who calls, until when, and how to say "still working";
//! - [`error`]: one error type with a kind that the edges map to MCP and HTTP.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod context;
pub mod document;
pub mod error;
pub mod id;
pub mod links;
pub mod printable;
pub mod readers;
pub mod scope;
pub mod source;
pub mod tool;
pub mod user;
pub mod wire;

pub use context::{CallContext, Principal, Progress, ProgressSink};
pub use document::{Cited, Document, Hit};
pub use error::{Error, ErrorKind, Result};
pub use id::{DocumentId, InvalidId};
pub use links::Links;
pub use printable::{escape_controls, legible};
pub use readers::{Reader, Readers};
pub use scope::{Scope, Scopes};
pub use source::{Panel, Query, Source, SourceFacts, SourceStatus};
pub use tool::{CallDisplay, Hints, JsonObject, Tool, ToolOutput, ToolSpec};
pub use tribune_clock::{Clock, SystemClock, id_of_time};
pub use user::{InvalidUser, UserId};
