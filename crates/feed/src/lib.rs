//! RSS, Atom and JSON Feed as a source: polled, stored, indexed and cited like documents.
//!
//! - [`config`]: `kind = "feed"` in the configuration, and [`build`];
//! - [`provider`]: polls the feeds, and lists their entries for a corpus;
//! - `fetch`: one conditional request, with limits;
//! - `entry`: the entries of a feed, in any format, as plain text;
//! - `archive`: the entries, validators and problems of each feed on disk.

mod archive;
pub mod config;
mod entry;
mod fetch;
pub mod provider;

pub use config::{Config, build};
pub use provider::Feeds;
