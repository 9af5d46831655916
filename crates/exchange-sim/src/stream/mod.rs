//! WebSocket streams: who listens to what, and one connection's life.

pub mod connection;
pub mod hub;
pub mod request;
pub mod upgrade;
