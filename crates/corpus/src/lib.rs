//! A searchable corpus of documents, and the `documents` source on top of it.
//!
//! From provider to index:
//! - [`provider`]: where records come from: a folder, or a provider of another crate;
//! - [`format`](mod@format): reads files into [`format::Record`]s: Markdown, text, JSONL, CSV, or a format of another
//!   crate;
//! - [`collection`]: what a corpus is made of, and how it treats its records: duplicates, counted fields, order;
//! - [`passage`]: the parts of a document that are ranked and quoted;
//! - [`engine`]: indexes and ranks: tantivy and vectors, or an engine of another crate;
//! - [`skipped`]: what is not indexed, by kind and reason;
//! - [`manifest`]: the keys and fingerprints in an index, so that only changes are read again;
//! - [`index`]: one incremental, atomic run from provider to engine;
//! - [`embedding`]: builds the vectors that an index lacks;
//! - [`source::follow`]: keeps a corpus up to date with its provider.
//!
//! From question to answer:
//! - [`query`]: parses what people and models type, and never fails; filters;
//! - [`snapshot`]: one published version of an index, as a caller sees it;
//! - [`search`]: two legs, fused, with the best passage of each document quoted; related documents;
//! - [`view`]: the contents of a document's page;
//! - [`pool`]: the threads that searches and embedding run on;
//! - [`source`]: the `documents` source;
//! - [`config`]: its configuration, and how sources with a corpus are built.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod collection;
pub mod config;
pub mod embedding;
pub mod engine;
pub mod format;
mod hash;
pub mod index;
pub mod manifest;
pub mod passage;
pub mod pool;
pub mod provider;
pub mod query;
pub mod search;
pub mod skipped;
pub mod snapshot;
pub mod source;
pub mod view;

pub use collection::{Collection, Duplicates, Settings, Timeline, Transcripts};
pub use config::embedder::{EmbedderChoice, EmbedderConfig, Embedders};
pub use config::{Built, Environment};
pub use embedding::{EmbedProgress, EmbedReport};
pub use format::{FieldMap, Reading};
pub use hash::{content_hash, stable as stable_hash};
pub use index::{IndexError, IndexProgress, IndexReport};
pub use pool::Pool;
pub use provider::{Folder, Limits, Provider};
pub use query::{Condition, Filter};
pub use search::{Legs, SearchRequest};
pub use source::{DocumentsSource, Features, Upkeep, follow};
pub use tribune_extract::Workers;
