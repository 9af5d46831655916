//! Changes on PostgreSQL that cannot be made now, or of which nobody knows whether they were.

use std::time::Duration;

use futures::future::join_all;
use sqlx::{Connection as _, Executor as _};
use tribune_core::{Error, ErrorKind};
use tribune_storage::TaskChanges;
use tribune_storage::{Backend, Store};
use uuid::Uuid;

use crate::fixtures::{chain, exchange, task, time, user};
use crate::proxy::Loss;
use crate::test_database::TestDatabase;

/// Whoever is told that it failed can rely on it, also when the lock is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_timeout_never_applies_the_change() {
    let database = TestDatabase::postgres().await;
    let store = database.store();
    let (tasks, ann) = (store.tasks(), user("ann"));
    let given = [task("complete"), task("update"), task("delete")];
    for task in &given {
        tasks.add(&ann, task).await.expect("kept");
    }
    let Backend::Postgres(url) = database.place() else {
        panic!("PostgreSQL");
    };
    let mut other = sqlx::PgConnection::connect(url).await.expect("a connection");
    other.execute(sqlx::raw_sql("BEGIN; SELECT * FROM tasks FOR UPDATE")).await.expect("a lock");

    let changes = TaskChanges { title: Some("changed".to_owned()), ..TaskChanges::default() };
    let (completed, updated, deleted) = tokio::join!(
        tasks.complete(&ann, given[0].id, Some(true), time(1)),
        tasks.update(&ann, given[1].id, &changes, time(1)),
        tasks.delete(&ann, given[2].id),
    );
    for outcome in [completed, updated, deleted] {
        let error = outcome.expect_err("another has the lock");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("holds a lock"), "{error}");
    }
    other.close().await.expect("it closes");
    store.close().await;
    database.wait_for_clients_to_go().await;
    let again = database.store();
    for task in given {
        assert_eq!(again.tasks().get(&ann, task.id).await.expect("an answer"), Some(task.clone()));
    }
}

fn assert_unknown(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", chain(error));
    let words = "may or may not have been made: check before you retry";
    assert!(error.message().contains(words), "{}", chain(error));
}

/// The server made the change, and its answer never came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answer_leaves_outcome_unknown() {
    let database = TestDatabase::postgres().await;
    let ann = user("ann");
    for loss in [Loss::Broken, Loss::Silent] {
        let (proxy, store) = database.behind_proxy().await;
        store.ready().await.expect("ready");
        let lost = task("the title that is lost");
        proxy.lose_answers_to("the title that is lost", loss);
        assert_unknown(&store.tasks().add(&ann, &lost).await.expect_err("no answer"));
        let direct = database.store();
        let found = direct.tasks().get(&ann, lost.id).await.expect("an answer");
        assert_eq!(found, Some(lost));
        direct.close().await;

        store.tasks().add(&ann, &task("another")).await.expect("it goes on");
    }
}

async fn record(database: &TestDatabase, lost_at: &'static str) -> (Error, bool) {
    let ann = user("ann");
    let (proxy, store) = database.behind_proxy().await;
    store.ready().await.expect("ready");
    proxy.lose_answers_to(lost_at, Loss::Broken);
    let said = exchange(Uuid::now_v7(), "heard?", 0);
    let error = store.conversations().record(&ann, &said).await.expect_err("no answer");
    database.wait_for_clients_to_go().await;
    let direct = database.store();
    let state = direct.conversations().state(&ann, said.conversation, 10).await;
    let kept = state.expect("an answer").is_some();
    direct.close().await;
    (error, kept)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_lost_commit_leaves_outcome_unknown() {
    let database = TestDatabase::postgres().await;
    let (error, kept) = record(&database, "COMMIT").await;
    assert_unknown(&error);
    assert!(kept);

    let (error, kept) = record(&database, "heard?").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!error.message().contains("may or may not"), "{error}");
    assert!(error.message().contains("try again"), "{error}");
    assert!(!kept);
}

async fn with_idle_connections(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let id = Uuid::now_v7();
    for outcome in join_all((0..8).map(|_| tasks.get(&ann, id))).await {
        outcome.expect("an answer");
    }
    // Until none is trusted unseen.
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// As when a firewall forgets them, or a server is replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_idle_connections_fail_no_request() {
    let database = TestDatabase::postgres().await;
    let (proxy, store) = database.behind_proxy().await;
    let (tasks, ann, given) = (store.tasks(), user("ann"), task("after silence"));
    with_idle_connections(&store).await;
    assert!(proxy.silence() > 3, "several connections");
    tasks.add(&ann, &given).await.expect("a new connection");

    with_idle_connections(&store).await;
    assert!(proxy.silence() > 3, "several connections");
    let found = tasks.get(&ann, given.id).await.expect("a new connection");
    assert_eq!(found, Some(given));
}
