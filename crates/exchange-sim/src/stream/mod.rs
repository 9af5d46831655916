//! WebSocket streams: who listens to what, and one connection's life.

pub mod all;
pub mod connection;
pub mod hub;
pub mod names;
pub mod request;
pub mod upgrade;
