//! The whole binary, used as users do. One test binary, because each costs a link.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

#[path = "../../../agent/tests/it/support/aimock.rs"]
mod aimock;
mod model;
mod people;
mod support;

mod attacks;
mod chat;
mod cli;
mod clients;
mod conformance;
mod documentation;
mod documents;
mod eval;
mod exchange;
mod following;
mod https;
mod identity;
mod killing;
mod load;
mod market;
mod nginx;
mod nodes;
mod oauth;
mod operations;
mod orders;
mod page;
mod pages;
mod permissions;
mod protocol;
mod rates;
mod readers;
mod reading;
mod redis;
mod reports;
mod secured;
mod speeches;
mod sse;
mod stopping;
mod tasks;
mod traces;
mod try_it;
