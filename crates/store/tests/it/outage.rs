//! PostgreSQL that is not there: at the start, in the middle, and that does not answer.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tribune_core::{Error, ErrorKind};
use tribune_store::{Place, Store};

use crate::postgres_server::PostgresServer;
use crate::things::{chain, task, user};

fn assert_told(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", chain(error));
    assert!(!chain(error).contains("secret-word"), "{}", chain(error));
}

/// How long starting and stopping take is not ours to judge: only the store is timed, and generously, since the
/// machine may be busy. Each waiting for those before it would take far longer.
async fn told_in_time<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let begun = Instant::now();
    let outcome = work.await;
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    outcome
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn down_at_the_start_then_up_then_gone_then_back() {
    let mut server = tokio::task::spawn_blocking(PostgresServer::stopped)
        .await
        .expect("a server");
    let store = Store::new(Place::Postgres(server.url())).expect("a store");
    let (tasks, ann) = (store.tasks(), user("ann"));

    let error = told_in_time(store.ready()).await.expect_err("down");
    assert_told(&error);
    assert!(chain(&error).contains("PostgreSQL at 127.0.0.1"), "{}", chain(&error));
    assert_told(
        &told_in_time(tasks.add(&ann, &task("too early")))
            .await
            .expect_err("down"),
    );

    server = start(server).await;
    let first = task("first");
    tasks.add(&ann, &first).await.expect("up");

    for _ in 0..2 {
        // Several connections are open and idle when it goes.
        let some = vec![task("some"); 8];
        join_all(some.iter().map(|_| tasks.get(&ann, first.id))).await;
        server = stop(server).await;
        assert_told(
            &told_in_time(tasks.add(&ann, &task("meanwhile")))
                .await
                .expect_err("gone"),
        );
        assert_told(&told_in_time(tasks.get(&ann, first.id)).await.expect_err("gone"));
        assert_told(&told_in_time(store.ready()).await.expect_err("gone"));
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
async fn no_answer_is_told_to_all_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let url = format!("postgres://tribune:secret-word@127.0.0.1:{port}/tribune");
    let store = Store::new(Place::Postgres(url)).expect("a store");
    let (tasks, ann) = (store.tasks(), user("ann"));
    let id = task("any").id;
    for outcome in join_all((0..30).map(|_| told_in_time(tasks.get(&ann, id)))).await {
        assert_told(&outcome.expect_err("no answer"));
    }
}
