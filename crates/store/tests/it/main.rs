//! The stores on real databases.

mod contract;
mod home;
mod killed;
mod lost;
mod opening;
mod outage;
mod postgres_server;
mod proxy;
mod sharing;
mod things;
