//! `readers`: what it costs to search only the documents that a caller may see, by keywords and with vectors.

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
use tribune_core::{CallContext, Principal, Query, Source, UserId};
use tribune_corpus::{Collection, DocumentsSource, Folder, Limits, Pool, Reading, Settings};
use tribune_embed::Embedder;

use crate::{
    corpus,
    own::{at_share, ms},
    report,
    retrieval::Generated,
};

/// Of how many groups each caller is a member.
const MEMBERSHIPS: [usize; 4] = [1, 10, 100, 900];
const LIMIT: usize = 10;
/// Unmeasured queries at the start of each caller.
const WARM_UP: usize = 100;
/// No deadline ends a search here.
const PATIENCE: Duration = Duration::from_hours(2);
/// How many times the p99 of everything that of a caller may be.
const MOST: f64 = 1.5;

#[derive(Args)]
pub struct ReadersArgs {
    /// Documents to write and index
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1_000..=1_000_000))]
    docs: u32,
    /// Groups; each document is for one of them
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(900..=10_000))]
    groups: u32,
    /// Different queries, each sent by every caller
    #[arg(long, default_value_t = 2_000, value_parser = value_parser!(u32).range(1..=20_000))]
    queries: u32,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

struct Caller {
    label: String,
    cx: CallContext,
    latencies: Vec<Duration>,
}

/// The callers of one ranking, the one who sees everything first.
struct Measured {
    ranking: &'static str,
    callers: Vec<Caller>,
}

pub async fn run(args: &ReadersArgs) -> Result<()> {
    let load_average = report::load_average();
    let measured = measure_both(args).await?;
    let facts = [
        ("Load average before the run", load_average),
        ("Corpus", format!("{} documents, each for one of {} groups", args.docs, args.groups)),
        ("Queries", format!("{} different ones, one at a time", args.queries)),
    ];
    report::publish(&table(&facts, &measured), args.out.as_deref())?;
    check(&measured)
}

async fn measure_both(args: &ReadersArgs) -> Result<[Measured; 2]> {
    let dir = TempDir::with_prefix("tribune-readers-").context("make a temporary directory")?;
    let folder = dir.path().join("documents");
    fs::create_dir_all(&folder).context("make the corpus directory")?;
    eprintln!("writing and indexing {} documents", args.docs);
    let plain = dir.path().join("plain.jsonl");
    let written = corpus::write_documents(&plain, args.docs as usize, WARM_UP + args.queries as usize)?;
    add_readers(&plain, &folder.join("corpus.jsonl"), args.groups as usize)?;
    let keywords = source(dir.path(), &folder, None)?;
    let indexed = keywords.update(&CancellationToken::new(), &|_| ())?;
    ensure!(indexed.documents == u64::from(args.docs), "{} documents are indexed", indexed.documents);

    let by_keywords = measure("keywords", &keywords, &written.queries).await?;
    drop(keywords);
    eprintln!("making vectors");
    let hybrid = source(dir.path(), &folder, Some(Arc::new(Generated::new())))?;
    hybrid.refresh()?;
    hybrid.embed(&CancellationToken::new(), &|_| ())?.context("there is no index to make vectors for")?;
    let (passages, covered) = hybrid.seen_in_full()?.coverage();
    ensure!(covered == passages, "only {covered} of {passages} passages have a vector");
    let by_both = measure("keywords and vectors", &hybrid, &written.queries).await?;
    Ok([by_keywords, by_both])
}

