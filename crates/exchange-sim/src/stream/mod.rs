//! WebSocket streams: names, subscriptions and connections.

pub mod connection;
pub mod names;
pub mod request;
pub mod upgrade;
