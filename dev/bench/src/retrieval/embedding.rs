//! Embedding speed of real models, which the comparison replaces by generated vectors.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tribune_embed::{Embedder, Role};

use crate::own::{Watch, ms};
use crate::words::{COMMON, Rng};

const TOKENS: [usize; 3] = [64, 128, 256];
const THREADS: [usize; 2] = [1, 2];
const MEASURED: Duration = Duration::from_secs(3);
const QUESTIONS: usize = 300;

/// One model at one length of text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Throughput {
    pub model: String,
    pub tokens: usize,
    pub threads: usize,
    pub passages_per_sec: f64,
    pub other_cores: f64,
}

/// One model's time for one question of a few words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuestionTime {
    pub model: String,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Embedding {
    pub passages: Vec<Throughput>,
    pub questions: Vec<QuestionTime>,
    /// Models that this build lacks, and why.
    pub missing: Vec<String>,
}

pub fn measure() -> Result<Embedding> {
    let mut measured = Embedding::default();
    for (label, model) in models() {
        let model = match model {
            Ok(model) => model,
            Err(error) => {
                measured.missing.push(format!("{label}: {error}"));
                continue;
            }
        };
        measured.questions.push(question_time(&*model)?);
        for tokens in TOKENS {
            for threads in THREADS {
                measured.passages.push(throughput(&model, tokens, threads)?);
            }
        }
    }
    Ok(measured)
}

type Loaded = Result<Arc<dyn Embedder>, tribune_embed::EmbedError>;

fn models() -> Vec<(&'static str, Loaded)> {
    vec![("the built-in model", tribune_embed::built_in()), ("the static table", tribune_embed::static_table())]
}

fn throughput(model: &Arc<dyn Embedder>, tokens: usize, threads: usize) -> Result<Throughput> {
    let watch = Watch::start()?;
    let begun = Instant::now();
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads as u64)
            .map(|thread| {
                scope.spawn(move || -> Result<usize> {
                    let mut rng = Rng::new(thread);
                    let mut count = 0;
                    while begun.elapsed() < MEASURED {
                        let texts: Vec<String> = (0..model.batch()).map(|_| text(&mut rng, tokens)).collect();
                        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                        count += model.embed(Role::Passage, &texts)?.len();
                    }
                    Ok(count)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Ok(0)));
        joined.sum::<Result<usize>>()
    })?;
    let spent = watch.stop()?;
    Ok(Throughput {
        model: model.name().to_owned(),
        tokens,
        threads,
        passages_per_sec: counts as f64 / spent.wall.as_secs_f64(),
        other_cores: spent.other_cores(),
    })
}

fn question_time(model: &dyn Embedder) -> Result<QuestionTime> {
    let mut rng = Rng::new(7);
    let mut times = Vec::with_capacity(QUESTIONS);
    for number in 0..QUESTIONS {
        let question = text(&mut rng, 4 + number % 7);
        let begun = Instant::now();
        model.embed(Role::Query, &[&question])?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(QuestionTime {
        model: model.name().to_owned(),
        p50_ms: ms(times[QUESTIONS / 2]),
        p99_ms: ms(times[QUESTIONS * 99 / 100]),
    })
}

/// A text of this many tokens, including the two special ones: each word is one token.
fn text(rng: &mut Rng, tokens: usize) -> String {
    let words: Vec<&str> = (2..tokens).map(|_| COMMON[rng.below(COMMON.len())]).collect();
    words.join(" ")
}
