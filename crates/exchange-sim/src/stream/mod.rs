//! WebSocket streams: subscriptions and connections.

pub mod connection;
pub mod request;
pub mod upgrade;
