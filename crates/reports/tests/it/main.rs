//! Reports against the simulated exchange, a cache in memory and Redis.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

#[path = "../../../binance/tests/it/by_hand.rs"]
#[allow(dead_code)]
mod by_hand;
mod cache;
#[path = "../../../binance/tests/it/oracle.rs"]
#[allow(dead_code)]
mod oracle;
#[path = "../../../binance/tests/it/recording.rs"]
#[allow(dead_code)]
mod recording;
mod redis;
mod redis_server;
mod report;
mod reports;
#[path = "../../../binance/tests/it/support.rs"]
#[allow(dead_code)]
mod support;
