//! The storage traits and the types they store.
//!
//! Every method takes the owner first and touches only that owner's rows; another user's id is answered like an id
//! that does not exist. A write returns only when it would survive the process being killed. Errors have the kind
//! `Unavailable` when the database cannot be reached or is busy, `InvalidArgument` when it cannot store or look up
//! what it is given (text with a NUL character, an id that is taken), and `Internal` otherwise.

pub mod conversations;
pub mod tasks;
pub mod tokens;

pub use conversations::{
    Conversation, ConversationState, ConversationStore, Exchange, Message, MessageCursor, Role, StoredAnswer,
};
pub use tasks::{Priority, Task, TaskChanges, TaskCursor, TaskFilter, TaskPage, TaskSort, TaskStore};
pub use tokens::{Token, TokenStore};

/// Some of a longer list, and where the rest begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C> {
    pub items: Vec<T>,
    /// `None` when these are the last.
    pub next: Option<C>,
}
