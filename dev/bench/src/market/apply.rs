//! Speed of parsing depth messages, applying them to books and publishing views, on one thread.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use tribune_binance::Moment;
use tribune_binance::feed::Alone;
use tribune_core::SystemClock;

use super::messages::{Flow, message};
use crate::{
    own::{Watch, at_share},
    process,
};

/// The most levels of a book, as in the feed.
const MAX_LEVELS: usize = 6_000;
/// Unmeasured messages at the start of each round.
const WARM_UP: u32 = 500;

#[derive(Args)]
pub struct ApplyArgs {
    #[arg(long)]
    levels: u32,
    #[arg(long)]
    books: u32,
    #[arg(long)]
    messages: u32,
    #[arg(long)]
    rounds: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Applied {
    pub levels: u32,
    pub books: u32,
    pub message_bytes: f64,
    /// Messages per second of CPU time; the median of the rounds.
    pub core_rate: f64,
    pub slowest_core_rate: f64,
    pub fastest_core_rate: f64,
    /// Messages per second of wall-clock time.
    pub rate: f64,
    /// Of one message, in all rounds.
    pub p50_us: f64,
    pub p99_us: f64,
    /// Time to publish a view, without parsing and applying.
    pub publish_p50_us: f64,
    pub publish_p99_us: f64,
    pub other_cores: f64,
}

pub fn measure(args: &ApplyArgs) -> Result<Applied> {
    let prepared = Prepared::new(args);
    let watch = Watch::start()?;
    let (mut core_rates, mut rates) = (Vec::new(), Vec::new());
    let (mut latencies, mut publishing) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let (cpu, wall) = prepared.apply_all(&mut latencies)?;
        core_rates.push(f64::from(args.messages) / cpu.as_secs_f64());
        rates.push(f64::from(args.messages) / wall.as_secs_f64());
    }
    // A separate round, because reading the clock slows the others down.
    prepared.publish_each(&mut publishing)?;
    let spent = watch.stop()?;
    core_rates.sort_by(f64::total_cmp);
    rates.sort_by(f64::total_cmp);
    latencies.sort_unstable();
    publishing.sort_unstable();
    let micros = |sorted: &[Duration], share| at_share(sorted, share).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6);
    let bytes: usize = prepared.messages.iter().map(String::len).sum();
    Ok(Applied {
        levels: args.levels,
        books: args.books,
        message_bytes: bytes as f64 / prepared.messages.len() as f64,
        core_rate: middle(&core_rates)?,
        slowest_core_rate: *core_rates.first().context("no rounds")?,
        fastest_core_rate: *core_rates.last().context("no rounds")?,
        rate: middle(&rates)?,
        p50_us: micros(&latencies, 0.50),
        p99_us: micros(&latencies, 0.99),
        publish_p50_us: micros(&publishing, 0.50),
        publish_p99_us: micros(&publishing, 0.99),
        other_cores: spent.other_cores(),
    })
}

/// The messages of one round, for all books in turn, and the books before them.
struct Prepared {
    flow: Flow,
    first: Flow,
    levels: usize,
    books: usize,
    messages: Vec<String>,
}

impl Prepared {
    fn new(args: &ApplyArgs) -> Self {
        let levels = args.levels as usize;
        let mut prepared = Self {
            flow: Flow::new(levels, 1),
            first: Flow::new(levels, 1),
            levels,
            books: args.books as usize,
            messages: Vec::new(),
        };
        let each = (WARM_UP + args.messages).div_ceil(args.books);
        for number in 0..u64::from(each) {
            let levels = prepared.flow.next().levels();
            for book in 0..prepared.books {
                prepared.messages.push(message(&name(book), number, &levels));
            }
        }
        prepared.messages.truncate((WARM_UP + args.messages) as usize);
        prepared
    }

    fn books(&self) -> Vec<Alone<tribune_analytics::Watch>> {
        let snapshot = self.first.book.snapshot(0, self.levels);
        let alone = |book| Alone::new(&name(book), snapshot.clone(), MAX_LEVELS, now());
        (0..self.books).map(alone).collect()
    }

    /// CPU time and wall-clock time of all measured messages.
    fn apply_all(&self, latencies: &mut Vec<Duration>) -> Result<(Duration, Duration)> {
        let mut books = self.books();
        let (warm_up, measured) = self.messages.split_at(WARM_UP as usize);
        for (number, text) in warm_up.iter().enumerate() {
            books[number % self.books].message(text, now());
        }
        latencies.reserve(measured.len());
        let cpu = process::thread_cpu()?;
        let begun = Instant::now();
        let mut before = begun;
        for (number, text) in (warm_up.len()..).zip(measured) {
            let now = now();
            ensure!(books[number % self.books].message(text, now), "a message was not understood");
            let after = Instant::now();
            latencies.push(after - before);
            before = after;
        }
        let spent = (process::thread_cpu()?.saturating_sub(cpu), begun.elapsed());
        let lost = books.iter().filter(|book| book.published().live().is_none()).count();
        ensure!(lost == 0, "{lost} books are not live after their messages");
        Ok(spent)
    }

    fn publish_each(&self, times: &mut Vec<Duration>) -> Result<()> {
        let mut books = self.books();
        for (number, text) in self.messages.iter().enumerate() {
            let book = &mut books[number % self.books];
            ensure!(book.apply(text), "a message was not applied");
            let now = now();
            let begun = Instant::now();
            book.publish(now);
            times.push(begun.elapsed());
        }
        Ok(())
    }
}

fn middle(sorted: &[f64]) -> Result<f64> {
    sorted.get(sorted.len() / 2).copied().context("no rounds")
}

fn name(book: usize) -> String {
    format!("S{book:04}USDT")
}

/// By both clocks, as the feed looks at them for every message.
fn now() -> Moment {
    Moment::now(&SystemClock)
}
