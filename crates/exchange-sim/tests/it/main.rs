//! The exchange over its sockets, as a client meets it.

mod account;
mod control;
mod ends;
mod faults;
mod oddities;
mod replay;
mod rest;
mod streams;
mod support;
mod symbols;
mod trades;
mod unknown;
