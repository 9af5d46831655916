//! The binary: parses the command line and runs the command.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod allocator;
mod cli;
mod commands;
mod compose;
mod config;
mod demo;
mod logging;
mod metrics;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) => {
            // A standard error that cannot be written to is no reason to panic.
            let _ = writeln!(std::io::stderr(), "tribune: {}", commands::chain(&error));
            ExitCode::FAILURE
        }
    }
}
