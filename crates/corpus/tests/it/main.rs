//! The corpus as other crates see it.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod documents;
mod engine_contract;
mod provider_contract;
mod readers;
mod vectors;
