//! `store`: how many task writes a second are acknowledged, each safe on the disk, and how long one takes.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, value_parser};
use jiff::Timestamp;
use tempfile::TempDir;
use tribune_core::UserId;
use tribune_storage::{Backend, Store};
use tribune_storage::{Priority, Task};
use uuid::Uuid;

use crate::report;

const CALLERS: [usize; 3] = [1, 16, 64];
/// Unmeasured at the start: connections are made and statements prepared.
const WARM_UP: Duration = Duration::from_millis(500);

#[derive(Args)]
pub struct StoreArgs {
    /// Where to make the SQLite file: the disk that is measured [default: the
    /// folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    sqlite: Option<PathBuf>,
    /// Also measure this PostgreSQL, in whose database tasks are added; see
    /// that its fsync is on
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    postgres: Option<String>,
    /// How long to measure each number of callers
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// On a runtime as Tribune has it: callers and writer share all cores.
pub fn run(args: &StoreArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;
    runtime.block_on(measure_all(args))
}

async fn measure_all(args: &StoreArgs) -> Result<()> {
    let load_average = report::load_average();
    let folder = match &args.sqlite {
        Some(folder) => TempDir::with_prefix_in("tribune-store-", folder),
        None => TempDir::with_prefix("tribune-store-"),
    };
    let folder = folder.context("make a folder for the SQLite file")?;
    let mut places = vec![("SQLite", Backend::Sqlite(folder.path().join("tribune.db")))];
    places.extend(args.postgres.clone().map(|url| ("PostgreSQL", Backend::Postgres(url))));

    let mut rows = Vec::new();
    for (name, place) in places {
        let store = Store::new(place)?;
        store.ready().await?;
        for callers in CALLERS {
            eprintln!("{name}, {callers} callers");
            rows.push(measure(name, &store, callers, Duration::from_secs(args.seconds)).await?);
        }
        store.close().await;
    }
    report::publish(&markdown(&load_average, &rows), args.out.as_deref())
}

struct Row {
    database: &'static str,
    callers: usize,
    writes_a_second: f64,
    p50: Duration,
    p99: Duration,
}

/// In a closed loop: each caller adds a task when its last one is acknowledged.
async fn measure(database: &'static str, store: &Store, callers: usize, measured_for: Duration) -> Result<Row> {
    let begin = Instant::now() + WARM_UP;
    let end = begin + measured_for;
    let calls = (0..callers).map(|number| tokio::spawn(add_until(store.clone(), number, begin, end)));
    let mut latencies = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        latencies.extend(call.await.context("a caller panicked")??);
    }
    latencies.sort();
    let percentile = |part: usize| latencies.get(latencies.len() * part / 100).copied().unwrap_or_default();
    Ok(Row {
        database,
        callers,
        writes_a_second: latencies.len() as f64 / measured_for.as_secs_f64(),
        p50: percentile(50),
        p99: percentile(99),
    })
}

async fn add_until(store: Store, number: usize, begin: Instant, end: Instant) -> Result<Vec<Duration>> {
    let tasks = store.tasks();
    let owner = UserId::new(&format!("user{number}"))?;
    let mut latencies = Vec::new();
    loop {
        let task = task();
        let asked = Instant::now();
        tasks.add(&owner, &task).await?;
        let told = Instant::now();
        if told >= end {
            return Ok(latencies);
        }
        if told >= begin {
            latencies.push(told - asked);
        }
    }
}

fn task() -> Task {
    let now = Timestamp::now();
    Task {
        id: Uuid::now_v7(),
        title: "Ask the printer for a quotation".to_owned(),
        description: Some("Two hundred copies, A5, on the paper that we had last year.".to_owned()),
        priority: Priority::Medium,
        category: Some("Office".to_owned()),
        tags: vec!["printing".to_owned(), "2026".to_owned()],
        due_date: None,
        created_at: now,
        updated_at: now,
        completed_at: None,
    }
}

fn markdown(load_average: &str, rows: &[Row]) -> String {
    let facts = [("Load average before the run", load_average.to_owned())];
    let mut text = report::heading("Task writes, each acknowledged when it is safe", &facts);
    text.push_str("| Database | Callers | Writes/s | p50 ms | p99 ms |\n| --- | ---: | ---: | ---: | ---: |\n");
    for row in rows {
        let ms = |duration: Duration| duration.as_secs_f64() * 1_000.0;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} | {:.2} | {:.2} |",
            row.database,
            row.callers,
            row.writes_a_second,
            ms(row.p50),
            ms(row.p99),
        );
    }
    text
}
