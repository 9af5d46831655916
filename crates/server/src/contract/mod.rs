//! The tools of all sources: `search` and `fetch`, as ChatGPT and Claude require them, and `find_related`.

mod describe;
mod fetch;
mod related;
mod results;
mod search;

pub use fetch::{FetchTool, FetchedDocument, cited, fetch_document};
pub use related::{RelatedTool, neighbours, related};
pub use search::SearchTool;

pub(crate) use describe::overview;
