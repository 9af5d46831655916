//! One file per command.

mod ask;
mod audit;
mod chat;
mod check;
mod connect;
mod eval;
mod index;
mod init;
mod orders;
mod pages;
mod progress;
mod serve;
mod sim;
mod stdio;
mod token;
mod user;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use jiff::Timestamp;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tribune_core::UserId;
use tribune_storage::{AuditEntry, Store};

use crate::cli::{Cli, Command, Common};
use crate::config::Config;
use crate::{compose, logging};

pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let common = cli.common;
    match cli.command {
        Command::Serve(args) => serve::run(&common, &args),
        Command::Stdio { profile } => stdio::run(&common, &profile),
        Command::Init(args) => init::run(&common, &args),
        Command::Check { json } => check::run(&common, json),
        Command::Index(args) => index::run(&common, &args),
        Command::Search(args) => ask::search(&common, &args),
        Command::Fetch(args) => ask::fetch(&common, &args),
        Command::Call(args) => ask::call(&common, &args),
        Command::Eval(args) => eval::run(&common, &args),
        Command::Chat(args) => chat::run(&common, &args),
        Command::Token { verb } => token::run(&common, &verb),
        Command::User { verb } => user::run(&common, &verb),
        Command::Audit(args) => audit::run(&common, &args),
        Command::Orders { verb } => orders::run(&common, verb.as_ref()),
        Command::Sim(args) => sim::run(&common, &args),
        Command::Connect { host } => connect::run(&common, host),
        Command::Completions { shell } => pages::completions(shell),
        Command::ExtractWorker => {
            tribune_extract::worker::run()?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { dir } => pages::man(&dir),
    }
}

/// The configuration, or the demo if there is none.
fn config(common: &Common) -> anyhow::Result<Config> {
    Config::load(named(common))?.map_or_else(Config::demo, Ok)
}

/// The file that `--config` names; an empty variable names none.
fn named(common: &Common) -> Option<&Path> {
    common.config.as_deref().filter(|path| !path.as_os_str().is_empty())
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

/// Runs a command on the configured database.
fn with_store(
    common: &Common,
    what: &str,
    work: impl AsyncFnOnce(&Store, &Config) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(&ask::quiet(common))?;
    let config = config(common)?;
    if config.demo.is_some() {
        bail!(
            "{what} need a configuration, because the demo keeps nothing: `tribune init` writes one, or name yours with --config FILE"
        );
    }
    let store = compose::store(&config)?;
    runtime()?.block_on(async {
        store.ready().await?;
        work(&store, &config).await?;
        store.close().await;
        Ok(ExitCode::SUCCESS)
    })
}

/// Records in the audit log what the operator changed, and for whom.
async fn record(store: &Store, config: &Config, action: &str, about: &[&str]) -> anyhow::Result<()> {
    if config.audit.is_none() {
        return Ok(());
    }
    #[expect(clippy::disallowed_methods, reason = "a command runs in real time")]
    let at = Timestamp::now();
    let entry = AuditEntry {
        at,
        who: UserId::local().to_string(),
        peer: None,
        action: action.to_owned(),
        outcome: "ok".to_owned(),
        ids: about.iter().map(|id| (*id).to_owned()).collect(),
        query: None,
        correlation_id: "-".to_owned(),
    };
    // Servers delete old entries.
    Ok(store.audit().append(vec![entry], Timestamp::MIN).await?)
}

/// Writes to standard output. A reader that stops reading (`| head`) is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") });
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Into::into),
    }
}

/// Prints JSON, or the same for people.
fn print_either(as_json: bool, json: &Value, readable: impl FnOnce() -> String) -> anyhow::Result<()> {
    print(&match as_json {
        true => serde_json::to_string_pretty(json)?,
        false => readable(),
    })
}

/// Prints a list as JSON or as a table; `none` is printed in place of an empty table.
fn print_list<T>(
    as_json: bool,
    items: &[T],
    view: fn(&T) -> Value,
    none: &str,
    header: &[&str],
    row: impl FnMut(&T) -> Vec<String>,
) -> anyhow::Result<()> {
    if as_json {
        return print(&items.iter().map(view).collect::<Value>().to_string());
    }
    if items.is_empty() {
        return print(none);
    }
    let header = header.iter().map(|&title| title.to_owned()).collect();
    let rows: Vec<_> = std::iter::once(header).chain(items.iter().map(row)).collect();
    print(&table(&rows, usize::MAX))
}

/// A time in a table.
fn minute(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().on_thread_park(crate::allocator::give_back).build()?)
}

/// Waits for Ctrl-C or a service manager's signal.
async fn stop_signal() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => drop(terminate.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

/// `3 files`, `1 file`.
fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Columns as wide as their widest cell: the first `names` aligned to the left, figures to the right.
fn table(rows: &[Vec<String>], names: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column < names {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let text = table(&[row(["name", "a", "b", "n"]), row(["é", "long", "", "1.25"])], 3);
        assert_eq!(text, "name  a     b     n\né     long     1.25\n");
    }
}
