//! `tribune completions` and `tribune man`, made from the command line's own definition.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use super::print;
use crate::cli::Cli;

pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tribune", &mut script);
    print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(dir: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create the folder {}", dir.display()))?;
    clap_mangen::generate_to(Cli::command(), dir).with_context(|| format!("cannot write into {}", dir.display()))?;
    print(&format!("Wrote manual pages to {}.", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
