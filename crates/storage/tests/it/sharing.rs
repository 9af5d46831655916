//! Several processes on one database.

use futures::future::join_all;
use tribune_storage::{Exchange, Store, TaskFilter};
use uuid::Uuid;

use crate::fixtures::{exchange, pending, task, time, user};
use crate::test_database::{Kind, TestDatabase};

/// All find an empty database at once.
async fn opened_at_once(kind: Kind) {
    for _ in 0..3 {
        let database = TestDatabase::new(kind).await;
        let stores: Vec<_> = (0..6).map(|_| database.store()).collect();
        for ready in join_all(stores.iter().map(Store::ready)).await {
            ready.expect("ready");
        }
        let ann = user("ann");
        stores[0].tasks().add(&ann, &task("seen by all")).await.expect("kept");
        for store in &stores {
            let page = store.tasks().list(&ann, &TaskFilter::default(), 10, None).await.expect("a page");
            assert_eq!(page.total, 1);
            store.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_is_created_once() {
    opened_at_once(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_created_once() {
    opened_at_once(Kind::Postgres).await;
}

const CALLERS: usize = 8;
const EACH: usize = 25;

/// Each store with several callers, all writing without a pause; nobody is turned away, nothing is lost.
async fn written_by_two(kind: Kind) {
    let database = TestDatabase::new(kind).await;
    let stores = [database.store(), database.store()];
    let (ann, conversation) = (user("ann"), Uuid::now_v7());
    let mut callers = Vec::new();
    for store in &stores {
        for _ in 0..CALLERS {
            let (tasks, conversations, ann) = (store.tasks(), store.conversations(), ann.clone());
            callers.push(tokio::spawn(async move {
                for number in 0..EACH {
                    tasks.add(&ann, &task("busy")).await.expect("kept");
                    if number % 5 == 0 {
                        conversations.record(&ann, &exchange(conversation, "busy", 0)).await.expect("kept");
                    }
                }
            }));
        }
    }
    for caller in callers {
        caller.await.expect("no error");
    }
    for store in stores {
        let page = store.tasks().list(&ann, &TaskFilter::default(), 1, None).await.expect("a page");
        assert_eq!(page.total, 2 * (CALLERS * EACH) as u64);
        let listed = store.conversations().list(&ann, 10, None).await.expect("a page").items;
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].message_count, 2 * 2 * (CALLERS * EACH / 5) as u64);
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_write_to_one_sqlite() {
    written_by_two(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_write_to_one_postgres() {
    written_by_two(Kind::Postgres).await;
}

/// Two nodes get the same decision at once: one of them may run the call.
async fn taken_by_two(kind: Kind) {
    let database = TestDatabase::new(kind).await;
    let stores = [database.store(), database.store()];
    let (ann, id) = (user("ann"), Uuid::now_v7());
    for second in 0..10 {
        let waiting = [pending("delete x", second), pending("delete y", second)];
        let said = Exchange { pending: waiting.to_vec(), ..exchange(id, "question", second) };
        stores[0].conversations().record(&ann, &said).await.expect("kept");
        let calls = waiting.map(|call| call.id);
        let take = async |store: &Store| store.conversations().take_pending(&ann, id, &calls, time(second)).await;
        let (one, other) = tokio::join!(take(&stores[0]), take(&stores[1]));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    }
    for store in stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_sqlite_store_takes_a_pending_call() {
    taken_by_two(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_postgres_store_takes_a_pending_call() {
    taken_by_two(Kind::Postgres).await;
}
