//! The exchange over its sockets, as a client meets it.

mod account;
mod control;
mod faults;
mod oddities;
mod replay;
mod rest;
mod streams;
mod support;
mod unknown;
