//! Opening and closing, and what can be wrong with a database.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::timeout;
use tribune_core::{ErrorKind, UserId};
use tribune_storage::{Backend, Store};
use tribune_storage::{Exchange, Task};
use uuid::Uuid;

use crate::fixtures::{chain, exchange, task, user};
use crate::test_database::{Kind, TestDatabase};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[tokio::test]
async fn new_store_opens_on_first_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/er/what? 100%#&.db");
    let store = Store::new(Backend::Sqlite(path.clone())).expect("a store");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);

    store.tasks().add(&user("ann"), &task("first")).await.expect("kept");
    let mut names: Vec<_> = fs::read_dir(path.parent().expect("a folder"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    let beside = |suffix: &str| folder.path().join(format!("deep/er/what? 100%#&.db{suffix}"));
    assert_eq!(names, [path, beside("-shm"), beside("-wal")]);
    for name in names {
        assert_eq!(mode(&name), 0o600, "{}", name.display());
    }
    assert_eq!(mode(&folder.path().join("deep")), 0o700);
    store.close().await;
}

#[tokio::test]
async fn readable_file_is_made_private() {
    let database = TestDatabase::sqlite();
    fs::write(database.sqlite_path(), "").expect("a file");
    fs::set_permissions(database.sqlite_path(), fs::Permissions::from_mode(0o644)).expect("it is ours");
    database.store().ready().await.expect("ready");
    assert_eq!(mode(&database.sqlite_path()), 0o600);
}

#[tokio::test]
async fn invalid_database_path_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("letter.txt");
    fs::write(&file, "Dear Zoë, this is no database at all. ".repeat(100)).expect("a file");
    let cases = [
        (file.clone(), "not an SQLite file"),
        (file.join("below.db"), "folder"),
        (folder.path().to_owned(), "cannot be opened"),
    ];
    for (path, words) in cases {
        let store = Store::new(Backend::Sqlite(path.clone())).expect("a store");
        let error = store.ready().await.expect_err("no database");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", chain(&error));
        assert!(error.message().contains(words), "{error}");
        assert!(chain(&error).contains(&path.display().to_string()), "{}", chain(&error));
    }
    assert!(fs::read_to_string(&file).expect("the file").starts_with("Dear"));
}

async fn of_a_newer_version(kind: Kind) {
    let database = TestDatabase::new(kind).await;
    let store = database.store();
    store.ready().await.expect("ready");
    store.close().await;
    database.run_sql("INSERT INTO tribune_schema (version) VALUES (7)").await;
    for _ in 0..2 {
        let error = database.store().ready().await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("version 7, from a newer Tribune"), "{error}");
    }
    database.run_sql("DELETE FROM tribune_schema WHERE version = 7").await;
    database.store().ready().await.expect("ready");
}

#[tokio::test]
async fn newer_sqlite_version_is_refused() {
    of_a_newer_version(Kind::Sqlite).await;
}

#[tokio::test]
async fn newer_postgres_version_is_refused() {
    of_a_newer_version(Kind::Postgres).await;
}

#[test]
fn address_never_shows_its_password() {
    let place = Backend::Postgres("postgres://ann:secret-word@localhost/tribune".to_owned());
    assert_eq!(format!("{place:?}"), "Postgres(..)");
    let store = Store::new(place).expect("a store");
    assert!(!format!("{store:?}").contains("secret-word"));
    for wrong in ["postgres://ann:secret-word@localhost:99999999/x", "secret-word", "postgres://x?port=secret-word"] {
        let error = Store::new(Backend::Postgres(wrong.to_owned())).expect_err("no address");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(!chain(&error).contains("secret-word"), "{}", chain(&error));
    }
}

