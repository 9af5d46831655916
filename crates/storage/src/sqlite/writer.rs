//! The one writer: puts all waiting changes into one transaction, commits once, and then answers the callers. They share
//! one flush, so more callers means more changes per second.

use std::mem;

use async_trait::async_trait;
use parking_lot::Mutex;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{mpsc, oneshot};
use tribune_core::{Error, ErrorKind, Result};

use super::{Patience, SqliteLocation};
use crate::connection::{Connection, Write};
use crate::error::{self, Failure};

/// The most waiting changes; further callers wait for a place.
const QUEUE: usize = 1_024;
/// The most changes per commit: few enough that another process gets its turn.
const BATCH: usize = 256;

pub(super) struct Writer {
    jobs: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    task: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(place: SqliteLocation, connection: SqliteConnection) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let task = tokio::spawn(serve(place, connection, queue));
        Self { jobs: Mutex::new(Some(jobs)), task: Mutex::new(Some(task)) }
    }

    pub(super) async fn write<W: Write>(&self, write: W) -> Result<W::Output> {
        let jobs = self.jobs.lock().clone();
        let jobs = jobs.ok_or_else(error::closed)?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Pending { write, outcome: None, reply });
        jobs.send(job).await.map_err(|_| error::closed())?;
        answer.await.map_err(|_| error::panicked())?
    }

    /// Returns when all waiting changes are done.
    pub(super) async fn close(&self) {
        self.jobs.lock().take();
        let task = self.task.lock().take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

/// A change and the caller who waits for it, whatever its type.
#[async_trait]
trait Job: Send {
    /// An error aborts the whole transaction; an error of this change only is kept for its caller.
    async fn run(&mut self, connection: &mut SqliteConnection) -> Result<()>;

    /// Answers the caller, if it still waits. `failure` is why the transaction was not committed.
    fn settle(self: Box<Self>, failure: Option<&Error>);
}

struct Pending<W: Write> {
    write: W,
    outcome: Option<Result<W::Output>>,
    reply: oneshot::Sender<Result<W::Output>>,
}

#[async_trait]
impl<W: Write> Job for Pending<W> {
    async fn run(&mut self, connection: &mut SqliteConnection) -> Result<()> {
        let mut connection = Connection::Sqlite(connection);
        let outcome = if W::SINGLE {
            run_single(&self.write, &mut connection).await?
        } else {
            run_in_savepoint(&self.write, &mut connection).await?
        };
        self.outcome = Some(outcome);
        Ok(())
    }

    fn settle(self: Box<Self>, failure: Option<&Error>) {
        let outcome = match (failure, self.outcome) {
            (_, Some(Err(error))) => Err(error),
            (Some(error), _) => Err(error::copy(error)),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(error::closed()),
        };
        let _ = self.reply.send(outcome);
    }
}

/// The outer error aborts the transaction, the inner one concerns this change only.
type Outcome<T> = Result<Result<T>>;

/// Runs one statement, which undoes itself if it fails.
async fn run_single<W: Write>(write: &W, connection: &mut Connection<'_>) -> Outcome<W::Output> {
    match write.run(connection).await.map_err(Error::from) {
        Err(error) if !is_inside_transaction(connection).await => Err(error),
        outcome => classify(outcome),
    }
}

/// Runs several statements in a savepoint, which undoes all of them if one fails.
async fn run_in_savepoint<W: Write>(write: &W, connection: &mut Connection<'_>) -> Outcome<W::Output> {
    connection.script("SAVEPOINT change").await?;
    match write.run(connection).await.map_err(Error::from) {
        Ok(output) => {
            connection.script("RELEASE change").await?;
            Ok(Ok(output))
        }
        // If this change cannot be undone alone, the whole transaction is; report the first error.
        Err(error) => match connection.script("ROLLBACK TO change; RELEASE change").await {
            Ok(()) => classify(Err(error)),
            Err(_) => Err(error),
        },
    }
}

/// SQLite rolls the transaction back by itself when the disk is full or broken, memory runs out, or a trigger demands it.
/// Later statements would then commit one by one.
async fn is_inside_transaction(connection: &mut Connection<'_>) -> bool {
    // Transactions do not nest, so this fails inside one.
    connection.script("BEGIN").await.is_err()
}

/// A failed disk or lock concerns the whole transaction.
fn classify<T>(outcome: Result<T>) -> Outcome<T> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        outcome => Ok(outcome),
    }
}

async fn serve(place: SqliteLocation, connection: SqliteConnection, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    let mut connection = Some(connection);
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        // In its own task, so that a panic affects only the changes of this transaction.
        let settled = tokio::spawn(commit_and_answer(place.clone(), connection.take(), mem::take(&mut batch))).await;
        connection = settled.unwrap_or_else(|panic| {
            tracing::error!("changes were not stored because of a bug: {panic}");
            None
        });
    }
    if let Some(connection) = connection {
        let _ = connection.close().await;
    }
}

/// Returns the connection if it can be used again.
async fn commit_and_answer(
    place: SqliteLocation,
    mut connection: Option<SqliteConnection>,
    mut batch: Vec<Box<dyn Job>>,
) -> Option<SqliteConnection> {
    let committed = commit(&place, &mut connection, &mut batch).await;
    if let Err(error) = &committed {
        let cause = error::cause(error);
        tracing::warn!(changes = batch.len(), cause, "changes could not be stored: {error}");
    }
    for job in batch {
        job.settle(committed.as_ref().err());
    }
    connection
}

/// After an error the connection is closed, which rolls back, before any caller hears that nothing was stored. The next
/// batch gets a new one.
async fn commit(
    place: &SqliteLocation,
    connection: &mut Option<SqliteConnection>,
    batch: &mut [Box<dyn Job>],
) -> Result<()> {
    let mut usable = match connection.take() {
        Some(connection) => connection,
        None => place.connect_writer().await?,
    };
    let committed = transact(&mut usable, batch).await;
    if committed.is_ok() {
        *connection = Some(usable);
    } else {
        // Fails if SQLite has rolled back already.
        let _ = Connection::Sqlite(&mut usable).script("ROLLBACK").await;
        let _ = usable.close().await;
    }
    place.explain(committed)
}

async fn begin(connection: &mut SqliteConnection) -> Result<(), Failure> {
    let patience = Patience::start();
    loop {
        match Connection::Sqlite(connection).script("BEGIN IMMEDIATE").await {
            Err(failure) if patience.allows_retry(&failure).await => {}
            outcome => return outcome,
        }
    }
}

async fn transact(connection: &mut SqliteConnection, batch: &mut [Box<dyn Job>]) -> Result<(), Failure> {
    begin(connection).await?;
    for job in batch {
        job.run(connection).await?;
    }
    let committed = Connection::Sqlite(connection).script("COMMIT").await;
    committed.map_err(Failure::outcome_unknown_if_lost)
}

#[cfg(test)]
mod tests;
