//! The stores on real databases.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod contract;
mod fixtures;
mod killed;
mod lost;
mod opening;
mod outage;
mod postgres_server;
mod proxy;
mod sharing;
mod test_database;
