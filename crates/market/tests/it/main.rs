//! The market against the simulated exchange, over its sockets.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

#[path = "../../../binance/tests/it/by_hand.rs"]
#[allow(dead_code)]
mod by_hand;
#[path = "../../../binance/tests/it/support.rs"]
#[allow(dead_code)]
mod client;
mod coalescing;
mod figures;
mod honesty;
mod late;
mod ranking;
#[path = "../../../binance/tests/it/recording.rs"]
#[allow(dead_code)]
mod recording;
mod replay;
mod search;
mod support;
mod tools;
