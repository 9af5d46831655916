//! The text of files: PDF, office documents, books, mail and others. Knows nothing of Tribune.
//!
//! Parsers of foreign bytes crash, hang and take memory, so they run in child processes of the same program:
//!
//! - [`Extracted`] and [`Problem`]: what a file holds, and why it could not be read;
//! - [`Format`]: the kinds of files, by extension;
//! - [`Workers`]: child processes with limits;
//! - [`worker`]: the child's side of the pipe.

mod extracted;
mod formats;
mod pipe;
pub mod worker;
mod workers;

pub use extracted::{Extracted, Place, Problem, Reason, Receive, Stop};
pub use formats::Format;
pub use workers::Workers;
