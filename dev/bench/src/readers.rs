//! `readers`: what it costs to search only the documents that a caller may see.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Principal, UserId};
use tribune_corpus::{Collection, DocumentsSource, Folder, Limits, Pool, Reading, Settings, snapshot::Snapshot};

use crate::{corpus, report};

/// Of how many groups each caller is a member.
const MEMBERSHIPS: [usize; 4] = [1, 10, 100, 900];
const LIMIT: usize = 10;
/// Unmeasured queries at the start of each caller.
const WARM_UP: usize = 100;

#[derive(Args)]
pub struct ReadersArgs {
    /// Documents to write and index
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1_000..=1_000_000))]
    docs: u32,
    /// Groups; each document is for one of them
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(900..=10_000))]
    groups: u32,
    /// Different queries, each sent by every caller
    #[arg(long, default_value_t = 5_000, value_parser = value_parser!(u32).range(1..=20_000))]
    queries: u32,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

struct Caller {
    label: String,
    snapshot: Snapshot,
    latencies: Vec<Duration>,
}

pub async fn run(args: &ReadersArgs) -> Result<()> {
    let load_average = report::load_average();
    let dir = TempDir::with_prefix("tribune-readers-").context("make a temporary directory")?;
    let folder = dir.path().join("documents");
    fs::create_dir_all(&folder).context("make the corpus directory")?;
    eprintln!("writing and indexing {} documents", args.docs);
    let plain = dir.path().join("plain.jsonl");
    let written = corpus::write_documents(&plain, args.docs as usize, WARM_UP + args.queries as usize)?;
    add_readers(&plain, &folder.join("corpus.jsonl"), args.groups as usize)?;
    let source = source(dir.path(), &folder)?;
    let indexed = source.update(&CancellationToken::new(), &|_| ())?;
    ensure!(indexed.documents == u64::from(args.docs), "{} documents are indexed", indexed.documents);

    let mut callers = vec![caller("everything (the operator)", &source, &operator())?];
    for memberships in MEMBERSHIPS {
        callers.push(caller(&format!("{memberships} groups"), &source, &member(memberships)?)?);
    }
    let (warm_up, measured) = written.queries.split_at(WARM_UP.min(written.queries.len()));
    for query in warm_up {
        callers.iter().try_for_each(|caller| caller.snapshot.search(query, LIMIT).map(drop))?;
    }
    // In turn, so that noise of the machine falls on all of them.
    for query in measured {
        for caller in &mut callers {
            let started = Instant::now();
            caller.snapshot.search(query, LIMIT)?;
            caller.latencies.push(started.elapsed());
        }
    }
    let facts = [
        ("Load average before the run", load_average),
        ("Corpus", format!("{} documents, each for one of {} groups", args.docs, args.groups)),
        ("Queries", format!("{} different ones, by keywords, one at a time", measured.len())),
    ];
    report::publish(&table(&facts, &mut callers), args.out.as_deref())
}

/// Copies documents, each for the next group.
fn add_readers(from: &Path, to: &Path, groups: usize) -> Result<()> {
    let rows = BufReader::new(File::open(from).context("open the documents")?).lines();
    let mut out = BufWriter::new(File::create(to).context("create the documents")?);
    for (number, row) in rows.enumerate() {
        let mut row: Value = serde_json::from_str(&row?)?;
        row["readers"] = format!("group:g{}", number % groups).into();
        writeln!(out, "{row}")?;
    }
    out.flush().context("write the documents")
}

fn source(dir: &Path, folder: &Path) -> Result<DocumentsSource> {
    let settings = Settings {
        name: "notes".to_owned(),
        title: "Notes".to_owned(),
        description: None,
        readers: tribune_core::Readers::default(),
        provider: Arc::new(Folder::new(folder, Reading::default(), Limits::default())),
        collection: Collection::default(),
        index_dir: dir.join("index"),
        embedder: None,
    };
    Ok(DocumentsSource::new(settings, Pool::start()?))
}

fn operator() -> CallContext {
    CallContext::new(Principal::Local, Instant::now())
}

fn member(memberships: usize) -> Result<CallContext> {
    let user = Principal::User(UserId::new("ann")?);
    let groups: Vec<String> = (0..memberships).map(|number| format!("g{number}")).collect();
    Ok(CallContext { groups: groups.into(), ..CallContext::new(user, Instant::now()) })
}

fn caller(label: &str, source: &DocumentsSource, cx: &CallContext) -> Result<Caller> {
    let snapshot = source.seen_by(cx)?.context("the source is open to all")?;
    Ok(Caller { label: label.to_owned(), snapshot, latencies: Vec::new() })
}

fn table(facts: &[(&str, String)], callers: &mut [Caller]) -> String {
    let mut text = report::heading("Search of what a caller may see", facts);
    text.push_str("| Sees | p50 ms | p99 ms | p99 to that of everything |\n| --- | ---: | ---: | ---: |\n");
    let mut everything = None;
    for caller in callers {
        caller.latencies.sort_unstable();
        let at = |share: f64| {
            let last = caller.latencies.len().saturating_sub(1);
            caller.latencies.get((last as f64 * share) as usize).map_or(0.0, |took| took.as_secs_f64() * 1e3)
        };
        let (p50, p99) = (at(0.50), at(0.99));
        let base = *everything.get_or_insert(p99);
        text.push_str(&format!("| {} | {p50:.2} | {p99:.2} | {:.2} |\n", caller.label, p99 / base));
    }
    text
}
