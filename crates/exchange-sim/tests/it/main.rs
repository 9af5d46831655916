//! The exchange over its sockets, as a client meets it.

mod faults;
mod replay;
mod rest;
mod streams;
mod support;
