//! A folder of documents as a searchable [`tribune_core::Source`].
//!
//! From folder to index:
//! - [`read`]: Markdown, text, JSONL and CSV become [`read::Record`]s; what cannot be read becomes a [`read::Fault`];
//! - [`speech`]: speeches in a parliament, also from Hansard XML: checked and normalised;
//! - [`passage`]: long texts are split where sentences end;
//! - [`schema`]: what one index holds, field by field; `entry` makes it of a record;
//! - [`manifest`]: which files an index was made from, so that only changed ones are read again;
//! - [`indexer`]: one incremental, atomic run from folder to index (`walk` finds the files, `intake` takes them in,
//!   `claims` sees to it that ids and texts are held once);
//! - `vectors`: the vectors of passages on disk, kept by what they stand for; [`embedding`] makes the missing ones.
//!
//! From question to answer:
//! - [`query`]: what people and models type, understood without ever failing; [`filter`]: conditions;
//! - [`snapshot`]: one published state of an index, fetched from;
//! - [`search`]: both legs (`lexical`, `dense`), each keeping the `best`, made one by `fusion`;
//! - `related`: documents like a document; `view`: what a page shows around one;
//! - [`snippet`]: the part of a passage that shows the match;
//! - [`pool`]: the threads that searches and embedding run on;
//! - [`source`]: the whole, behind the trait; [`speeches`]: the same for parliamentary speeches, with tools of its own.

mod best;
mod claims;
mod dense;
pub mod duplicates;
pub mod embedding;
mod entry;
pub mod filter;
mod fusion;
pub mod indexer;
mod intake;
mod lexical;
pub mod manifest;
pub mod passage;
pub mod pool;
pub mod query;
pub mod read;
mod related;
mod schema;
pub mod search;
pub mod snapshot;
mod snippet;
pub mod source;
pub mod speech;
pub mod speeches;
mod vectors;
mod view;
mod walk;

pub use embedding::{EmbedProgress, EmbedReport, EmbeddingError};
pub use filter::{Condition, Filter};
pub use indexer::{IndexError, IndexProgress, IndexReport, Indexing, Limits};
pub use pool::Pool;
pub use read::{Dialect, Duplicates, FieldMap, Reading};
pub use search::{Ask, Legs};
pub use source::{DocumentsSource, Settings};
pub use speech::SpeechRules;
pub use speeches::{SpeechesSource, Spellings, ToolNames};
