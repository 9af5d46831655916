//! Measures Tribune's HTTP serving and its retrieval beside peers that do less, and its order books,
//! on one machine and in one run. See `tribune-bench --help`.

#![allow(clippy::disallowed_methods, reason = "benchmarks and fixtures use the machine's clock")]

mod answers;
mod chat;
mod compare;
mod corpus;
mod http;
mod load;
mod market;
mod own;
mod process;
mod protocol;
mod readers;
mod report;
mod retrieval;
mod scale;
mod servers;
mod store;
mod words;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::servers::{Kind, ServeArgs};

/// Tribune uses mimalloc. The peers are this program, so it does too: otherwise
/// the comparison would be one of allocators.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compare Tribune with bare axum and rmcp servers under the same load
///
/// Without a command, runs the comparison: each server is started as a process
/// of its own, asked for `tools/list` and for `tools/call search` over loopback
/// by keep-alive connections in a closed loop, and stopped. Only one server runs
/// at a time; rounds are interleaved and the median of them is reported, as a
/// Markdown table on standard output. Ends with an error if any answer was one.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    compare: compare::CompareArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Index a large corpus with Tribune, then time single queries
    CorpusScale(scale::ScaleArgs),
    /// Search a large corpus as callers who may see parts of it
    Readers(readers::ReadersArgs),
    /// Index and search generated texts with Tribune, plain tantivy and SQLite FTS5
    Retrieval(retrieval::RetrievalArgs),
    #[command(hide = true, subcommand)]
    RetrievalStep(retrieval::Step),
    /// Decode, apply and publish order books, keep 1,000 of them live, and answer from them
    Market(market::MarketArgs),
    #[command(hide = true, subcommand)]
    MarketStep(market::Step),
    /// Chat with Tribune over a model that answers at once, a hundred at a time
    Chat(chat::ChatArgs),
    /// Add tasks to SQLite and PostgreSQL, and count what is acknowledged
    Store(store::StoreArgs),
    #[command(hide = true)]
    ServeBare(ServeArgs),
    #[command(hide = true)]
    ServeBareJson(ServeArgs),
    #[command(hide = true)]
    ServeRmcpJson(ServeArgs),
    #[command(hide = true)]
    ServeRmcpDefault(ServeArgs),
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.command {
        None => measure(compare::run(&cli.compare)),
        Some(Command::CorpusScale(args)) => measure(scale::run(&args)),
        Some(Command::Readers(args)) => measure(readers::run(&args)),
        Some(Command::Retrieval(args)) => measure(retrieval::run(&args)),
        Some(Command::RetrievalStep(step)) => retrieval::run_step(&step),
        Some(Command::Market(args)) => measure(market::run(&args)),
        Some(Command::MarketStep(step)) => market::run_step(&step),
        Some(Command::Chat(args)) => measure(chat::run(&args)),
        Some(Command::Store(args)) => store::run(&args),
        Some(Command::ServeBare(args)) => servers::serve(Kind::Bare, &args),
        Some(Command::ServeBareJson(args)) => servers::serve(Kind::BareJson, &args),
        Some(Command::ServeRmcpJson(args)) => servers::serve(Kind::RmcpJson, &args),
        Some(Command::ServeRmcpDefault(args)) => servers::serve(Kind::RmcpDefault, &args),
    }
}

/// Runs a measurement on one thread, so that the load generator takes at most
/// one core. A signal ends it by dropping it, and with it every child process
/// and temporary directory.
fn measure(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the runtime")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("watch for SIGTERM")?;
        tokio::select! {
            done = work => done,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}
