//! The comparison: every server, every workload, several rounds.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::{Args, value_parser};
use tempfile::TempDir;

use crate::{
    answers::Answers,
    corpus,
    load::{self, Check, Measured, Target},
    process::{self, Server},
    protocol::Workload,
    report::{self, Row, Sample},
    servers::{
        self, Kind,
        tribune::{self, Tribune},
    },
};

const TRIBUNE_READY_LIMIT: Duration = Duration::from_mins(1);

#[derive(Args)]
pub struct CompareArgs {
    /// Measure only these servers [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SERVER,...")]
    only: Vec<Kind>,
    /// The Tribune binary [default: the one built beside this program, else
    /// ../target/release/tribune]
    #[arg(long, value_name = "PATH")]
    tribune: Option<PathBuf>,
    /// Measured time for each server, workload and round, in seconds
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u64).range(1..=120))]
    seconds: u64,
    /// Unmeasured time before it, in seconds
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u64).range(0..=60))]
    warm_up: u64,
    /// Keep-alive connections, each with one request under way
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u16).range(1..=1024))]
    connections: u16,
    /// Rounds over all servers; the median is reported
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u8).range(1..=15))]
    rounds: u8,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// All that a round needs.
struct Bench<'a> {
    args: &'a CompareArgs,
    dir: TempDir,
    queries: Vec<String>,
    tribune: Option<Tribune>,
    answers: Answers,
    answers_file: PathBuf,
    load_average: String,
}

pub async fn run(args: &CompareArgs) -> Result<()> {
    let bench = Bench::prepare(args).await?;
    let kinds = bench.kinds()?;
    let mut rows: Vec<Row> =
        Workload::ALL.iter().flat_map(|&workload| kinds.iter().map(move |&kind| Row::new(kind, workload))).collect();
    for round in 0..usize::from(args.rounds) {
        for step in 0..kinds.len() {
            // Each round starts with another server, so that none is always
            // measured first or after the same neighbour.
            let kind = kinds[(round + step) % kinds.len()];
            bench.measure(kind, round, &mut rows).await?;
        }
    }
    bench.report(&rows)
}

impl<'a> Bench<'a> {
    async fn prepare(args: &'a CompareArgs) -> Result<Self> {
        let dir = TempDir::with_prefix("tribune-bench-").context("make a temporary directory")?;
        let notes = dir.path().join("notes");
        let queries = corpus::write_notes(&notes)?;
        let tribune = tribune::find(args.tribune.as_deref())?
            .map(|program| Tribune::configure(&program, dir.path(), &notes))
            .transpose()?;
        let answers = answers(tribune.as_ref(), dir.path(), &queries).await?;
        eprintln!("answers: {}", answers.origin);
        let answers_file = dir.path().join("answers.json");
        answers.save(&answers_file)?;
        Ok(Self { args, load_average: report::load_average(), dir, queries, tribune, answers, answers_file })
    }

    fn kinds(&self) -> Result<Vec<Kind>> {
        let asked = &self.args.only;
        if asked.contains(&Kind::Tribune) && self.tribune.is_none() {
            bail!("no tribune binary; build it or name it with --tribune");
        }
        let wanted = |kind: &Kind| match asked.as_slice() {
            [] => *kind != Kind::Tribune || self.tribune.is_some(),
            some => some.contains(kind),
        };
        Ok(Kind::ALL.into_iter().filter(wanted).collect())
    }

    /// One round of one server: both workloads on one fresh process.
    async fn measure(&self, kind: Kind, round: usize, rows: &mut [Row]) -> Result<()> {
        let mut server = self.start(kind).await?;
        for workload in Workload::ALL {
            let measured = self.load(&server, workload).await?;
            progress(kind, workload, round, &measured);
            server.check_alive().context(kind.label())?;
            let sample = sample(&server, &measured)?;
            rows.iter_mut()
                .filter(|row| row.kind == kind && row.workload == workload)
                .for_each(|row| row.samples.push(sample));
        }
        server.stop().await
    }

    async fn start(&self, kind: Kind) -> Result<Server> {
        let log = self.dir.path().join(format!("{}.log", kind.label()));
        match (kind, &self.tribune) {
            (Kind::Tribune, Some(tribune)) => tribune.start(&log, TRIBUNE_READY_LIMIT).await,
            _ => servers::start_peer(kind, &self.answers_file, &log).await,
        }
    }

    async fn load(&self, server: &Server, workload: Workload) -> Result<Measured> {
        let target = Target {
            addr: server.addr,
            pid: server.pid,
            requests: workload.requests(server.addr, &self.queries),
            connections: usize::from(self.args.connections),
            pace: None,
            check: Check::knowing(self.answers.of(workload).body.as_bytes()),
        };
        let warm_up = Duration::from_secs(self.args.warm_up);
        load::run_for(target, warm_up, Duration::from_secs(self.args.seconds)).await
    }

    fn report(&self, rows: &[Row]) -> Result<()> {
        let settings = format!(
            "{} connections, {} s warm-up, {} s measured, median of {} rounds; load generator: \
             one thread on the same machine; {} different queries",
            self.args.connections,
            self.args.warm_up,
            self.args.seconds,
            self.args.rounds,
            corpus::QUERIES,
        );
        let facts = [
            ("Load average before the run", self.load_average.clone()),
            ("Load", settings),
            ("Answers", self.answers.origin.clone()),
        ];
        let text = report::comparison(&facts, rows);
        report::publish(&text, self.args.out.as_deref())?;
        match rows.iter().map(Row::failures).sum::<u64>() {
            0 => Ok(()),
            failures => bail!("{failures} requests failed"),
        }
    }
}

async fn answers(tribune: Option<&Tribune>, dir: &Path, queries: &[String]) -> Result<Answers> {
    let Some(tribune) = tribune else {
        return Ok(Answers::prepared());
    };
    let log = dir.join("tribune-capture.log");
    let server = tribune.start(&log, TRIBUNE_READY_LIMIT).await?;
    let answers = Answers::capture(&server, queries).await.context("capture Tribune's answers")?;
    server.stop().await?;
    Ok(answers)
}

fn sample(server: &Server, measured: &Measured) -> Result<Sample> {
    let requests = measured.requests().max(1) as f64;
    let micros_each = |time: Duration| time.as_secs_f64() * 1e6 / requests;
    Ok(Sample {
        rate: measured.requests() as f64 / measured.elapsed.as_secs_f64(),
        server_cpu_us: micros_each(measured.server_cpu),
        client_cpu_us: micros_each(measured.client_cpu),
        other_cores: measured.other_cpu.as_secs_f64() / measured.elapsed.as_secs_f64(),
        p50_ms: measured.latency_ms(0.50),
        p99_ms: measured.latency_ms(0.99),
        answer_bytes: measured.body_bytes as f64 / requests,
        rss_kib: process::memory(server.pid)?.now_kib as f64,
        threads: process::threads(server.pid)? as f64,
        failures: measured.failures,
    })
}

/// Standard error, so that standard output holds nothing but the report.
fn progress(kind: Kind, workload: Workload, round: usize, measured: &Measured) {
    eprintln!(
        "round {}: {:<12} {:<30} {:>9.0} requests/s, {} failed",
        round + 1,
        kind.label(),
        workload.label(),
        measured.requests() as f64 / measured.elapsed.as_secs_f64(),
        measured.failures,
    );
    if let Some(reason) = &measured.first_failure {
        eprintln!("  first failure: {reason}");
    }
}
