//! Cost of reports for many symbols: the fast part four times a second, the slow part every two seconds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use tribune_binance::feed::Alone;
use tribune_binance::{Aggressor, Day, Moment, Notional, Price, Quantity, Symbol, Trade};
use tribune_core::SystemClock;
use tribune_reports::cache::NodeId;
use tribune_reports::compute::{Inputs, Slow, report, slow};

use super::messages::Flow;
use crate::{
    own::{Watch, at_share},
    process,
};

const MAX_LEVELS: usize = 6_000;
/// What a tape keeps.
const WINDOW: Duration = Duration::from_secs(900);
/// (symbols per thousand, trades per second); the rest has one trade per second.
const LIVELIEST: (usize, u32) = (10, 50);
const LIVELY: (usize, u32) = (100, 10);
const FAST_A_SECOND: f64 = 4.0;
const SLOW_A_SECOND: f64 = 0.5;
/// Observations of each book.
const LOOKS: i64 = 7;

#[derive(Args)]
pub struct ReportsArgs {
    #[arg(long)]
    books: u32,
    #[arg(long)]
    levels: u32,
    #[arg(long)]
    rounds: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Reports {
    pub symbols: u32,
    pub levels: u32,
    /// On all tapes.
    pub trades: u64,
    /// Fast computations a second of processor time.
    pub fast_core_rate: f64,
    pub fast: Percentiles,
    /// For the symbols with most trades.
    pub fast_liveliest: Percentiles,
    pub slow: Percentiles,
    pub slow_liveliest: Percentiles,
    /// Time to write a report as JSON.
    pub json: Percentiles,
    pub json_bytes: u64,
    /// Processor time of fast and slow computations of all symbols, in cores.
    pub cores: f64,
    /// The same with every fast report written as JSON.
    pub cores_with_json: f64,
    pub other_cores: f64,
}

#[derive(Serialize, Deserialize)]
pub struct Percentiles {
    pub p50_us: f64,
    pub p99_us: f64,
}

pub fn measure(args: &ReportsArgs) -> Result<Reports> {
    let market = Market::new(args);
    let node = NodeId::from("bench");
    let watch = Watch::start()?;
    let mut slows: Vec<Slow> = Vec::new();
    let (mut slow_times, mut fast_times, mut json_times) = (Times::default(), Times::default(), Times::default());
    let mut bytes = 0;
    for _ in 0..args.rounds {
        slows = slow_times.of(market.symbols.len(), |at| slow(&market.inputs(at)))?;
        for round in 0..4 {
            let reports =
                fast_times.of(market.symbols.len(), |at| report(&market.inputs(at), &slows[at], (&node, 1, round)))?;
            let texts = json_times.of(reports.len(), |at| serde_json::to_string(&reports[at]))?;
            bytes = texts.into_iter().flatten().map(|text| text.len()).sum();
        }
    }
    let spent = watch.stop()?;
    let profiles = slows.iter().filter(|slow| slow.figures.liquidity.volume_profile.is_some()).count();
    ensure!(profiles == slows.len(), "{profiles} symbols have a volume profile");
    let computing = FAST_A_SECOND * fast_times.mean() + SLOW_A_SECOND * slow_times.mean();
    let symbols = f64::from(args.books);
    Ok(Reports {
        symbols: args.books,
        levels: args.levels,
        trades: market.trades,
        fast_core_rate: 1.0 / fast_times.mean(),
        fast: fast_times.percentiles(|_| true)?,
        fast_liveliest: fast_times.percentiles(|at| at < LIVELIEST.0)?,
        slow: slow_times.percentiles(|_| true)?,
        slow_liveliest: slow_times.percentiles(|at| at < LIVELIEST.0)?,
        json: json_times.percentiles(|_| true)?,
        json_bytes: bytes as u64 / u64::from(args.books),
        cores: symbols * computing,
        cores_with_json: symbols * (computing + FAST_A_SECOND * json_times.mean()),
        other_cores: spent.other_cores(),
    })
}

/// Time of each computation by symbol, and total CPU time.
#[derive(Default)]
struct Times {
    each: Vec<(usize, Duration)>,
    cpu: Duration,
}

impl Times {
    fn of<T>(&mut self, count: usize, compute: impl Fn(usize) -> T) -> Result<Vec<T>> {
        let mut made = Vec::with_capacity(count);
        let cpu = process::thread_cpu()?;
        for at in 0..count {
            let begun = Instant::now();
            made.push(compute(at));
            self.each.push((at, begun.elapsed()));
        }
        self.cpu += process::thread_cpu()?.saturating_sub(cpu);
        Ok(made)
    }

