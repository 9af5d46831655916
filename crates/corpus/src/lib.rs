//! A folder of documents as a searchable [`tribune_core::Source`].
//!
//! - [`read`]: Markdown, text, JSONL and CSV become [`read::Record`]s; what cannot be read becomes a [`read::Fault`];
//! - [`speech`]: speeches in a parliament, also from Hansard XML: checked and normalised;
//! - [`passage`]: long texts are split where sentences end;
//! - [`schema`]: what one index holds, field by field;
//! - [`manifest`]: which files an index was made from, so that only changed ones are read again;
//! - [`indexer`]: one incremental, atomic run from folder to index (`walk` finds the files, `intake` takes them in,
//!   `claims` sees to it that ids and texts are held once);
//! - [`query`]: what people and models type, understood without ever failing;
//! - [`snapshot`]: one published state of an index, searched and fetched from;
//! - [`snippet`]: the part of a passage that shows the match;
//! - [`pool`]: the threads that searches run on;
//! - [`source`]: the whole, behind the trait.

mod claims;
pub mod duplicates;
pub mod indexer;
mod intake;
pub mod manifest;
pub mod passage;
pub mod pool;
pub mod query;
pub mod read;
mod schema;
pub mod snapshot;
mod snippet;
pub mod source;
pub mod speech;
mod walk;

pub use indexer::{IndexError, IndexReport, Indexing, Limits};
pub use pool::Pool;
pub use read::{Dialect, Duplicates, FieldMap, Reading};
pub use source::{DocumentsSource, Settings};
pub use speech::SpeechRules;
