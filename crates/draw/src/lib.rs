//! What sources show ([`tribune_core::view`]), as elements of a page. Pure: no I/O, no clock. In reading order:
//!
//! - [`node`]: a tree of elements that can be written as HTML and as JSON, and can hold no markup but its own

pub mod node;

pub use node::{Element, Node};
