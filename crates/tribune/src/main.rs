//! The binary: what was typed becomes what it means, and runs.

mod allocator;
mod cli;
mod commands;
mod compose;
mod config;
mod demo;
mod follow;
mod logging;

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
