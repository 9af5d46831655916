//! `corpus-scale`: how fast a large corpus is indexed, and how fast it is
//! searched.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use clap::{Args, value_parser};
use tempfile::TempDir;

use crate::{
    corpus,
    load::{self, Check, Measured, Target},
    process::{self, Finished, Server},
    protocol,
    report::{self, QueryRow},
    servers::tribune::{self, Tribune},
};

const CONCURRENCIES: [usize; 2] = [1, 8];
/// Unmeasured queries at the start, for caches and lazily read index files.
const WARM_UP: usize = 200;
const READY_LIMIT: Duration = Duration::from_mins(5);
const QUERIES_LIMIT: Duration = Duration::from_mins(5);

#[derive(Args)]
pub struct ScaleArgs {
    /// The Tribune binary [default: the one built beside this program, else
    /// ../target/release/tribune]
    #[arg(long, value_name = "PATH")]
    tribune: Option<PathBuf>,
    /// Documents to write and index
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1_000..=1_000_000))]
    docs: u32,
    /// Queries to send, at concurrency 1 and as many others at 8
    #[arg(long, default_value_t = 5_000, value_parser = value_parser!(u32).range(1..=20_000))]
    queries: u32,
    /// How long indexing may take, in seconds
    #[arg(long, default_value_t = 1_800, value_parser = value_parser!(u64).range(1..=7_200))]
    index_limit: u64,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub async fn run(args: &ScaleArgs) -> Result<()> {
    let program =
        tribune::find(args.tribune.as_deref())?.context("no tribune binary; build it or name it with --tribune")?;
    let dir = TempDir::with_prefix("tribune-scale-").context("make a temporary directory")?;
    let folder = dir.path().join("documents");
    fs::create_dir_all(&folder).context("make the corpus directory")?;

    let load_average = report::load_average();
    let each = args.queries as usize;
    let wanted = WARM_UP + each * CONCURRENCIES.len();
    eprintln!("writing {} documents", args.docs);
    let documents = corpus::write_documents(&folder.join("corpus.jsonl"), args.docs as usize, wanted)?;

    let tribune = Tribune::configure(&program, dir.path(), &folder)?;
    eprintln!("indexing");
    let limit = Duration::from_secs(args.index_limit);
    let log = dir.path().join("index.log");
    let indexed =
        process::run_to_end(&tribune.program, &tribune.index_args(), &log, limit).await.context("tribune index")?;

    eprintln!("starting the server");
    let mut server = tribune.start(&dir.path().join("serve.log"), READY_LIMIT).await?;
    let rows = query(&server, &documents.queries, each).await?;
    server.check_alive().context("tribune")?;
    let memory = process::memory(server.pid)?;
    server.stop().await?;

    let mut facts = vec![("Load average before the run", load_average)];
    facts.extend(index_facts(args, documents.bytes, &indexed));
    let mib = |kib: u64| format!("{:.1} MiB", kib as f64 / 1024.0);
    facts.push(("Server RSS after the queries", mib(memory.now_kib)));
    facts.push(("Server peak RSS (VmHWM)", mib(memory.peak_kib)));
    report::publish(&report::scale(&facts, &rows), args.out.as_deref())?;
    match rows.iter().map(|row| row.failures).sum::<u64>() {
        0 => Ok(()),
        failures => bail!("{failures} queries failed"),
    }
}

/// Different queries at each concurrency, so that a cache does not help the second.
async fn query(server: &Server, queries: &[String], each: usize) -> Result<Vec<QueryRow>> {
    let (warm_up, rest) = queries.split_at(WARM_UP.min(queries.len()));
    send(server, warm_up, 1).await?;
    let mut rows = Vec::new();
    for (concurrency, batch) in CONCURRENCIES.into_iter().zip(rest.chunks(each)) {
        eprintln!("{} queries at concurrency {concurrency}", batch.len());
        let measured = send(server, batch, concurrency).await?;
        if let Some(reason) = &measured.first_failure {
            eprintln!("  first failure: {reason}");
        }
        rows.push(row(concurrency, &measured));
    }
    Ok(rows)
}

async fn send(server: &Server, queries: &[String], connections: usize) -> Result<Measured> {
    let requests = queries
        .iter()
        .enumerate()
        .map(|(index, query)| protocol::search_request(server.addr, index + 1, query))
        .collect();
    let target =
        Target { addr: server.addr, pid: server.pid, requests, connections, pace: None, check: Check::strict() };
    load::run_once_each(target, QUERIES_LIMIT).await
}

fn row(concurrency: usize, measured: &Measured) -> QueryRow {
    let requests = measured.requests();
    QueryRow {
        concurrency,
        queries: requests,
        rate: requests as f64 / measured.elapsed.as_secs_f64(),
        latencies_ms: [0.50, 0.95, 0.99, 1.0].map(|quantile| measured.latency_ms(quantile)),
        cpu_ms: measured.server_cpu.as_secs_f64() * 1e3 / requests.max(1) as f64,
        failures: measured.failures,
    }
}

fn index_facts(args: &ScaleArgs, bytes: u64, indexed: &Finished) -> [(&'static str, String); 4] {
    let docs = f64::from(args.docs);
    let wall = indexed.elapsed.as_secs_f64();
    let cpu = indexed.cpu.as_secs_f64();
    [
        ("Corpus", format!("{} documents, {:.1} MB of JSONL", args.docs, bytes as f64 / 1e6)),
        ("Indexing", format!("{wall:.2} s, {:.0} documents/s", docs / wall)),
        ("Indexing per core", format!("{cpu:.2} s of CPU, {:.0} documents per CPU second", docs / cpu)),
        ("Indexing peak RSS", format!("{:.1} MiB", indexed.peak_kib as f64 / 1024.0)),
    ]
}
