//! A connection to Redis that reconnects, and calls with a deadline.
//!
//! Not the `ConnectionManager` of the redis crate: that one never replaces a connection that is only silent, and never
//! retries after an error other than I/O, such as a refused login.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt, Shared};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind};
use tokio::time::timeout_at;
use tribune_core::Clock;

use super::super::Unavailable;
use super::super::breaker::Breaker;
use super::address::Address;
use super::failure::Failure;

/// Timeout of a connection attempt. Callers have less time; their next call finds the connection ready.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// All callers wait for the same connection attempt.
type Connecting = Shared<BoxFuture<'static, RedisResult<Connection>>>;

/// One connection at a time, shared by concurrent calls.
pub(super) struct Link {
    client: Client,
    place: Arc<str>,
    within: Duration,
    clock: Arc<dyn Clock>,
    breaker: Breaker,
    current: Mutex<Option<Connecting>>,
}

/// A connection for one call.
#[derive(Clone)]
pub(super) struct Connection {
    redis: MultiplexedConnection,
    clock: Arc<dyn Clock>,
    /// By the last answer of this connection: another one may lead to another Redis.
    time: Arc<Mutex<RedisTime>>,
    /// Whether this is a retry: Redis may have executed the call already.
    pub(super) is_retry: bool,
}

/// A lower bound of Redis's time when an answer arrived.
#[derive(Debug, Clone, Copy)]
struct RedisTime {
    micros: u64,
    received: Instant,
}

/// A script that Redis runs: each reads and changes a symbol atomically.
pub(super) struct Script {
    source: String,
    hash: String,
}

/// One run of a script.
pub(super) struct Call {
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Link {
    pub(super) fn new(address: &Address, side: &'static str, within: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            client: address.client.clone(),
            place: address.place.clone(),
            within,
            breaker: Breaker::new(side, clock.clone()),
            clock,
            current: Mutex::default(),
        }
    }

    /// Runs a call within its deadline. On a broken connection it reconnects and retries once.
    pub(super) async fn run<T, F>(
        &self,
        operation: &'static str,
        work: impl Fn(Connection) -> F + Send + Sync,
    ) -> Result<T, Unavailable>
    where
        T: Send,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let begun = self.clock.monotonic();
        let record = |outcome: &'static str| {
            let took = self.clock.monotonic().saturating_duration_since(begun).as_secs_f64();
            metrics::histogram!("tribune_report_cache_seconds", "op" => operation, "outcome" => outcome).record(took);
        };
        self.breaker.enter().inspect_err(|_| record("left_alone"))?;
        let deadline = tokio::time::Instant::now() + self.within;
        let mut outcome = self.attempt(&work, deadline, false).await;
        if let Err((Failure::Redis(_), true)) = &outcome {
            outcome = self.attempt(&work, deadline, true).await;
        }
        let outcome = outcome.map_err(|(failure, _)| failure);
        record(outcome.as_ref().map_or_else(Failure::outcome, |_| "ok"));
        let failed = outcome.as_ref().err().filter(|failure| !failure.is_refusal());
        match failed {
            Some(failure) => self.breaker.failed(failure.describe(&self.place)),
            None => self.breaker.succeeded(),
        }
        outcome.map_err(|failure| failure.describe(&self.place))
    }

    /// An error also says whether the connection broke during the call.
    async fn attempt<T, F>(
        &self,
        work: impl Fn(Connection) -> F,
        deadline: tokio::time::Instant,
        is_retry: bool,
    ) -> Result<T, (Failure, bool)>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let late = || Failure::Late(self.within);
        let connecting = self.connecting();
        let connection = timeout_at(deadline, connecting.clone())
            .await
            // The attempt goes on: the next call may find the connection ready.
            .map_err(|_| (late(), false))?
            .map_err(|error| {
                self.hang_up(&connecting);
                (Failure::Redis(error), false)
            })?;
        let call = work(Connection { is_retry, ..connection });
        let outcome = timeout_at(deadline, call).await.unwrap_or_else(|_| Err(late()));
        outcome.map_err(|failure| {
            let is_broken = !failure.is_refusal();
            // After a timeout too: a silent connection may be dead.
            if is_broken {
                self.hang_up(&connecting);
            }
            (failure, is_broken)
        })
    }

    /// The current connection or attempt. A task connects, so that the attempt outlives its callers.
    fn connecting(&self) -> Connecting {
        let mut current = lock(&self.current);
        let connect = || {
            let task = tokio::spawn(Connection::open(self.client.clone(), self.clock.clone()));
            let ended = async move { task.await.unwrap_or_else(|end| Err(std::io::Error::other(end).into())) };
            ended.boxed().shared()
        };
        current.get_or_insert_with(connect).clone()
    }

    /// Drops a connection, unless another call has replaced it already.
    fn hang_up(&self, broken: &Connecting) {
        lock(&self.current).take_if(|current| current.ptr_eq(broken));
    }
}

