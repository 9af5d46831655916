//! Clocks and scales for the process that measures itself.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::engines::{Caller, Opened, Question, Set, SetLabel};
use crate::process;

pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Resident bytes of this process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Memory {
    pub resident: u64,
    /// Without pages of files, which the system takes back when it needs them.
    pub own: u64,
    pub peak: u64,
}

impl Memory {
    pub fn now() -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status").context("read /proc/self/status")?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib: u64 = line
                .and_then(|rest| rest.split_whitespace().next())
                .and_then(|number| number.parse().ok())
                .with_context(|| format!("no {name} in /proc/self/status"))?;
            Ok(kib * 1024)
        };
        Ok(Self {
            resident: field("VmRSS:")?,
            own: field("RssAnon:")?,
            peak: field("VmHWM:")?,
        })
    }
}

/// What this process and the machine spend between two moments.
pub struct Watch {
    begun: Instant,
    own: Duration,
    machine: Duration,
}

pub struct Spent {
    pub wall: Duration,
    pub cpu: Duration,
    machine: Duration,
}

impl Watch {
    pub fn start() -> Result<Self> {
        Ok(Self {
            begun: Instant::now(),
            own: process::cpu_time(std::process::id())?,
            machine: process::machine_time()?,
        })
    }

    pub fn stop(self) -> Result<Spent> {
        Ok(Spent {
            wall: self.begun.elapsed(),
            cpu: process::cpu_time(std::process::id())?.saturating_sub(self.own),
            machine: process::machine_time()?.saturating_sub(self.machine),
        })
    }
}

impl Spent {
    /// Cores that other processes took meanwhile.
    pub fn other_cores(&self) -> f64 {
        self.machine.saturating_sub(self.cpu).as_secs_f64() / self.wall.as_secs_f64().max(1e-9)
    }
}

/// Asks one after another until all are answered or the time is over.
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
        let threads: Vec<_> = halves
            .map(|half| scope.spawn(move || timed(half, limit, opened.caller()?)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().ok().context("a caller panicked")?)
            .collect::<Result<Vec<_>>>()
    })?;
    summed(SetLabel::TwoCallers, 2, timed, &watch.stop()?)
}

struct Timed {
    latencies: Vec<Duration>,
    results: usize,
}

fn timed(questions: &[Question], limit: Duration, mut caller: Caller<'_>) -> Result<Timed> {
    let mut timed = Timed {
        latencies: Vec::with_capacity(questions.len()),
        results: 0,
    };
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
    let last = latencies.len().checked_sub(1).context("nothing was asked")?;
    // The smallest latency that this share of the answers did not exceed.
    let at = |share: f64| {
        ms(latencies[((latencies.len() as f64 * share).ceil() as usize)
            .saturating_sub(1)
            .min(last)])
    };
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
