//! How fast this machine embeds and scans, on one thread.
#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]
#![allow(clippy::print_stdout, reason = "its purpose")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use tribune_embed::scan::{Rows, ScanQuery, dots};
use tribune_embed::{Role, built_in, instructions};

fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let model = built_in()?;
    println!("{}, {}, loaded in {:.0?}", model.name(), instructions(), start.elapsed());
    // Words of one token each; start and end make two more.
    for tokens in [64, 128, 256] {
        let text = ["house", "of", "members", "time"].repeat(tokens / 4)[..tokens - 2].join(" ");
        let texts = vec![text.as_str(); 8];
        let before = processor_seconds();
        let seconds = best_of(6, || model.embed(Role::Passage, &texts))?;
        print!("{tokens} tokens: {:.1} passages a second", texts.len() as f64 / seconds);
        match (before, processor_seconds()) {
            (Some(before), Some(after)) => {
                let passages = 6 * texts.len();
                println!(", {:.1} a second of processor time", passages as f64 / (after - before));
            }
            _ => println!(),
        }
    }
    let query = "which members spoke about the price of water";
    let seconds = best_of(50, || model.embed(Role::Query, &[query]))?;
    println!("a query of 10 tokens: {:.2} ms", seconds * 1e3);
    scan()
}

fn scan() -> Result<(), Box<dyn Error>> {
    let (dimensions, count) = (384, 500_000);
    let records: Vec<u8> = (0..dimensions * count).map(|at| (at * 31) as u8).collect();
    let vector: Vec<f32> = (0..dimensions).map(|at| (at as f32).sin()).collect();
    let query = ScanQuery::new(&vector);
    let rows = Rows { records: &records, stride: dimensions, offset: 0, dimensions };
    let mut out = vec![0; count];
    let seconds = best_of(10, || {
        dots(&query, black_box(rows), &mut out);
        Ok::<_, Box<dyn Error>>(())
    })?;
    println!(
        "scan: {:.1} million rows of {dimensions} a second, {:.1} GB/s",
        count as f64 / seconds / 1e6,
        records.len() as f64 / seconds / 1e9
    );
    Ok(())
}

/// What this thread has had of a processor, where the system says: the measure to go by on a busy machine.
fn processor_seconds() -> Option<f64> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = times.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// The least seconds of several runs.
fn best_of<T, E>(runs: usize, mut work: impl FnMut() -> Result<T, E>) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        black_box(work()?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}