/// Searches as a caller of the server does, with all that decides what they see.
async fn measure(ranking: &'static str, source: &DocumentsSource, queries: &[String]) -> Result<Measured> {
    eprintln!("searching by {ranking}");
    let mut callers = vec![Caller::new("everything (the operator)", operator())];
    for memberships in MEMBERSHIPS {
        callers.push(Caller::new(&format!("{memberships} groups"), member(memberships)?));
    }
    for (number, text) in queries.iter().enumerate() {
        let query = Query { text: text.clone(), limit: LIMIT };
        // In turn, so that noise of the machine falls on all of them; another one first each time, because who asks
        // first fills caches for the others.
        callers.rotate_left(1);
        for caller in &mut callers {
            let started = Instant::now();
            let found = source.search(&query, &caller.cx).await?;
            let took = started.elapsed();
            ensure!(found.len() <= LIMIT, "{} results", found.len());
            if number >= WARM_UP {
                caller.latencies.push(took);
            }
        }
    }
    let turned = queries.len() % callers.len();
    callers.rotate_right(turned);
    callers.iter_mut().for_each(|caller| caller.latencies.sort_unstable());
    Ok(Measured { ranking, callers })
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

fn source(dir: &Path, folder: &Path, embedder: Option<Arc<dyn Embedder>>) -> Result<DocumentsSource> {
    let settings = Settings {
        name: "notes".to_owned(),
        title: "Notes".to_owned(),
        description: None,
        readers: tribune_core::Readers::default(),
        provider: Arc::new(Folder::new(folder, Reading::default(), Limits::default())),
        collection: Collection::default(),
        index_dir: dir.join("index"),
        embedder,
    };
    Ok(DocumentsSource::new(settings, Pool::start()?))
}

fn operator() -> CallContext {
    CallContext::new(Principal::Local, Instant::now() + PATIENCE)
}

fn member(memberships: usize) -> Result<CallContext> {
    let groups: Vec<String> = (0..memberships).map(|number| format!("g{number}")).collect();
    let user = Principal::User(UserId::new("ann")?);
    Ok(CallContext { groups: groups.into(), ..CallContext::new(user, Instant::now() + PATIENCE) })
}

impl Caller {
    fn new(label: &str, cx: CallContext) -> Self {
        Self { label: label.to_owned(), cx, latencies: Vec::new() }
    }

    fn at(&self, share: f64) -> f64 {
        at_share(&self.latencies, share).map_or(f64::NAN, ms)
    }
}

impl Measured {
    /// Each caller, with their p99 to that of everything.
    fn compared(&self) -> impl Iterator<Item = (&Caller, f64)> {
        let everything = self.callers.first().map_or(f64::NAN, |caller| caller.at(0.99));
        self.callers.iter().map(move |caller| (caller, caller.at(0.99) / everything))
    }
}

fn table(facts: &[(&str, String)], measured: &[Measured]) -> String {
    let mut text = report::heading("Search of what a caller may see", facts);
    text.push_str("| Search by | Sees | p50 ms | p99 ms | p99 to that of everything |\n");
    text.push_str("| --- | --- | ---: | ---: | ---: |\n");
    for one in measured {
        for (caller, factor) in one.compared() {
            let (label, p50, p99) = (&caller.label, caller.at(0.50), caller.at(0.99));
            text.push_str(&format!("| {} | {label} | {p50:.2} | {p99:.2} | {factor:.2} |\n", one.ranking));
        }
    }
    text
}

/// Fails if somebody waits too long for not seeing everything.
fn check(measured: &[Measured]) -> Result<()> {
    for one in measured {
        for (caller, factor) in one.compared() {
            ensure!(
                factor <= MOST,
                "{}: the p99 of {} is {factor:.2} times that of everything",
                one.ranking,
                caller.label
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_caller_is_measured_by_both_rankings() -> Result<()> {
        let args = ReadersArgs { docs: 1_000, groups: 900, queries: 7, out: None };
        for one in measure_both(&args).await? {
            let labels: Vec<&str> = one.callers.iter().map(|caller| caller.label.as_str()).collect();
            assert_eq!(labels, ["everything (the operator)", "1 groups", "10 groups", "100 groups", "900 groups"]);
            assert!(one.callers.iter().all(|caller| caller.latencies.len() == 7), "{}", one.ranking);
        }
        Ok(())
    }

    #[test]
    fn slow_readers_fail_the_benchmark() -> Result<()> {
        let caller =
            |millis| Caller { latencies: vec![Duration::from_millis(millis)], ..Caller::new("somebody", operator()) };
        let measured = |millis| [Measured { ranking: "keywords", callers: vec![caller(100), caller(millis)] }];
        check(&measured(150))?;
        assert!(check(&measured(151)).is_err());
        Ok(())
    }
}
