//! PostgreSQL that is not there: at the start, in the middle, and that does not answer.

use std::net::TcpListener;
use std::time::Duration;

use futures::future::join_all;
use tribune_core::{Error, ErrorKind};
use tribune_storage::{Backend, Store};

use crate::fixtures::{chain, task, user};
use crate::postgres_server::PostgresServer;

fn assert_unavailable(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", chain(error));
    assert!(!chain(error).contains("secret-word"), "{}", chain(error));
}

/// Only a hang takes this long: each waiting for those before it would.
async fn within_patience<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(Duration::from_secs(120), work).await.expect("it hangs")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_survives_postgres_restarts() {
    let mut server = tokio::task::spawn_blocking(PostgresServer::stopped).await.expect("a server");
    let store = Store::new(Backend::Postgres(server.url())).expect("a store");
    let (tasks, ann) = (store.tasks(), user("ann"));

    let error = within_patience(store.ready()).await.expect_err("down");
    assert_unavailable(&error);
    assert!(chain(&error).contains("PostgreSQL at 127.0.0.1"), "{}", chain(&error));
    assert_unavailable(&within_patience(tasks.add(&ann, &task("too early"))).await.expect_err("down"));

    server = start(server).await;
    let first = task("first");
    tasks.add(&ann, &first).await.expect("up");

    for _ in 0..2 {
        // Several connections are open and idle when it goes.
        let some = vec![task("some"); 8];
        join_all(some.iter().map(|_| tasks.get(&ann, first.id))).await;
        server = stop(server).await;
        assert_unavailable(&within_patience(tasks.add(&ann, &task("meanwhile"))).await.expect_err("gone"));
        assert_unavailable(&within_patience(tasks.get(&ann, first.id)).await.expect_err("gone"));
        assert_unavailable(&within_patience(store.ready()).await.expect_err("gone"));
        server = start(server).await;
        assert_eq!(tasks.get(&ann, first.id).await.expect("back"), Some(first.clone()));
        tasks.add(&ann, &task("after")).await.expect("back");
    }

    // A restart that nobody noticed costs no reader anything.
    server = start(stop(server).await).await;
    for outcome in join_all((0..20).map(|_| tasks.get(&ann, first.id))).await {
        assert_eq!(outcome.expect("back"), Some(first.clone()));
    }
    store.close().await;
    drop(server);
}

async fn start(mut server: PostgresServer) -> PostgresServer {
    let started = tokio::task::spawn_blocking(move || {
        server.start_again();
        server
    });
    started.await.expect("it starts")
}

async fn stop(mut server: PostgresServer) -> PostgresServer {
    let stopped = tokio::task::spawn_blocking(move || {
        server.stop();
        server
    });
    stopped.await.expect("it stops")
}

/// It takes connections and says nothing: nobody hangs, however many ask.
#[tokio::test]
async fn silent_server_fails_all_callers() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let url = format!("postgres://tribune:secret-word@127.0.0.1:{port}/tribune");
    let store = Store::new(Backend::Postgres(url)).expect("a store");
    let (tasks, ann) = (store.tasks(), user("ann"));
    let id = task("any").id;
    for outcome in join_all((0..30).map(|_| within_patience(tasks.get(&ann, id)))).await {
        assert_unavailable(&outcome.expect_err("no answer"));
    }
}
