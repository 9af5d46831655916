//! One file per command.

mod ask;
mod chat;
mod check;
mod connect;
mod eval;
mod index;
mod init;
mod pages;
mod progress;
mod serve;
mod sim;
mod stdio;
mod token;

use std::io::Write as _;
use std::process::ExitCode;

use crate::cli::{Cli, Command, Common};
use crate::config::Config;

pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let common = cli.common;
    match cli.command {
        Command::Serve(args) => serve::run(&common, &args),
        Command::Stdio(args) => stdio::run(&common, &args),
        Command::Init(args) => init::run(&common, &args),
        Command::Check(args) => check::run(&common, &args),
        Command::Index(args) => index::run(&common, &args),
        Command::Search(args) => ask::search(&common, &args),
        Command::Fetch(args) => ask::fetch(&common, &args),
        Command::Call(args) => ask::call(&common, &args),
        Command::Eval(args) => eval::run(&common, &args),
        Command::Chat(args) => chat::run(&common, &args),
        Command::Token(args) => token::run(&common, &args),
        Command::Sim(args) => sim::run(&common, &args),
        Command::Connect(args) => connect::run(&common, &args),
        Command::Completions(args) => pages::completions(&args),
        Command::Man(args) => pages::man(&args),
    }
}

/// The configuration, or the demo if there is none.
fn config(common: &Common) -> anyhow::Result<Config> {
    let named = common.config.as_deref().filter(|path| !path.as_os_str().is_empty());
    match Config::load(named)? {
        Some(config) => Ok(config),
        None => Config::demo(),
    }
}

/// An error and its causes on one line.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Writes to standard output. A reader that stops reading (`| head`) is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| {
        if text.ends_with('\n') {
            Ok(())
        } else {
            out.write_all(b"\n")
        }
    });
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Into::into),
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_park(crate::allocator::give_back)
        .build()?)
}

/// Waits for Ctrl-C or a service manager's signal.
async fn stop_asked() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    drop(tokio::signal::ctrl_c().await);
}

/// `3 files`, `1 file`.
fn plural(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}
