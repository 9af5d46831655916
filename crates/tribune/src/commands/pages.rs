//! `tribune completions` and `tribune man`, made from the command line's own definition.

use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use super::print;
use crate::cli::{Cli, Completions, Man};

pub fn completions(args: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tribune", &mut script);
    print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: &Man) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(&args.dir).with_context(|| format!("{} cannot be made", args.dir.display()))?;
    clap_mangen::generate_to(Cli::command(), &args.dir)
        .with_context(|| format!("{} cannot be written to", args.dir.display()))?;
    print(&format!("wrote manual pages to {}", args.dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
