//! The market against the simulated exchange, over its sockets.

mod by_hand;
mod coalescing;
mod honesty;
mod oracle;
mod reconnect;
mod recording;
mod replay;
mod report;
mod search;
mod soak;
mod support;
