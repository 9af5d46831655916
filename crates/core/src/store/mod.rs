//! What is kept for users, and the contract of whoever keeps it.
//!
//! Every method takes the owner first and touches nothing of anybody else: an id of another user's
//! is answered as one that does not exist. A method that changes something returns only when the
//! change would survive the process being killed. Errors are of kind `Unavailable` when the database
//! cannot be reached or is busy, `InvalidArgument` when it is asked to keep or to look for what it
//! cannot, such as text with a NUL character or an id that is taken, and `Internal` otherwise.

pub mod conversations;
pub mod tasks;
pub mod tokens;

pub use conversations::{
    Answered, Conversation, ConversationState, ConversationStore, Exchange, Message, MessageCursor, Role,
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
