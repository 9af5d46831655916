//! The engines and their interface.

use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{measure, sqlite, tantivy_alone, texts::Corpus, tribune};
use crate::own::{self, Memory};

/// Results per answer, with text.
pub const LIMIT: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Tribune, keyword only.
    Tribune,
    /// Tribune, hybrid.
    TribuneVectors,
    Tantivy,
    Sqlite,
}

impl Engine {
    pub const ALL: [Self; 4] = [Self::Tribune, Self::TribuneVectors, Self::Tantivy, Self::Sqlite];

    pub fn label(self) -> &'static str {
        match self {
            Self::Tribune => "Tribune, full text",
            Self::TribuneVectors => "Tribune, hybrid",
            Self::Tantivy => "plain tantivy",
            Self::Sqlite => "SQLite FTS5",
        }
    }
}

/// One caller's search.
#[derive(Clone, Debug, Default)]
pub struct Question {
    pub text: String,
    pub condition: Option<Condition>,
}

#[derive(Clone, Debug)]
pub enum Condition {
    Kind(&'static str),
    Days(Date, Date),
}

/// Runs one question and returns the number of results.
pub type Caller<'a> = Box<dyn FnMut(&Question) -> Result<usize> + 'a>;

/// An open index.
pub trait Opened: Sync {
    fn caller(&self) -> Result<Caller<'_>>;

    /// A caller that uses the server's full search path, if there is one.
    fn whole_way(&self) -> Option<Caller<'_>> {
        None
    }

    /// Whether it supports filters.
    fn filters(&self) -> bool {
        false
    }
}

/// The cost of building an index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Making {
    pub wall_secs: f64,
    pub cpu_secs: f64,
    pub other_cores: f64,
    pub peak_bytes: u64,
    pub index_bytes: u64,
}

/// Builds an engine's index in this process, which does nothing else.
pub fn make(engine: Engine, corpus: &Corpus) -> Result<Making> {
    let watch = own::Watch::start()?;
    let index_bytes = match engine {
        Engine::Tribune => tribune::index(corpus),
        Engine::TribuneVectors => tribune::add_vectors(corpus),
        Engine::Tantivy => tantivy_alone::index(corpus),
        Engine::Sqlite => sqlite::index(corpus),
    }?;
    let spent = watch.stop()?;
    Ok(Making {
        wall_secs: spent.wall.as_secs_f64(),
        cpu_secs: spent.cpu.as_secs_f64(),
        other_cores: spent.other_cores(),
        peak_bytes: Memory::now()?.peak,
        index_bytes,
    })
}

/// The cost of searching an index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Asking {
    /// From opening to the first answer, with warm files.
    pub open_ms: f64,
    pub first_answer_ms: f64,
    pub opened: Memory,
    pub after: Memory,
    pub sets: Vec<Set>,
}

/// One set of questions, each asked once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Set {
    pub label: SetLabel,
    pub callers: usize,
    pub questions: usize,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    pub cpu_ms: f64,
    pub other_cores: f64,
    /// The total number of results, so that an engine that finds nothing does not look fast.
    pub results: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetLabel {
    Plain,
    TwoCallers,
    /// Through the source and its thread pool, as in a server.
    WholeWay,
    Filtered,
}

/// Unmeasured questions at the start, for caches and lazily read files.
const WARM_UP: usize = 100;

/// The number of questions that [`ask`] needs for `each` per set.
pub fn questions_for(each: usize) -> usize {
    WARM_UP + each * 4
}

/// Asks an engine in this process, which does nothing else.
pub fn ask(engine: Engine, corpus: &Corpus, each: usize, limit_secs: u64) -> Result<Asking> {
    let questions: Vec<Question> =
        corpus.questions()?.into_iter().map(|text| Question { text, condition: None }).collect();
    let mut questions = questions.chunks(each);
    let (plain, two, whole, filtered) = (questions.next(), questions.next(), questions.next(), questions.next());
    let begun = Instant::now();
    let opened = open(engine, corpus)?;
    let open_ms = own::ms(begun.elapsed());
    let memory = Memory::now()?;

    let mut caller = opened.caller()?;
    let warm_up = questions.next().context("too few questions")?;
    caller(&warm_up[0])?;
    let first_answer_ms = own::ms(begun.elapsed());
    for question in &warm_up[1..] {
        caller(question)?;
    }
    drop(caller);

    let limit = std::time::Duration::from_secs(limit_secs);
    let mut sets = Vec::new();
    if let Some(plain) = plain {
        sets.push(measure::one_caller(SetLabel::Plain, plain, limit, opened.caller()?)?);
    }
    if let Some(two) = two {
        sets.push(measure::two_callers(two, limit, &*opened)?);
    }
    if let (Some(whole), Some(caller)) = (whole, opened.whole_way()) {
        sets.push(measure::one_caller(SetLabel::WholeWay, whole, limit, caller)?);
    }
    if let (Some(filtered), true) = (filtered, opened.filters()) {
        let filtered: Vec<Question> = filtered.iter().enumerate().map(with_condition).collect();
        sets.push(measure::one_caller(SetLabel::Filtered, &filtered, limit, opened.caller()?)?);
    }
    Ok(Asking { open_ms, first_answer_ms, opened: memory, after: Memory::now()?, sets })
}

fn open(engine: Engine, corpus: &Corpus) -> Result<Box<dyn Opened>> {
    Ok(match engine {
        Engine::Tribune => Box::new(tribune::Open::new(corpus, false)?),
        Engine::TribuneVectors => Box::new(tribune::Open::new(corpus, true)?),
        Engine::Tantivy => Box::new(tantivy_alone::Open::new(corpus)?),
        Engine::Sqlite => Box::new(sqlite::Open::new(corpus)),
    })
}

/// Alternately one kind of eight, or some months of eleven years.
fn with_condition((number, question): (usize, &Question)) -> Question {
    let condition = if number.is_multiple_of(2) {
        Condition::Kind(super::texts::KINDS[number / 2 % super::texts::KINDS.len()])
    } else {
        let year = 2015 + (number / 2 % 11) as i16;
        Condition::Days(jiff::civil::date(year, 3, 1), jiff::civil::date(year, 9, 15))
    };
    Question { text: question.text.clone(), condition: Some(condition) }
}
