//! A connection to Redis that reconnects, and calls with a deadline.
//!
//! Not the `ConnectionManager` of the redis crate: that one never replaces a connection that is only silent, and never
//! retries after an error other than I/O, such as a refused login.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt, Shared, try_join_all};
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, RedisError, RedisResult, ScriptInvocation};
use tokio::time::timeout_at;
use tribune_core::Clock;

use super::super::Unavailable;
use super::quoted;

/// Timeout of a connection attempt. Callers have less time; their next call finds the connection ready.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// All callers wait for the same connection attempt.
type Connecting = Shared<BoxFuture<'static, RedisResult<Connection>>>;

/// One connection at a time, shared by concurrent calls.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) place: Arc<str>,
    pub(super) within: Duration,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) current: Mutex<Option<Connecting>>,
}

#[derive(Clone)]
pub(super) struct Connection {
    redis: MultiplexedConnection,
    clock: Arc<dyn Clock>,
    /// By the last answer of this connection: another one may lead to another Redis.
    time: Arc<Mutex<RedisTime>>,
}

/// A lower bound of Redis's time when an answer arrived.
#[derive(Debug, Clone, Copy)]
struct RedisTime {
    micros: u64,
    received: Instant,
}

pub(super) enum Failure {
    /// No answer within the deadline.
    Late,
    /// The connection could not be made, or broke.
    Broken(RedisError),
    /// Redis answered, so the connection stays.
    Refused(RedisError),
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension if error.code() != Some("NOAUTH") => Self::Refused(error),
            _ => Self::Broken(error),
        }
    }
}

impl Failure {
    fn describe(&self, place: &str, within: Duration) -> String {
        let (Self::Broken(error) | Self::Refused(error)) = self else {
            return format!("{place} did not answer within {} ms; it is tried again by itself", within.as_millis());
        };
        let (details, kind) = (quoted(error.detail().unwrap_or_default()), error.kind());
        match error.code() {
            code if kind == ErrorKind::AuthenticationFailed || matches!(code, Some("NOAUTH" | "WRONGPASS")) => {
                format!("{place} wants another user or password; correct them in the Redis URL and start again")
            }
            Some(code) => format!("{place} answered {} {details}; it is tried again by itself", quoted(code)),
            None if matches!(kind, ErrorKind::Parse | ErrorKind::UnexpectedReturnType) => {
                format!(
                    "{place} answered something that no script of ours gives; is it a Redis of version 6.2 or later?"
                )
            }
            None => {
                let why = quoted(&error.to_string());
                format!("there is no connection to {place} ({why}); it is tried again by itself")
            }
        }
    }
}

impl Link {
    /// Runs a call within its deadline. On a broken connection it reconnects and retries once: Redis may then execute the
    /// call twice, which changes nothing.
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
        let deadline = tokio::time::Instant::now() + self.within;
        let mut outcome = self.attempt(&work, deadline).await;
        if let Err(Failure::Broken(_)) = &outcome {
            outcome = self.attempt(&work, deadline).await;
        }
        let word = match &outcome {
            Ok(_) => "ok",
            Err(Failure::Late) => "late",
            Err(Failure::Broken(_)) => "no_connection",
            Err(Failure::Refused(_)) => "refused",
        };
        let took = self.clock.monotonic().saturating_duration_since(begun).as_secs_f64();
        metrics::histogram!("tribune_report_cache_seconds", "op" => operation, "outcome" => word).record(took);
        outcome.map_err(|failure| Unavailable(failure.describe(&self.place, self.within)))
    }

    async fn attempt<T, F>(&self, work: impl Fn(Connection) -> F, deadline: tokio::time::Instant) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let connecting = self.connecting();
        // An attempt that is late goes on: the next call may find the connection ready.
        let connected = timeout_at(deadline, connecting.clone()).await.map_err(|_| Failure::Late)?;
        let outcome = match connected {
            // Also after a refused login.
            Err(error) => Err(Failure::Broken(error)),
            Ok(connection) => timeout_at(deadline, work(connection)).await.unwrap_or(Err(Failure::Late)),
        };
        // After a timeout too: a silent connection may be dead.
        if matches!(outcome, Err(Failure::Broken(_) | Failure::Late)) {
            self.current.lock().take_if(|current| current.ptr_eq(&connecting));
        }
        outcome
    }

    /// The current connection or attempt. A task connects, so that the attempt outlives its callers.
    fn connecting(&self) -> Connecting {
        let mut current = self.current.lock();
        let connect = || {
            let task = tokio::spawn(Connection::open(self.client.clone(), self.clock.clone()));
            let ended = async move { task.await.unwrap_or_else(|end| Err(std::io::Error::other(end).into())) };
            ended.boxed().shared()
        };
        current.get_or_insert_with(connect).clone()
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
        Ok(Self { redis, clock, time: Arc::new(Mutex::new(time)) })
    }

    /// Answers of the writer's side begin with Redis's time.
    pub(super) fn note_time(&self, micros: u64) {
        let received = self.clock.monotonic();
        *self.time.lock() = RedisTime { micros, received };
    }

    /// A lower bound of Redis's time at a moment, in microseconds.
    pub(super) fn redis_time_at(&self, moment: Instant) -> u64 {
        let time = *self.time.lock();
        let later = micros(moment.saturating_duration_since(time.received));
        let earlier = micros(time.received.saturating_duration_since(moment));
        time.micros.saturating_add(later).saturating_sub(earlier)
    }

    /// Runs scripts, in order and without waiting for one before sending the next.
    pub(super) async fn run<T: FromRedisValue>(&self, calls: &[ScriptInvocation<'_>]) -> RedisResult<Vec<T>> {
        try_join_all(calls.iter().map(|call| async { call.invoke_async(&mut self.redis.clone()).await })).await
    }
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