impl Connection {
    async fn open(client: Client, clock: Arc<dyn Clock>) -> RedisResult<Self> {
        // Calls have their own deadlines.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT_WITHIN)).set_response_timeout(None);
        let mut redis = client.get_multiplexed_async_connection_with_config(&config).await?;
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query_async(&mut redis).await?;
        let time =
            RedisTime { micros: seconds.saturating_mul(1_000_000).saturating_add(micros), received: clock.monotonic() };
        Ok(Self { redis, clock, time: Arc::new(Mutex::new(time)), is_retry: false })
    }

    /// Answers of the writer's side begin with Redis's time.
    pub(super) fn note_time(&self, micros: u64) {
        let received = self.clock.monotonic();
        *lock(&self.time) = RedisTime { micros, received };
    }

    /// A lower bound of Redis's time at a moment, in microseconds.
    pub(super) fn redis_time_at(&self, moment: Instant) -> u64 {
        let time = *lock(&self.time);
        let later = micros(moment.saturating_duration_since(time.received));
        let earlier = micros(time.received.saturating_duration_since(moment));
        time.micros.saturating_add(later).saturating_sub(earlier)
    }

    /// Runs a script for each call, in order, in one round trip.
    pub(super) async fn run<T: FromRedisValue>(&mut self, script: &Script, calls: &[Call]) -> RedisResult<Vec<T>> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let by_hash = calls.iter().map(|call| call.command("EVALSHA", &script.hash));
        let mut answers: Vec<RedisResult<T>> = self.send(by_hash).await?;
        // Redis was restarted, or its scripts were flushed.
        let unknown: Vec<usize> =
            (0..answers.len()).filter(|&at| answers[at].as_ref().is_err_and(is_unknown_script)).collect();
        if !unknown.is_empty() {
            let in_full = unknown.iter().map(|&at| calls[at].command("EVAL", &script.source));
            for (at, answer) in unknown.iter().zip(self.send(in_full).await?) {
                answers[*at] = answer;
            }
        }
        answers.into_iter().collect()
    }

    async fn send<T: FromRedisValue>(&mut self, commands: impl Iterator<Item = Cmd>) -> RedisResult<Vec<T>> {
        let mut pipeline = redis::pipe();
        for command in commands {
            pipeline.add_command(command);
        }
        pipeline.ignore_errors().query_async(&mut self.redis).await
    }
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

impl Script {
    pub(super) fn new(source: impl Into<String>) -> Self {
        let source = source.into();
        let hash = redis::Script::new(&source).get_hash().to_owned();
        Self { source, hash }
    }
}

impl Call {
    pub(super) fn on(keys: impl IntoIterator<Item = String>) -> Self {
        Self { keys: keys.into_iter().collect(), arguments: Vec::new() }
    }

    pub(super) fn with(mut self, arguments: impl redis::ToRedisArgs) -> Self {
        arguments.write_redis_args(&mut self.arguments);
        self
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}

/// As whole microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
