//! Latencies of one caller and of two.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::engines::{Caller, Opened, Question, Set, SetLabel};
use crate::own::{Spent, Watch, at_share, ms};

/// Runs all questions in order until the time limit.
pub fn one_caller(label: SetLabel, questions: &[Question], limit: Duration, caller: Caller<'_>) -> Result<Set> {
    let watch = Watch::start()?;
    let timed = timed(questions, limit, caller)?;
    summed(label, 1, vec![timed], &watch.stop()?)
}

/// The same from two threads at once, half of the questions each.
pub fn two_callers(questions: &[Question], limit: Duration, opened: &dyn Opened) -> Result<Set> {
    let watch = Watch::start()?;
    let halves = questions.chunks(questions.len().div_ceil(2));
    let timed = std::thread::scope(|scope| {
        let threads: Vec<_> = halves.map(|half| scope.spawn(move || timed(half, limit, opened.caller()?))).collect();
        threads.into_iter().map(|thread| thread.join().ok().context("a caller panicked")?).collect::<Result<Vec<_>>>()
    })?;
    summed(SetLabel::TwoCallers, 2, timed, &watch.stop()?)
}

struct Timed {
    latencies: Vec<Duration>,
    results: usize,
}

fn timed(questions: &[Question], limit: Duration, mut caller: Caller<'_>) -> Result<Timed> {
    let mut timed = Timed { latencies: Vec::with_capacity(questions.len()), results: 0 };
    let begun = Instant::now();
    for question in questions {
        let asked = Instant::now();
        timed.results += caller(question)?;
        timed.latencies.push(asked.elapsed());
        if begun.elapsed() > limit {
            break;
        }
    }
    Ok(timed)
}

fn summed(label: SetLabel, callers: usize, timed: Vec<Timed>, spent: &Spent) -> Result<Set> {
    let results = timed.iter().map(|timed| timed.results).sum();
    let mut latencies: Vec<Duration> = timed.into_iter().flat_map(|timed| timed.latencies).collect();
    latencies.sort_unstable();
    ensure!(!latencies.is_empty(), "nothing was asked");
    let at = |share: f64| at_share(&latencies, share).map_or(f64::NAN, ms);
    Ok(Set {
        label,
        callers,
        questions: latencies.len(),
        p50_ms: at(0.50),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        max_ms: at(1.0),
        cpu_ms: ms(spent.cpu) / latencies.len() as f64,
        other_cores: spent.other_cores(),
        results,
    })
}
