use std::sync::Arc;

use futures::future::join_all;
use tempfile::TempDir;

use super::*;
use crate::connection::Statement;
use crate::sqlite::connect_migrated;

/// A file with a table of notes, and a writer whose first connection has a page limit.
struct WriterFixture {
    writer: Arc<Writer>,
    place: SqliteLocation,
    _folder: TempDir,
}

const NOTES: &str = "CREATE TABLE notes (note TEXT NOT NULL PRIMARY KEY)";
const PAGES: &str = "PRAGMA page_count";

impl WriterFixture {
    async fn new(script: &'static str) -> Self {
        Self::with_room(script, None).await
    }

    async fn with_room(script: &'static str, pages: Option<i64>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = SqliteLocation::new(&folder.path().join("tribune.db")).expect("a place");
        crate::sqlite::files::prepare(&place.path).expect("a file");
        let mut first = connect_migrated(&place).await.expect("a database");
        let mut connection = Connection::Sqlite(&mut first);
        connection.script(NOTES).await.expect("a table");
        connection.script(script).await.expect(script);
        if let Some(pages) = pages {
            let row = connection.fetch_one(Statement::new(PAGES)).await.expect("an answer");
            let used = row.expect("a row").get::<i64>("page_count").expect("a number");
            let limit = format!("PRAGMA max_page_count = {}", used + pages);
            connection.fetch(Statement::composed(limit, Vec::new())).await.expect("a limit");
        }
        Self { writer: Arc::new(Writer::start(place.clone(), first)), place, _folder: folder }
    }

    /// All at once: on one thread, all wait before the writer runs, and share a transaction.
    async fn write(&self, kind: Kind, notes: &[&str]) -> Vec<Result<()>> {
        join_all(notes.iter().map(|note| self.write_one(kind, note))).await
    }

    async fn write_one(&self, kind: Kind, note: &str) -> Result<()> {
        let note = note.to_owned();
        match kind {
            Kind::Single => self.writer.write(One(note)).await,
            Kind::Several => self.writer.write(Two(note)).await,
        }
    }

    /// The number of rows of a note.
    async fn rows(&self, note: &str) -> u64 {
        let mut connection = self.place.connect_reader().await.expect("a reader");
        let count = Statement::new("SELECT COUNT(*) AS count FROM notes WHERE note IN ($1, $1 || ' again')").bind(note);
        let row = Connection::Sqlite(&mut connection).fetch_one(count).await;
        row.expect("an answer").expect("a row").count("count").expect("a count")
    }

    async fn assert_stored_if_acknowledged(&self, kind: Kind, notes: &[&str], outcomes: &[Result<()>]) {
        for (note, outcome) in notes.iter().zip(outcomes) {
            let expected = match (outcome, kind) {
                (Err(_), _) => 0,
                (Ok(()), Kind::Single) => 1,
                (Ok(()), Kind::Several) => 2,
            };
            assert_eq!(self.rows(note).await, expected, "{note:.20}: {outcome:?}");
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Single,
    Several,
}

fn insert(note: String) -> Statement {
    Statement::new("INSERT INTO notes (note) VALUES ($1)").bind(note)
}

struct One(String);

#[async_trait]
impl Write for One {
    type Output = ();
    const SINGLE: bool = true;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<(), Failure> {
        assert_ne!(self.0, "panic", "as the test wants it");
        connection.fetch(insert(self.0.clone())).await.map(drop)
    }
}

/// The second insert is the one that may fail.
struct Two(String);

#[async_trait]
impl Write for Two {
    type Output = ();
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<(), Failure> {
        connection.fetch(insert(format!("{} again", self.0))).await?;
        assert_ne!(self.0, "panic", "as the test wants it");
        connection.fetch(insert(self.0.clone())).await.map(drop)
    }
}

const UNDO_ALL: &str = "CREATE TRIGGER undo_all BEFORE INSERT ON notes WHEN NEW.note = 'poison' \
                        BEGIN SELECT RAISE(ROLLBACK, 'all of it'); END";

#[tokio::test]
async fn sqlite_rollback_fails_every_change() {
    for kind in [Kind::Single, Kind::Several] {
        let fixture = WriterFixture::new(UNDO_ALL).await;
        let notes = ["first", "second", "poison", "fourth", "fifth"];
        let outcomes = fixture.write(kind, &notes).await;
        for outcome in &outcomes {
            let error = outcome.as_ref().expect_err("all are undone");
            let cause = std::error::Error::source(error).expect("a cause").to_string();
            assert!(cause.contains("all of it"), "the first error: {error}: {cause}");
        }
        fixture.assert_stored_if_acknowledged(kind, &notes, &outcomes).await;

        let later = ["first", "second", "sixth"];
        let outcomes = fixture.write(kind, &later).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        fixture.assert_stored_if_acknowledged(kind, &later, &outcomes).await;
    }
}

#[tokio::test]
async fn failed_change_rolls_back_alone() {
    for kind in [Kind::Single, Kind::Several] {
        let fixture = WriterFixture::new("").await;
        let notes = ["first", "second", "first", "third"];
        let outcomes = fixture.write(kind, &notes).await;
        let kinds: Vec<_> = outcomes.iter().map(|outcome| outcome.as_ref().err().map(Error::kind)).collect();
        assert_eq!(kinds, [None, None, Some(ErrorKind::InvalidArgument), None]);
        assert_eq!(fixture.rows("first").await, fixture.rows("third").await);
        assert!(fixture.rows("third").await > 0);
    }
}

#[tokio::test]
async fn writes_recover_after_a_full_disk() {
    for kind in [Kind::Single, Kind::Several] {
        let fixture = WriterFixture::with_room("", Some(40)).await;
        fixture.write_one(kind, "small").await.expect("there is room");
        let large: Vec<String> = (0..40).map(|number| format!("{number} {}", "x".repeat(8_000))).collect();
        let large: Vec<&str> = large.iter().map(String::as_str).collect();
        let outcomes = fixture.write(kind, &large).await;
        for outcome in &outcomes {
            let error = outcome.as_ref().expect_err("no room for all");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.message().contains("the disk is full"), "{error}");
        }
        fixture.assert_stored_if_acknowledged(kind, &large, &outcomes).await;

        // The limit was the first connection's.
        let outcomes = fixture.write(kind, &large).await;
        assert!(outcomes.iter().all(Result::is_ok), "there is room now");
        fixture.assert_stored_if_acknowledged(kind, &large, &outcomes).await;
    }
}

#[tokio::test]
async fn panic_fails_its_batch_only() {
    for kind in [Kind::Single, Kind::Several] {
        let fixture = WriterFixture::new("").await;
        for _ in 0..2 {
            let notes = ["first", "panic", "third"];
            let outcomes = fixture.write(kind, &notes).await;
            for outcome in &outcomes {
                let error = outcome.as_ref().expect_err("all are lost");
                assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
            }
            fixture.assert_stored_if_acknowledged(kind, &notes, &outcomes).await;
        }
        fixture.write_one(kind, "after").await.expect("kept");
        fixture.assert_stored_if_acknowledged(kind, &["after"], &[Ok(())]).await;
        fixture.writer.close().await;
        let error = fixture.write_one(kind, "too late").await.expect_err("closed");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
