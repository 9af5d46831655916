//! Citation records: a permalink shows exactly what was cited.
//!
//! Records are in one SQLite database, which several processes may share. The oldest are dropped first: after `keep`, or
//! when there are more than `most`. What anonymous callers cite has a small [`Pool`] of its own, so that they cannot push
//! out the records of users.
//!
//! - `token`: the name of a record; [`record()`] and [`document()`]: a document as a record, and back
//! - [`Citations`]: all records of a folder, blocking; [`records`]: the same for async code

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod record;
pub mod records;
mod token;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use tribune_core::{CallContext, Cited, Clock, DocumentId, Error, Principal, Result};

pub use record::{document, record};
use token::Token;

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS records (number INTEGER PRIMARY KEY, token INTEGER NOT NULL UNIQUE, record TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS anonymous_records (
        number INTEGER PRIMARY KEY, token INTEGER NOT NULL UNIQUE, record TEXT NOT NULL,
        -- Bytes of all records up to this one.
        total INTEGER NOT NULL UNIQUE);";
/// Anonymous callers have this part of the records,
const ANONYMOUS_PART: usize = 10;
/// and so many bytes.
const ANONYMOUS_BYTES: i64 = 64 * 1024 * 1024;
/// How long to wait while another process writes.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many records are kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a record can be looked up.
    pub keep: Duration,
    /// The largest number of records; at least one.
    pub most: usize,
}

/// Whose records they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    Users,
    Anonymous,
}

impl Pool {
    /// That of a call.
    pub fn new(cx: &CallContext) -> Self {
        match cx.principal {
            Principal::Anonymous => Self::Anonymous,
            Principal::Local | Principal::User(_) => Self::Users,
        }
    }

    /// Whether a record of this pool serves a caller of another: it lives at least as long.
    pub fn serves(self, caller: Self) -> bool {
        self == Self::Users || caller == Self::Anonymous
    }

    const fn insert(self) -> &'static str {
        match self {
            Self::Users => "INSERT OR IGNORE INTO records (token, record) VALUES (?1, ?2)",
            Self::Anonymous => {
                "INSERT OR IGNORE INTO anonymous_records (token, record, total) \
                 VALUES (?1, ?2, length(?2) + coalesce((SELECT max(total) FROM anonymous_records), 0))"
            }
        }
    }
}

/// All records of a folder. Calls block on the disk: async code uses [`records::Records`].
pub struct Citations {
    dir: PathBuf,
    limits: Limits,
    clock: Arc<dyn Clock>,
    database: Mutex<Connection>,
}

impl Citations {
    pub fn open(dir: impl Into<PathBuf>, limits: Limits, clock: Arc<dyn Clock>) -> Result<Self> {
        let dir = dir.into();
        let database = connect(&dir).map_err(|error| {
            Error::unavailable(format!(
                "the citations in {} cannot be opened: {error}; check the folder's permissions",
                dir.display()
            ))
            .caused_by(error)
        })?;
        let limits = Limits { most: limits.most.max(1), ..limits };
        Ok(Self { dir, limits, clock, database: Mutex::new(database) })
    }

