//! What sources show ([`tribune_core::view`]), as elements of a page. Pure: no I/O, no clock. In reading order:
//!
//! - [`node`]: a tree of elements that can be written as HTML and as JSON, and can hold no markup but its own
//! - [`reading`]: a document's text: [`markdown`] or [`plain`], with what is
//!   cited of it set off (`marks`)

pub mod markdown;
mod marks;
pub mod node;
pub mod plain;
pub mod reading;

pub use node::{Element, Node};
