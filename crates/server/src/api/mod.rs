//! The chat and its conversations as JSON.
//!
//! - [`chat`]: `POST /chat`;
//! - [`conversations`]: `GET /conversations` and their messages;
//! - [`openapi`]: `GET /openapi.json`.

pub(crate) mod chat;
pub(crate) mod conversations;
pub(crate) mod openapi;
