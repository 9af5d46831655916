//! The load generator: a fixed number of connections, each sending its next
//! request as soon as the last answer is in (a closed loop).
//!
//! It runs on one thread, next to the server, and checks every answer.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use memchr::memmem::Finder;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    http::{Connection, Response},
    process,
};

/// How long lanes may take to finish their last request.
const DRAIN: Duration = Duration::from_secs(5);
/// Keeps a dead server from turning a lane into a busy loop.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// Decides whether an answer is a success without parsing it.
pub struct Check {
    result: Finder<'static>,
    error: Finder<'static>,
    tool_error: Finder<'static>,
    /// Set when a known good answer holds the word itself, for instance as a
    /// property in a tool's schema; then its presence says nothing.
    error_is_innocent: bool,
}

impl Check {
    pub fn strict() -> Self {
        Self {
            result: Finder::new(b"\"result\""),
            error: Finder::new(b"\"error\""),
            tool_error: Finder::new(b"\"isError\":true"),
            error_is_innocent: false,
        }
    }

    /// A check for answers that are not JSON-RPC: good ones contain this.
    pub fn holding(word: &'static [u8]) -> Self {
        Self { result: Finder::new(word), error_is_innocent: true, ..Self::strict() }
    }

    /// A check that knows the good answer `sample`.
    pub fn knowing(sample: &[u8]) -> Self {
        let check = Self::strict();
        Self { error_is_innocent: check.error.find(sample).is_some(), ..check }
    }

    pub fn check(&self, response: &Response<'_>) -> Result<()> {
        let body = response.body;
        let shown = || String::from_utf8_lossy(&body[..body.len().min(300)]);
        ensure!(response.status == 200, "status {}: {}", response.status, shown());
        ensure!(self.result.find(body).is_some(), "no \"result\": {}", shown());
        ensure!(self.error_is_innocent || self.error.find(body).is_none(), "\"error\" in the answer: {}", shown());
        ensure!(self.tool_error.find(body).is_none(), "tool error: {}", shown());
        Ok(())
    }
}

/// The target of the load and its concurrency.
pub struct Target {
    pub addr: SocketAddr,
    pub pid: u32,
    pub requests: Vec<Vec<u8>>,
    pub connections: usize,
    /// How long each connection waits from one request to the next; `None` if only for the answer.
    pub pace: Option<Duration>,
    pub check: Check,
}

/// One measurement.
pub struct Measured {
    /// Sorted, in microseconds.
    pub latencies: Vec<u32>,
    pub failures: u64,
    pub first_failure: Option<String>,
    pub body_bytes: u64,
    pub elapsed: Duration,
    pub server_cpu: Duration,
    pub client_cpu: Duration,
    /// CPU time of other processes.
    pub other_cpu: Duration,
}

impl Measured {
    pub fn requests(&self) -> usize {
        self.latencies.len()
    }

    pub fn latency_ms(&self, quantile: f64) -> f64 {
        let Some(last) = self.latencies.len().checked_sub(1) else {
            return f64::NAN;
        };
        let index = (quantile * last as f64).round() as usize;
        f64::from(self.latencies[index.min(last)]) / 1000.0
    }
}

struct Job {
    target: Target,
    phase: AtomicU8,
    /// Set when each request is to be sent once instead of over and over.
    next: Option<AtomicUsize>,
}

impl Job {
    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Relaxed)
    }

    /// The index of the next request of a lane that has sent `sent` so far.
    fn next(&self, lane: usize, sent: usize) -> Option<usize> {
        if self.phase() == STOP {
            return None;
        }
        let total = self.target.requests.len();
        match &self.next {
            // Lanes start far apart, so that no request hits a cache that another has just filled.
            None => Some((lane * total / self.target.connections + sent) % total),
            Some(next) => {
                let index = next.fetch_add(1, Ordering::Relaxed);
                (index < total).then_some(index)
            }
        }
    }
}

#[derive(Default)]
struct Tally {
    latencies: Vec<u32>,
    failures: u64,
    first_failure: Option<String>,
    body_bytes: u64,
}

impl Tally {
    fn fail(&mut self, reason: String) {
        self.failures += 1;
        self.first_failure.get_or_insert(reason);
    }

    fn merge(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.failures += other.failures;
        self.body_bytes += other.body_bytes;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }
}

/// Cycles over the requests: `warm_up` unmeasured, then `measured`.
pub async fn run_for(target: Target, warm_up: Duration, measured: Duration) -> Result<Measured> {
    let pid = target.pid;
    let (job, mut lanes) = start(target, WARM_UP, None);
    sleep(warm_up).await;
    let window = Window::open(pid)?;
    job.phase.store(MEASURE, Ordering::Relaxed);
    sleep(measured).await;
    job.phase.store(STOP, Ordering::Relaxed);
    let spent = window.close()?;
    Ok(spent.with(drain(&mut lanes, DRAIN).await))
}