    /// Processor seconds of one.
    fn mean(&self) -> f64 {
        self.cpu.as_secs_f64() / self.each.len() as f64
    }

    fn percentiles(&self, wanted: impl Fn(usize) -> bool) -> Result<Percentiles> {
        let wanted = self.each.iter().filter(|(at, _)| wanted(*at));
        let mut sorted: Vec<Duration> = wanted.map(|(_, time)| *time).collect();
        sorted.sort_unstable();
        let micros = |share| at_share(&sorted, share).map(|time| time.as_secs_f64() * 1e6);
        Ok(Percentiles {
            p50_us: micros(0.50).context("no computations")?,
            p99_us: micros(0.99).context("no computations")?,
        })
    }
}

/// Books and tapes at one moment.
struct Market {
    symbols: Vec<(Symbol, Alone<tribune_analytics::Watch>)>,
    day: Day,
    now: Moment,
    trades: u64,
}

impl Market {
    fn new(args: &ReportsArgs) -> Self {
        let levels = args.levels as usize;
        let mut flow = Flow::new(levels, 1);
        let snapshot = flow.book.snapshot(0, levels);
        let start = Moment::now(&SystemClock);
        let now = later(start, WINDOW);
        let mut trades = 0;
        let symbols = (0..args.books as usize).map(|number| {
            let name = format!("S{number:04}USDT");
            let mut alone = Alone::new(&name, snapshot.clone(), MAX_LEVELS, start);
            trades += trade(&alone, a_second(number), start, flow.next().best_bid);
            for look in (0..LOOKS).rev() {
                let at = now.wall.as_millisecond() - 1_000 * look;
                alone.publish(now);
                alone.look(now, at);
            }
            (symbol(&name), alone)
        });
        let symbols = symbols.collect();
        let day = Day {
            last: Price::from_units(9_712_345_000_000),
            open: Price::from_units(9_512_345_000_000),
            high: Price::from_units(9_812_345_000_000),
            low: Price::from_units(9_412_345_000_000),
            volume: Quantity::from_units(1_234_567_890_123),
            quote_volume: Notional::from_units(1_190_000_000_000_000_000_000_000_000),
            exchange_time: Some(now.wall.as_millisecond()),
            received: now,
        };
        Self { symbols, day, now, trades }
    }

    fn inputs(&self, at: usize) -> Inputs<'_> {
        let (symbol, alone) = &self.symbols[at];
        Inputs {
            symbol,
            published: alone.published(),
            day: Some(self.day),
            now: self.now,
            exchange_now: self.now.wall.as_millisecond(),
            simulated: None,
            old_for: Duration::ZERO,
        }
    }
}

fn a_second(number: usize) -> u32 {
    match number {
        number if number < LIVELIEST.0 => LIVELIEST.1,
        number if number < LIVELY.0 => LIVELY.1,
        _ => 1,
    }
}

/// A whole window of trades around a price that wanders; how many.
fn trade(alone: &Alone<tribune_analytics::Watch>, a_second: u32, start: Moment, best_bid: i64) -> u64 {
    let tape = &alone.published().tape;
    let count = u64::from(a_second) * WINDOW.as_secs();
    let first = start.wall.as_millisecond();
    let mut price = best_bid;
    for id in 1..=count {
        price += fastrand::i64(-3..=3);
        let quantity = fastrand::i128(1_000..500_000_000);
        tape.push(
            Trade {
                price: Price::from_units(price * 1_000_000),
                quantity: Quantity::from_units(quantity),
                time: first + (id * 1_000 / u64::from(a_second)) as i64,
                aggressor: if id % 2 == 0 { Aggressor::Buyer } else { Aggressor::Seller },
                first_id: id,
                last_id: id,
            },
            true,
        );
    }
    count
}

fn later(moment: Moment, by: Duration) -> Moment {
    Moment { wall: moment.wall + by, monotonic: moment.monotonic + by }
}

fn symbol(name: &str) -> Symbol {
    Symbol {
        tick_size: Some(Price::from_units(1_000_000)),
        ..Symbol::named(name, name.trim_end_matches("USDT"), "USDT")
    }
}
