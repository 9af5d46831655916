//! The one writer: takes whatever changes are waiting into one transaction, commits once, and only then tells
//! their callers. Waiting for the disk is shared by all who wait, so that more callers means more changes a second.

use std::mem;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{mpsc, oneshot};
use tribune_core::{Error, ErrorKind, Result};

use super::{Patience, SqlitePlace};
use crate::connection::Connection;
use crate::database::Write;
use crate::error::{self, Failure};

/// Callers beyond this wait to be let in.
const QUEUE: usize = 1_024;
/// How many changes share a commit: few enough that another process gets its turn.
const BATCH: usize = 256;

pub(super) struct Writer {
    jobs: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    task: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(place: SqlitePlace, connection: SqliteConnection) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let task = tokio::spawn(serve(place, connection, queue));
        Self {
            jobs: Mutex::new(Some(jobs)),
            task: Mutex::new(Some(task)),
        }
    }

    pub(super) async fn write<W: Write>(&self, write: W) -> Result<W::Output> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let jobs = jobs.ok_or_else(error::closed)?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Pending {
            write,
            outcome: None,
            reply,
        });
        jobs.send(job).await.map_err(|_| error::closed())?;
        answer.await.map_err(|_| error::panicked())?
    }

    /// Returns when everything that was waiting is done.
    pub(super) async fn close(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

/// A change and the caller who waits for it, whatever its type.
#[async_trait]
trait Job: Send {
    /// An error is one that concerns the whole transaction; what concerns this change alone is kept for its caller.
    async fn run(&mut self, connection: &mut SqliteConnection) -> Result<()>;

    /// Tells the caller, if there still is one. `failure` is what kept the transaction from being committed.
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
            single(&self.write, &mut connection).await?
        } else {
            undoable(&self.write, &mut connection).await?
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

/// The outer error is one after which the transaction is not what it was, the inner one that of this change alone.
type Outcome<T> = Result<Result<T>>;

/// One statement, which undoes itself if it fails.
async fn single<W: Write>(write: &W, connection: &mut Connection<'_>) -> Outcome<W::Output> {
    match write.run(connection).await.map_err(Failure::into_error) {
        Err(error) if !is_inside_transaction(connection).await => Err(error),
        outcome => judged(outcome),
    }
}

/// Several statements, all of which are undone if one fails.
async fn undoable<W: Write>(write: &W, connection: &mut Connection<'_>) -> Outcome<W::Output> {
    let begun = connection.script("SAVEPOINT change").await;
    begun.map_err(Failure::into_error)?;
    match write.run(connection).await.map_err(Failure::into_error) {
        Ok(output) => {
            let released = connection.script("RELEASE change").await;
            released.map_err(Failure::into_error)?;
            Ok(Ok(output))
        }
        // What cannot be undone alone is undone with all the others, and the first error is the one to tell.
        Err(error) => match connection.script("ROLLBACK TO change; RELEASE change").await {
            Ok(()) => judged(Err(error)),
            Err(_) => Err(error),
        },
    }
}

/// SQLite undoes the whole transaction by itself when the disk is full or broken, when memory runs out, or when a
/// trigger says so. What comes after that would be kept at once, each statement for itself.
async fn is_inside_transaction(connection: &mut Connection<'_>) -> bool {
    // There is no transaction inside another, so this fails if there is one.
    connection.script("BEGIN").await.is_err()
}

/// A disk or a lock that failed one change would fail the others too.
fn judged<T>(outcome: Result<T>) -> Outcome<T> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        outcome => Ok(outcome),
    }
}

async fn serve(place: SqlitePlace, connection: SqliteConnection, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    let mut connection = Some(connection);
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        // In a task of its own, so that a change that panics takes only those with it that share its transaction.
        let kept = tokio::spawn(keep(place.clone(), connection.take(), mem::take(&mut batch))).await;
        connection = kept.unwrap_or_else(|panic| {
            tracing::error!("changes were not kept, because of a bug: {panic}");
            None
        });
    }
    if let Some(connection) = connection {
        let _ = connection.close().await;
    }
}

/// Gives back the connection if it can be used again.
async fn keep(
    place: SqlitePlace,
    mut connection: Option<SqliteConnection>,
    mut batch: Vec<Box<dyn Job>>,
) -> Option<SqliteConnection> {
    let committed = commit(&place, &mut connection, &mut batch).await;
    if let Err(error) = &committed {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        tracing::warn!(changes = batch.len(), cause, "changes could not be kept: {error}");
    }
    for job in batch {
        job.settle(committed.as_ref().err());
    }
    connection
}

/// A connection on which anything went wrong is closed, which undoes what it had begun, before anybody is told that
/// nothing was kept; the next batch gets a new one.
async fn commit(
    place: &SqlitePlace,
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
        // Fails if SQLite was quicker.
        let _ = Connection::Sqlite(&mut usable).script("ROLLBACK").await;
        let _ = usable.close().await;
    }
    place.explain(committed)
}

async fn begin(connection: &mut SqliteConnection) -> Result<(), Failure> {
    let patience = Patience::begin();
    loop {
        match Connection::Sqlite(connection).script("BEGIN IMMEDIATE").await {
            Err(failure) if patience.lasts(&failure).await => {}
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
    committed.map_err(Failure::of_change)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