    /// Stores records in one transaction, in order. On an error none is stored, and the answer can still cite the current
    /// page. Records survive a crash of the process, but a power cut may lose those of the last seconds: flushing would cost
    /// every answer milliseconds.
    fn store(&self, records: &[String], pool: Pool) -> Result<Vec<Token>> {
        let mut database = self.lock();
        let stored = database.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
            let stored = records.iter().map(|record| insert(&transaction, record, pool, self.clock.now()));
            let stored = stored.collect::<rusqlite::Result<_>>()?;
            self.drop_old(&transaction)?;
            transaction.commit()?;
            Ok(stored)
        });
        stored.map_err(|error| {
            Error::unavailable(format!(
                "the citation cannot be stored in {}: {error}; check that the disk has room and the folder is writable",
                self.dir.display()
            ))
            .caused_by(error)
        })
    }

    /// By number, not only by time: the clock may have been set back.
    fn drop_old(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let oldest = self.clock.now().checked_sub(self.limits.keep).unwrap_or(Timestamp::MIN);
        let oldest = Token::new(oldest, 0).number();
        let most = |part: usize| i64::try_from((self.limits.most / part).max(1)).unwrap_or(i64::MAX);
        transaction
            .prepare_cached("DELETE FROM records WHERE token < ?1 OR number <= (SELECT max(number) FROM records) - ?2")?
            .execute(params![oldest, most(1)])?;
        transaction
            .prepare_cached(
                "DELETE FROM anonymous_records WHERE token < ?1 \
                 OR number <= (SELECT max(number) FROM anonymous_records) - ?2 \
                 OR total <= (SELECT max(total) FROM anonymous_records) - ?3",
            )?
            .execute(params![oldest, most(ANONYMOUS_PART), ANONYMOUS_BYTES])?;
        Ok(())
    }

    /// The record of a document. Fails only if the record exists and cannot be read.
    pub fn lookup(&self, id: &DocumentId, token: &str) -> Result<Cited> {
        let Some(token) = Token::parse(token) else {
            return Ok(Cited::Unknown);
        };
        let expired = Cited::Expired(format!(
            "What is cited of the market is kept for {} days, and as many as there is room for; this record is gone.",
            self.limits.keep.as_secs() / 86_400
        ));
        if token.age(self.clock.now()) > self.limits.keep {
            return Ok(expired);
        }
        let damaged = || Error::internal("the record of this citation is damaged; fetch its id for the current values");
        let found = self.find(token).map_err(|error| damaged().caused_by(error))?;
        let Some(record) = found.record else {
            // Older than all records: it was dropped for newer ones.
            return Ok(if found.is_before_all { expired } else { Cited::Unknown });
        };
        let document = record::document(&record).map_err(|error| damaged().caused_by(error))?;
        if document.id != *id {
            return Ok(Cited::Unknown);
        }
        Ok(Cited::Kept { document: Box::new(document), at: token.frozen_at() })
    }

    fn find(&self, token: Token) -> rusqlite::Result<Found> {
        let database = self.lock();
        let mut found = Found { record: None, is_before_all: false };
        for table in ["records", "anonymous_records"] {
            let mut by_token = database.prepare_cached(&format!("SELECT record FROM {table} WHERE token = ?1"))?;
            found.record = by_token.query_row([token.number()], |row| row.get(0)).optional()?;
            if found.record.is_some() {
                return Ok(found);
            }
            let mut oldest = database.prepare_cached(&format!("SELECT min(token) FROM {table}"))?;
            let oldest: Option<i64> = oldest.query_row([], |row| row.get(0))?;
            found.is_before_all |= oldest.is_some_and(|oldest| token.number() < oldest);
        }
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A transaction that panics is rolled back.
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Found {
    record: Option<String>,
    is_before_all: bool,
}

fn connect(dir: &Path) -> std::result::Result<Connection, Box<dyn std::error::Error + Send + Sync>> {
    std::fs::create_dir_all(dir)?;
    let mut database = Connection::open(dir.join("records.db"))?;
    database.busy_timeout(PATIENCE)?;
    database.execute_batch(SCHEMA)?;
    import(dir, &mut database)?;
    Ok(database)
}

/// Takes over the records of version 0.1.0, which are lines of files.
fn import(dir: &Path, database: &mut Connection) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    let name = |path: &Path| Some(path.to_str()?.strip_suffix(".jsonl")?.rsplit(['/', '\\']).next()?.to_owned());
    files.retain(|path| name(path).and_then(|name| Token::parse(&name)).is_some());
    files.sort();
    for path in files {
        let transaction = database.transaction()?;
        for line in String::from_utf8_lossy(&std::fs::read(&path)?).lines() {
            let token = line.strip_prefix("{\"token\":\"").and_then(|line| Token::parse(line.get(..13)?));
            if let Some(token) = token.filter(|_| line.ends_with('}')) {
                transaction.execute(
                    "INSERT OR IGNORE INTO records (token, record) VALUES (?1, ?2)",
                    params![token.number(), line],
                )?;
            }
        }
        transaction.commit()?;
        std::fs::remove_file(path)?;
    }
    Ok(())
}

fn insert(transaction: &Transaction<'_>, record: &str, pool: Pool, now: Timestamp) -> rusqlite::Result<Token> {
    let mut insert = transaction.prepare_cached(pool.insert())?;
    loop {
        #[allow(clippy::disallowed_methods, reason = "several records may be of the same millisecond")]
        let token = Token::new(now, fastrand::u32(..));
        if insert.execute(params![token.number(), record])? == 1 {
            return Ok(token);
        }
    }
}