/// Sends every request once, for at most `limit`.
pub async fn run_once_each(target: Target, limit: Duration) -> Result<Measured> {
    let pid = target.pid;
    let window = Window::open(pid)?;
    let (_job, mut lanes) = start(target, MEASURE, Some(AtomicUsize::new(0)));
    let tally = drain(&mut lanes, limit).await;
    Ok(window.close()?.with(tally))
}

fn start(target: Target, phase: u8, next: Option<AtomicUsize>) -> (Arc<Job>, JoinSet<Tally>) {
    let connections = target.connections;
    let job = Arc::new(Job { target, phase: AtomicU8::new(phase), next });
    let mut lanes = JoinSet::new();
    for lane in 0..connections {
        lanes.spawn(drive(Arc::clone(&job), lane));
    }
    (job, lanes)
}

/// Collects the lanes; one that does not end within `limit` is a failure.
async fn drain(lanes: &mut JoinSet<Tally>, limit: Duration) -> Tally {
    let mut total = Tally::default();
    let collect = async {
        while let Some(lane) = lanes.join_next().await {
            match lane {
                Ok(tally) => total.merge(tally),
                Err(error) => total.fail(format!("lane ended early: {error}")),
            }
        }
    };
    if tokio::time::timeout(limit, collect).await.is_err() {
        let hanging = lanes.len() as u64;
        lanes.abort_all();
        total.fail(format!("{hanging} connections still waiting after {limit:?}"));
        total.failures += hanging.saturating_sub(1);
    }
    total.latencies.sort_unstable();
    total
}

async fn drive(job: Arc<Job>, lane: usize) -> Tally {
    let mut tally = Tally::default();
    let mut sent = 0;
    let mut connection = None;
    // Spread over one interval, so that paced lanes do not all ask at once.
    let share = job.target.pace.unwrap_or_default().mul_f64(lane as f64 / job.target.connections as f64);
    let mut due = Instant::now() + share;
    while let Some(index) = job.next(lane, sent) {
        sent += 1;
        if let Some(pace) = job.target.pace {
            tokio::time::sleep_until(due.into()).await;
            due += pace;
        }
        let outcome = one(&job, &mut connection, index, &mut tally).await;
        if let Err(error) = outcome {
            tally.fail(format!("{error:#}"));
            connection = None;
            sleep(RECONNECT_PAUSE).await;
        }
    }
    tally
}

async fn one(job: &Job, connection: &mut Option<Connection>, index: usize, tally: &mut Tally) -> Result<()> {
    let connection = match connection {
        Some(open) => open,
        none => none.insert(Connection::open(job.target.addr).await?),
    };
    let begun = Instant::now();
    let response = connection.exchange(&job.target.requests[index]).await?;
    let taken = begun.elapsed();
    job.target.check.check(&response)?;
    if job.phase() == MEASURE {
        tally.body_bytes += response.body.len() as u64;
        let micros = u32::try_from(taken.as_micros()).unwrap_or(u32::MAX);
        tally.latencies.push(micros);
    }
    Ok(())
}

/// CPU and wall-clock time between two moments.
struct Window {
    pid: u32,
    begun: Instant,
    server: Duration,
    client: Duration,
    machine: Duration,
}

impl Window {
    fn open(pid: u32) -> Result<Self> {
        Ok(Self {
            pid,
            server: process::cpu_time(pid)?,
            client: process::cpu_time(std::process::id())?,
            machine: process::machine_time()?,
            begun: Instant::now(),
        })
    }

    fn close(self) -> Result<Spent> {
        let elapsed = self.begun.elapsed();
        let server_cpu = process::cpu_time(self.pid)?.saturating_sub(self.server);
        let client_cpu = process::cpu_time(std::process::id())?.saturating_sub(self.client);
        let machine = process::machine_time()?.saturating_sub(self.machine);
        Ok(Spent { elapsed, server_cpu, client_cpu, other_cpu: machine.saturating_sub(server_cpu + client_cpu) })
    }
}

struct Spent {
    elapsed: Duration,
    server_cpu: Duration,
    client_cpu: Duration,
    other_cpu: Duration,
}

impl Spent {
    fn with(self, tally: Tally) -> Measured {
        Measured {
            latencies: tally.latencies,
            failures: tally.failures,
            first_failure: tally.first_failure,
            body_bytes: tally.body_bytes,
            elapsed: self.elapsed,
            server_cpu: self.server_cpu,
            client_cpu: self.client_cpu,
            other_cpu: self.other_cpu,
        }
    }
}
