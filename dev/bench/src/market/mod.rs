//! `market`: order books under load.
//!
//! - [`messages`]: depth messages with the shape of real ones;
//! - [`apply`]: parsing, applying and publishing; [`memory`]: memory of many books;
//! - [`exchange`]: an exchange that only sends such messages; [`live`]: the feed that follows it;
//! - [`answers`]: search and fetch against the simulated exchange;
//! - [`reports`]: cost of reports for many symbols; [`served`]: latency of `get_report`;
//! - [`table`]: the report.
//!
//! Each step runs in its own child process, so that memory and CPU time are not shared.

mod answers;
mod apply;
mod exchange;
mod live;
mod memory;
mod messages;
mod reports;
mod served;
mod table;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, value_parser};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use self::{
    answers::{Answers, AnswersArgs},
    apply::{Applied, ApplyArgs},
    exchange::ExchangeArgs,
    live::{Live, LiveArgs},
    memory::{Books, MemoryArgs},
    reports::{Reports, ReportsArgs},
    served::Served,
};
use crate::{
    own,
    process::{self, Server},
    report,
    servers::tribune,
};

const STEP_LIMIT: Duration = Duration::from_mins(5);
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Levels a side of the books that are applied to.
const DEPTHS: [u32; 2] = [1_000, 5_000];
/// Levels a side of many books.
const LEVELS: u32 = 1_000;
/// Books that one connection of the feed has.
const BOOKS_A_CONNECTION: u32 = 200;

#[derive(Args)]
pub struct MarketArgs {
    /// Depth messages to apply in each round
    #[arg(long, default_value_t = 50_000, value_parser = value_parser!(u32).range(1_000..=500_000))]
    messages: u32,
    /// Rounds, of whose rates the median is reported
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Books to keep in memory and live
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(1..=2_000))]
    books: u32,
    /// How long live books are measured, in seconds
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// The Tribune binary; without it the one beside this program
    #[arg(long, value_name = "FILE")]
    tribune: Option<PathBuf>,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// All measurements.
pub struct Measured {
    applied: Vec<Applied>,
    books: Books,
    live: Live,
    answers: Answers,
    reports: Reports,
    served: Vec<Served>,
}

/// The task of a child process.
#[derive(Subcommand)]
pub enum Step {
    Apply(ApplyArgs),
    Memory(MemoryArgs),
    Exchange(ExchangeArgs),
    Live(LiveArgs),
    Answers(AnswersArgs),
    Reports(ReportsArgs),
}

pub async fn run(args: &MarketArgs) -> Result<()> {
    let load_average = report::load_average();
    let dir = TempDir::with_prefix("tribune-market-").context("make a temporary directory")?;
    let dir = dir.path();
    let mut applied = Vec::new();
    let one_book = DEPTHS.map(|levels| (levels, 1));
    for (levels, books) in one_book.into_iter().chain([(LEVELS, BOOKS_A_CONNECTION)]) {
        eprintln!("applying messages: {books} of {levels} levels a side");
        let (messages, rounds) = (args.messages, args.rounds);
        let words = format!("apply --levels {levels} --books {books} --messages {messages} --rounds {rounds}");
        applied.push(step(dir, &words).await?);
    }
    eprintln!("filling {} books", args.books);
    let books = step(dir, &format!("memory --books {} --levels {LEVELS}", args.books)).await?;
    eprintln!("keeping {} books live", args.books);
    let live = live(dir, args).await?;
    eprintln!("searching and fetching");
    let answers = step(dir, "answers --symbols 2000 --times 1000").await?;
    eprintln!("computing reports of {} symbols", args.books);
    let (count, rounds) = (args.books, args.rounds);
    let reports = step(dir, &format!("reports --books {count} --levels {LEVELS} --rounds {rounds}")).await?;
    eprintln!("serving reports to {} callers", served::CALLERS);
    let served = match tribune::find(args.tribune.as_deref())? {
        Some(program) => served::measure(&program, dir, args.seconds.min(10)).await?,
        None => bail!("no tribune binary beside this program: build it, or name it with --tribune"),
    };
    let measured = Measured { applied, books, live, answers, reports, served };
    report::publish(&table::markdown(&load_average, &measured), args.out.as_deref())?;
    match measured.live.resyncs {
        0 => Ok(()),
        resyncs => bail!("books had to be started again {resyncs} times"),
    }
}

async fn live(dir: &Path, args: &MarketArgs) -> Result<Live> {
    let program = std::env::current_exe().context("find this program")?;
    let address = process::free_addr()?;
    let books = args.books;
    let words = arguments(&format!("exchange --listen {address} --books {books} --levels {LEVELS}"));
    let mut exchange = Server::start(&program, &words, address, &dir.join("exchange.log"), READY_LIMIT).await?;
    let words = format!("live --exchange {address} --books {books} --seconds {}", args.seconds);
    let live = step(dir, &words).await;
    exchange.check_alive().context("the exchange")?;
    exchange.stop().await?;
    live
}

async fn step<T: DeserializeOwned>(dir: &Path, words: &str) -> Result<T> {
    process::step(&arguments(words), &dir.join("step.log"), STEP_LIMIT).await
}

fn arguments(words: &str) -> Vec<OsString> {
    let words = words.split(' ').map(OsString::from);
    [OsString::from("market-step")].into_iter().chain(words).collect()
}

/// In the child.
pub fn run_step(step: &Step) -> Result<()> {
    match step {
        Step::Apply(args) => own::tell(&apply::measure(args)?),
        Step::Memory(args) => own::tell(&memory::measure(args)?),
        Step::Reports(args) => own::tell(&reports::measure(args)?),
        Step::Live(args) => own::tell(&runtime()?.block_on(live::measure(args))?),
        Step::Answers(args) => own::tell(&runtime()?.block_on(answers::measure(args))?),
        Step::Exchange(args) => runtime()?.block_on(exchange::serve(args)),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().context("start the runtime")
}
