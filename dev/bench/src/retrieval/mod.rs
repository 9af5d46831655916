//! `retrieval`: Tribune's index and search beside SQLite's full text and plain tantivy, over the same
//! generated texts.
//!
//! - [`texts`]: documents and questions; [`generated`]: generated vectors;
//! - [`engines`]: the interface; [`tribune`], [`tantivy_alone`], [`sqlite`]: the engines;
//! - [`measure`]: latencies; [`embedding`]: real models; [`start`]: a server's start;
//! - [`table`]: the report.
//!
//! Each step runs in its own child process, so that memory and caches are not shared.

mod embedding;
mod engines;
mod generated;
mod measure;
mod sqlite;
mod start;
mod table;
mod tantivy_alone;
mod texts;
mod tribune;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use clap::{Args, Subcommand, value_parser};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tempfile::TempDir;

pub use self::generated::Generated;
use self::{
    embedding::Embedding,
    engines::{Asking, Engine, Making},
    start::Start,
    texts::Corpus,
};
use crate::{own, process, report, servers::tribune as binary};

const STEP_LIMIT: Duration = Duration::from_hours(2);

#[derive(Args)]
pub struct RetrievalArgs {
    /// Sizes to measure, in passages
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000], value_name = "N,...",
        value_parser = value_parser!(u32).range(1_000..=10_000_000))]
    passages: Vec<u32>,
    /// Different questions in each set, of which every engine is asked up to four
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(100..=20_000))]
    queries: u32,
    /// Measure only these engines [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ENGINE,...")]
    only: Vec<Engine>,
    /// A set that takes longer than this is ended with the questions answered by then, in seconds
    #[arg(long, default_value_t = 120, value_parser = value_parser!(u64).range(1..=3_600))]
    set_limit: u64,
    /// The Tribune binary to start on the largest index [default: the one built beside this program,
    /// else ../target/release/tribune]
    #[arg(long, value_name = "PATH", env = "TRIBUNE_BIN")]
    tribune: Option<PathBuf>,
    /// Keep texts and indexes in this folder; what is found there is not made again
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write everything that was measured to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// All measurements.
#[derive(Serialize)]
pub struct Measured {
    sizes: Vec<Size>,
    start: Vec<Start>,
    embedding: Embedding,
    /// Whether questions went through the built-in model.
    real_questions: bool,
}

#[derive(Serialize)]
struct Size {
    passages: u32,
    text_bytes: u64,
    engines: Vec<Engined>,
}

#[derive(Serialize)]
struct Engined {
    engine: Engine,
    making: Making,
    asking: Asking,
}

pub async fn run(args: &RetrievalArgs) -> Result<()> {
    let load_average = report::load_average();
    let temporary = TempDir::with_prefix("tribune-retrieval-").context("make a temporary directory")?;
    let root = args.keep.as_deref().unwrap_or(temporary.path());
    let mut measured = Measured {
        sizes: Vec::new(),
        start: Vec::new(),
        embedding: Embedding::default(),
        real_questions: generated::model().is_some(),
    };
    let largest = args.passages.iter().max();
    for passages in &args.passages {
        let corpus = Corpus { dir: root.join(passages.to_string()) };
        measured.sizes.push(size(args, *passages, &corpus).await?);
        if Some(passages) == largest && args.wants(Engine::Tribune) {
            let program = binary::find(args.tribune.as_deref())?;
            let vectors = args.wants(Engine::TribuneVectors) && measured.real_questions;
            measured.start = start::measure(program.as_deref(), &corpus, vectors).await?;
        }
        if args.keep.is_none() {
            fs::remove_dir_all(&corpus.dir).context("remove what is measured")?;
        }
    }
    eprintln!("embedding");
    measured.embedding = step(&root.join("embedding.log"), Step::Embed).await?;
    if let Some(path) = &args.json {
        let json = serde_json::to_vec_pretty(&measured)?;
        fs::write(path, json).with_context(|| format!("write {}", path.display()))?;
    }
    report::publish(&table::markdown(&load_average, &measured), args.out.as_deref())
}

impl RetrievalArgs {
    fn wants(&self, engine: Engine) -> bool {
        self.only.is_empty() || self.only.contains(&engine)
    }
}

async fn size(args: &RetrievalArgs, passages: u32, corpus: &Corpus) -> Result<Size> {
    if !corpus.is_written() {
        eprintln!("writing {passages} passages");
        corpus.write(passages as usize, engines::questions_for(args.queries as usize))?;
    }
    let mut engines = Vec::new();
    for engine in Engine::ALL.into_iter().filter(|engine| args.wants(*engine)) {
        let made = corpus.dir.join(format!("{}.made.json", engine.label()));
        if !made.exists() {
            eprintln!("{passages}: {}, making the index", engine.label());
            let dir = corpus.dir.clone();
            let making: Making = step(&log(corpus, engine, "make"), Step::Make { engine, dir }).await?;
            fs::write(&made, serde_json::to_vec(&making)?)?;
        }
        let making = serde_json::from_slice(&fs::read(&made)?).context("read how the index was made")?;
        eprintln!("{passages}: {}, asking", engine.label());
        let ask = Step::Ask { engine, dir: corpus.dir.clone(), each: args.queries, set_limit: args.set_limit };
        let asking = step(&log(corpus, engine, "ask"), ask).await?;
        engines.push(Engined { engine, making, asking });
    }
    Ok(Size { passages, text_bytes: corpus.bytes()?, engines })
}

fn log(corpus: &Corpus, engine: Engine, what: &str) -> PathBuf {
    corpus.dir.join(format!("{}.{what}.log", engine.label()))
}

/// The task of a child process.
#[derive(Subcommand, Serialize, Deserialize)]
pub enum Step {
    Make {
        #[arg(long)]
        engine: Engine,
        #[arg(long)]
        dir: PathBuf,
    },
    Ask {
        #[arg(long)]
        engine: Engine,
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        each: u32,
        #[arg(long)]
        set_limit: u64,
    },
    Embed,
}

/// Runs in the child and prints the measurement as the last line.
pub fn run_step(step: &Step) -> Result<()> {
    let corpus = |dir: &Path| Corpus { dir: dir.to_owned() };
    match step {
        Step::Make { engine, dir } => own::tell(&engines::make(*engine, &corpus(dir))?),
        Step::Ask { engine, dir, each, set_limit } => {
            own::tell(&engines::ask(*engine, &corpus(dir), *each as usize, *set_limit)?)
        }
        Step::Embed => own::tell(&embedding::measure()?),
    }
}

async fn step<T: DeserializeOwned>(log: &Path, step: Step) -> Result<T> {
    process::step(&step.arguments()?, log, STEP_LIMIT).await
}

impl Step {
    fn arguments(&self) -> Result<Vec<OsString>> {
        use clap::ValueEnum;
        let name = |engine: &Engine| -> Result<OsString> {
            let value = engine.to_possible_value().context("an engine without a name")?;
            Ok(value.get_name().into())
        };
        let mut args: Vec<OsString> = vec!["retrieval-step".into()];
        match self {
            Self::Make { engine, dir } => {
                args.extend(["make".into(), "--engine".into(), name(engine)?, "--dir".into(), dir.into()]);
            }
            Self::Ask { engine, dir, each, set_limit } => {
                args.extend(["ask".into(), "--engine".into(), name(engine)?, "--dir".into(), dir.into()]);
                args.extend(["--each".into(), each.to_string().into()]);
                args.extend(["--set-limit".into(), set_limit.to_string().into()]);
            }
            Self::Embed => args.push("embed".into()),
        }
        Ok(args)
    }
}
