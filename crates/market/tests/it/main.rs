//! The market against the simulated exchange, over its sockets.

mod by_hand;
mod cache;
mod coalescing;
mod figures;
mod honesty;
mod late;
mod oracle;
mod ranking;
mod reconnect;
mod recording;
mod redis;
mod redis_server;
mod replay;
mod report;
mod reports;
mod search;
mod soak;
mod support;
mod tools;
mod trading;
