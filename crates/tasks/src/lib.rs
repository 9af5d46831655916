//! Tasks as a source and as tools.
