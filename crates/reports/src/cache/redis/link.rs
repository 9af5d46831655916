//! A connection to Redis that reconnects, and calls with a deadline.
//!
//! Not the `ConnectionManager` of the redis crate: that one never replaces a connection that is only silent, and never
//! retries after an error other than I/O, such as a refused login.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, Shared};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, ServerErrorKind, Value};
use tokio::time::{Instant, timeout_at};
use tribune_core::Clock;

use super::super::Unavailable;
use super::super::breaker::Breaker;
use super::address::Address;
use super::failure::Failure;
use super::scripts::{Call, Script};

/// Timeout of a connection attempt. Callers have less time; their next call finds the connection ready.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// All callers wait for the same connection attempt.
type Dialling = Shared<BoxFuture<'static, Result<MultiplexedConnection, RedisError>>>;

/// One connection, shared by concurrent calls.
pub(super) struct Link {
    client: Client,
    place: Arc<str>,
    within: Duration,
    clock: Arc<dyn Clock>,
    breaker: Breaker,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// Counts connections, so that only the failed one is dropped.
    number: u64,
    dialling: Option<Dialling>,
}

/// A connection for one call.
pub(super) struct Session {
    connection: MultiplexedConnection,
    /// Which connection it is.
    pub(super) number: u64,
    /// Whether this is a retry: Redis may have executed the call already.
    pub(super) again: bool,
}

impl Link {
    pub(super) fn new(address: &Address, side: &'static str, within: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            client: address.client.clone(),
            place: address.place.clone(),
            within,
            breaker: Breaker::new(side, clock.clone()),
            clock,
            line: Mutex::default(),
        }
    }

    /// Runs a call within its deadline. On a broken connection it reconnects and retries once.
    pub(super) async fn run<T, F>(
        &self,
        operation: &'static str,
        work: impl Fn(Session) -> F + Send + Sync,
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
        let outcome = self.attempts(work).await;
        record(outcome.as_ref().map_or_else(Failure::outcome, |_| "ok"));
        if outcome.is_ok() {
            self.breaker.succeeded();
        }
        outcome.map_err(|failure| {
            let reason = failure.sentence(&self.place);
            if failure.is_silence() {
                self.breaker.failed(reason.clone());
            } else {
                self.breaker.succeeded();
            }
            reason
        })
    }

    async fn attempts<T, F>(&self, work: impl Fn(Session) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let deadline = Instant::now() + self.within;
        match self.attempt(&work, deadline, false).await {
            Err((Failure::Connection(_), true)) => self.attempt(&work, deadline, true).await,
            other => other,
        }
        .map_err(|(failure, _)| failure)
    }

    /// An error also says whether there was a connection.
    async fn attempt<T, F>(
        &self,
        work: impl Fn(Session) -> F,
        deadline: Instant,
        again: bool,
    ) -> Result<T, (Failure, bool)>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let late = || Failure::Late(self.within);
        let (number, dialling) = self.dial();
        let connection = timeout_at(deadline, dialling)
            .await
            // The attempt goes on: the next call may find the connection ready.
            .map_err(|_| (late(), false))?
            .map_err(|error| {
                self.hang_up(number);
                (Failure::Connection(error), false)
            })?;
        let session = Session {
            connection,
            number,
            again,
        };
        let done = timeout_at(deadline, work(session))
            .await
            .unwrap_or_else(|_| Err(late()));
        done.map_err(|failure| {
            // After a timeout too: a silent connection may be dead.
            if failure.is_silence() {
                self.hang_up(number);
            }
            (failure, true)
        })
    }

    /// The current connection or attempt. A task connects, so that the attempt outlives its callers.
    fn dial(&self) -> (u64, Dialling) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dialling) = &line.dialling {
            return (line.number, dialling.clone());
        }
        line.number += 1;
        let client = self.client.clone();
        let task = tokio::spawn(async move {
            // Calls have their own deadlines.
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECT_WITHIN))
                .set_response_timeout(None);
            client.get_multiplexed_async_connection_with_config(&config).await
        });
        let made = async move { task.await.unwrap_or_else(|end| Err(std::io::Error::other(end).into())) };
        let dialling = made.boxed().shared();
        line.dialling = Some(dialling.clone());
        (line.number, dialling)
    }

    fn hang_up(&self, number: u64) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.number == number {
            line.dialling = None;
        }
    }
}

impl Session {
    /// Runs a script for each call, in order, in one round trip.
    pub(super) async fn run(&mut self, script: &Script, calls: &[Call]) -> Result<Vec<Value>, Failure> {
        let mut answers = self.send(calls.iter().map(|call| call.by_hash(script))).await?;
        // Redis was restarted, or its scripts were flushed.
        let unknown: Vec<usize> = (0..answers.len())
            .filter(|&at| matches!(&answers[at], Value::ServerError(error) if is_unknown_script(error)))
            .collect();
        if !unknown.is_empty() {
            let in_full = self.send(unknown.iter().map(|&at| calls[at].in_full(script))).await?;
            for (at, answer) in unknown.into_iter().zip(in_full) {
                answers[at] = answer;
            }
        }
        answers.into_iter().map(accepted).collect()
    }

    pub(super) async fn one(&mut self, command: Cmd) -> Result<Value, Failure> {
        let answers = self.send([command].into_iter()).await?;
        answers.into_iter().next().ok_or(Failure::Unexpected).and_then(accepted)
    }

    /// As many answers as commands.
    async fn send(&mut self, commands: impl Iterator<Item = Cmd>) -> Result<Vec<Value>, Failure> {
        let mut pipeline = redis::pipe();
        for command in commands {
            pipeline.add_command(command);
        }
        let count = pipeline.len();
        let answers = self
            .connection
            .send_packed_commands(&pipeline, 0, count)
            .await
            .map_err(Failure::Connection)?;
        if answers.len() == count {
            Ok(answers)
        } else {
            Err(Failure::Unexpected)
        }
    }
}

fn is_unknown_script(error: &redis::ServerError) -> bool {
    error.kind() == Some(ServerErrorKind::NoScript)
}

fn accepted(answer: Value) -> Result<Value, Failure> {
    match answer {
        Value::ServerError(error) => Err(Failure::Refused(error)),
        answer => Ok(answer),
    }
}