/// Those who are waiting when it closes are served; those who come later are told.
async fn closed(kind: Kind) {
    let database = TestDatabase::new(kind).await;
    let store = database.store();
    let (tasks, ann) = (store.tasks(), user("ann"));
    store.ready().await.expect("ready");
    let given: Vec<_> = (0..10).map(|_| task("last minute")).collect();
    let writes: Vec<_> = given
        .iter()
        .map(|given| {
            let (tasks, ann, given) = (tasks.clone(), ann.clone(), given.clone());
            tokio::spawn(async move { tasks.add(&ann, &given).await })
        })
        .collect();
    tokio::task::yield_now().await;
    store.close().await;
    store.close().await;
    let error = tasks.get(&ann, given[0].id).await.expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let again = database.store();
    for (write, given) in writes.into_iter().zip(given) {
        let acknowledged = write.await.expect("it ended").is_ok();
        let kept = again.tasks().get(&ann, given.id).await.expect("an answer").is_some();
        assert_eq!(acknowledged, kept);
    }
}

#[tokio::test]
async fn closing_sqlite_finishes_running_changes() {
    closed(Kind::Sqlite).await;
}

#[tokio::test]
async fn closing_postgres_finishes_running_changes() {
    closed(Kind::Postgres).await;
}

/// Callers go away at any moment; what they asked for is there whole or not at all, and those who stay get what they
/// asked for.
async fn callers_who_go_away(kind: Kind) {
    let database = TestDatabase::new(kind).await;
    let store = database.store();
    let (tasks, ann) = (store.tasks(), user("ann"));
    store.ready().await.expect("ready");
    let mut left = Vec::new();
    for round in 0..40 {
        let leaving = (task("leaving"), exchange(Uuid::now_v7(), "leaving", 0));
        if round % 2 == 0 {
            assert!(tasks.add(&ann, &leaving.0).now_or_never().is_none());
            let _ = store.conversations().record(&ann, &leaving.1).now_or_never();
        } else {
            let moment = Duration::from_millis(fastrand::u64(0..4));
            let _ = timeout(moment, tasks.add(&ann, &leaving.0)).await;
            let _ = timeout(moment, store.conversations().record(&ann, &leaving.1)).await;
        }
        left.push(leaving);
        let staying = task("staying");
        tasks.add(&ann, &staying).await.expect("kept");
        assert_eq!(tasks.get(&ann, staying.id).await.expect("an answer"), Some(staying));
    }
    store.close().await;
    database.wait_for_clients_to_go().await;
    let again = database.store();
    let mut kept = 0;
    for (task, exchange) in left {
        kept += usize::from(is_whole_or_not_there(&again, &ann, &task, &exchange).await);
    }
    assert!(kept > 0, "nothing was there to be looked at");
    again.close().await;
}

/// Whether the exchange is there.
async fn is_whole_or_not_there(store: &Store, ann: &UserId, task: &Task, exchange: &Exchange) -> bool {
    if let Some(found) = store.tasks().get(ann, task.id).await.expect("an answer") {
        assert_eq!(&found, task);
    }
    let state = store.conversations().state(ann, exchange.conversation, 10).await;
    let messages = store.conversations().messages(ann, exchange.conversation, 10, None).await;
    let messages = messages.expect("an answer").map(|page| page.items);
    match state.expect("an answer") {
        None => assert_eq!(messages, None),
        Some(state) => {
            let both = vec![exchange.question.clone(), exchange.answer.clone()];
            assert_eq!(state.recent, both);
            assert_eq!(messages.as_ref(), Some(&both));
        }
    }
    messages.is_some()
}

#[tokio::test]
async fn sqlite_survives_cancelled_callers() {
    callers_who_go_away(Kind::Sqlite).await;
}

#[tokio::test]
async fn postgres_survives_cancelled_callers() {
    callers_who_go_away(Kind::Postgres).await;
}

#[tokio::test]
async fn writer_waits_for_another_program() {
    use sqlx::{ConnectOptions as _, Executor as _};
    let database = TestDatabase::sqlite();
    let store = database.store();
    let ann = user("ann");
    store.ready().await.expect("ready");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database.sqlite_path());
    let mut other = options.connect().await.expect("a connection");
    other.execute("BEGIN IMMEDIATE").await.expect("a lock");
    let tasks = store.tasks();
    let write = tokio::spawn(async move { tasks.add(&ann, &task("patient")).await });
    // Longer than SQLite waits by itself, and far shorter than we do.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!write.is_finished());
    other.execute("COMMIT").await.expect("no lock");
    write.await.expect("it ended").expect("kept");
}
