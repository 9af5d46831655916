//! The stores on real databases.

mod contract;
mod home;
mod killed;
mod opening;
mod outage;
mod postgres_server;
mod sharing;
mod things;
