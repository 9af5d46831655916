//! Reports of one process, in its own memory.

/// The default: nothing is shared with other processes.
#[derive(Debug, Default)]
pub struct MemoryCache {}
