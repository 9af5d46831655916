//! What can happen to Redis: it stops, hangs, is full, and holds what others put there.

mod garbage;

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tribune_core::SystemClock;
use tribune_reports::cache::{Generated, Lease, NodeId, RedisCache, ReportCache, Timing, Unavailable};

use crate::cache::{PATIENT, claims, reads, writes};
use crate::redis_server::RedisServer;
use crate::reports::{BTC, claim, node, stored, symbol, write};
use crate::support::{PATIENCE, until};

const REPORT_KEY: &str = "report:BTCUSDT";

/// Sequences grow from here.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// With the limits of real calls, and leases that do not run out meanwhile.
fn open(url: &str) -> Arc<dyn ReportCache> {
    let limits = Timing::DEFAULT;
    open_with(url, Timing { read_within: limits.read_within, write_within: limits.write_within, ..PATIENT })
}

fn open_with(url: &str, timing: Timing) -> Arc<dyn ReportCache> {
    Arc::new(RedisCache::open(url, Arc::new(SystemClock), timing).expect("an address"))
}

async fn answers(cache: &Arc<dyn ReportCache>) -> bool {
    cache.read(&[symbol(BTC)]).await.is_ok() && writes_reach_it(cache).await.is_ok()
}

/// A call of the writer's side that changes nothing.
async fn writes_reach_it(cache: &Arc<dyn ReportCache>) -> Result<(), Unavailable> {
    cache.release(&node("nobody"), &[(symbol("NOBODYUSDT"), 1)]).await
}

async fn recovers(cache: &Arc<dyn ReportCache>) {
    until("Redis is used again", || answers(cache)).await;
}

async fn read_error(cache: &Arc<dyn ReportCache>) -> String {
    let Unavailable(why) = cache.read(&[symbol(BTC)]).await.expect_err("it cannot answer");
    why
}

async fn write_error(cache: &Arc<dyn ReportCache>, write: Generated) -> String {
    let Unavailable(why) = cache.write(&[write]).await.expect_err("it cannot answer");
    why
}

/// Everything works from taking a symbol to reading its report; gives the token.
async fn works(cache: &Arc<dyn ReportCache>, me: &NodeId) -> u64 {
    let token = match claims(cache, me, claim(BTC)).await {
        Lease::Taken(token) | Lease::Renewed(token) => token,
        other => panic!("{other:?}"),
    };
    let sequence = Instant::now().duration_since(*BEGINNING).as_micros() as u64;
    assert!(writes(cache, write(BTC, me, token, sequence)).await);
    assert_eq!(stored(&reads(cache, BTC).await).report.writer.writer_token, token);
    let indexed = cache.indexed().await.expect("it answers");
    assert!(indexed.iter().any(|indexed| &*indexed.symbol == BTC), "{indexed:?}");
    token
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_restarts() {
    let mut server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    let token = works(&cache, &me).await;
    server.kill();
    let why = read_error(&cache).await;
    assert!(why.contains(&format!("Redis at 127.0.0.1:{}", server.port())), "{why}");
    assert!(why.contains("tried again by itself"), "{why}");
    write_error(&cache, write(BTC, &me, token, 1)).await;
    server.start_again();
    recovers(&cache).await;
    assert!(matches!(reads(&cache, BTC).await[..], [Ok(None)]));
    assert!(!writes(&cache, write(BTC, &me, token, u64::from(u32::MAX))).await, "the lease is forgotten");
    assert!(works(&cache, &me).await > token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_starts_later() {
    let mut server = RedisServer::start();
    server.kill();
    let cache = open_with(&server.url(), PATIENT);
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let cache = cache.clone();
            tokio::spawn(async move { read_error(&cache).await })
        })
        .collect();
    for caller in callers {
        let why = caller.await.expect("no assertion failed");
        assert!(why.contains("there is no connection to Redis at"), "{why}");
    }
    server.start_again();
    recovers(&cache).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_hangs() {
    let server = RedisServer::start();
    let (cache, patient, me) = (open(&server.url()), open_with(&server.url(), PATIENT), node("a"));
    let token = works(&patient, &me).await;
    recovers(&cache).await;
    server.freeze();
    let why = read_error(&cache).await;
    assert!(why.ends_with("did not answer within 150 ms; it is tried again by itself"), "{why}");
    let generated = Instant::now();
    let parcel = Generated { at: generated, ..write(BTC, &me, token, u64::from(u32::MAX)) };
    let why = write_error(&cache, parcel).await;
    assert!(why.contains("did not answer within 500 ms"), "{why}");
    // Callers wait at the same time, not one after the other: with 150 ms each, so many would outlast any patience.
    let many = join_all((0..5_000).map(|_| read_error(&cache)));
    tokio::time::timeout(PATIENCE, many).await.expect("nobody waits for another");
    server.thaw();
    recovers(&cache).await;
    // The write lingered and was done now: the report is as old as it is.
    let least = generated.elapsed();
    let found = reads(&patient, BTC).await;
    let found = stored(&found);
    assert_eq!(found.report.writer.sequence, u64::from(u32::MAX));
    assert!(found.since >= least, "{:?} < {least:?}", found.since);
    assert_eq!(claims(&patient, &me, claim(BTC)).await, Lease::Renewed(token));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_slow() {
    let server = Arc::new(RedisServer::start());
    let cache = open(&server.url());
    recovers(&cache).await;
    let asleep = server.clone();
    let sleeper = tokio::task::spawn_blocking(move || asleep.does::<String>("DEBUG", &["SLEEP", "5"]));
    until("it sleeps", || async { !answers(&cache).await }).await;
    assert!(read_error(&cache).await.contains("did not answer"));
    sleeper.await.expect("it sleeps");
    recovers(&cache).await;
    works(&open_with(&server.url(), PATIENT), &node("a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_out_of_memory() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    let token = works(&cache, &me).await;
    let _: String = server.does("CONFIG", &["SET", "maxmemory", "1"]);
    let why = write_error(&cache, write(BTC, &me, token, u64::from(u32::MAX))).await;
    assert!(why.contains("answered OOM"), "{why}");
    let asked = [claim(BTC)];
    let Unavailable(why) = cache.claim(&me, &asked).await.expect_err("it is full");
    assert!(why.contains("answered OOM"), "{why}");
    for _ in 0..20 {
        assert_eq!(stored(&reads(&cache, BTC).await).report.writer.writer_token, token);
        assert_eq!(cache.indexed().await.expect("reading goes on").len(), 1);
    }
    let _: String = server.does("CONFIG", &["SET", "maxmemory", "0"]);
    assert_eq!(works(&cache, &me).await, token, "at once, with the same lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_becomes_a_replica() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    let token = works(&cache, &me).await;
    // Nothing listens there, so that the data stays.
    let _: String = server.does("REPLICAOF", &["127.0.0.1", "1"]);
    let why = write_error(&cache, write(BTC, &me, token, u64::from(u32::MAX))).await;
    assert!(why.contains("answered READONLY"), "{why}");
    assert_eq!(stored(&reads(&cache, BTC).await).report.writer.writer_token, token);
    let _: String = server.does("REPLICAOF", &["NO", "ONE"]);
    works(&cache, &me).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_flushes_scripts() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    for _ in 0..5 {
        works(&cache, &me).await;
        let _: String = server.does("SCRIPT", &["FLUSH"]);
    }
    let token = works(&cache, &me).await;
    cache.release(&me, &[(symbol(BTC), token)]).await.expect("it answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_closes_connections() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    for _ in 0..20 {
        works(&cache, &me).await;
        let _: i64 = server.does("CLIENT", &["KILL", "TYPE", "normal"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_password_is_reported_and_not_shown() {
    let server = RedisServer::with_password("correct-horse");
    let wrong = format!("redis://:battery-staple@127.0.0.1:{}/1", server.port());
    let cache = RedisCache::open(&wrong, Arc::new(SystemClock), PATIENT).expect("an address");
    let Unavailable(why) = cache.read(&[symbol(BTC)]).await.expect_err("the password is wrong");
    assert!(why.contains("wants another user or password"), "{why}");
    let shown = format!("{why} {}", cache.place());
    assert!(!shown.contains("battery-staple"), "{shown}");
    assert!(shown.ends_with(&format!("Redis at 127.0.0.1:{}, database 1", server.port())));

    let why = read_error(&open_with(&server.url(), PATIENT)).await;
    assert!(why.contains("wants another user or password"), "{why}");

    let right = format!("redis://:correct-horse@127.0.0.1:{}", server.port());
    works(&open_with(&right, PATIENT), &node("a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_is_no_redis_fails() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            tokio::spawn(async move {
                let mut asked = [0; 1024];
                while stream.read(&mut asked).await.is_ok_and(|count| count > 0) {
                    let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
                    stream.write_all(answer).await.ok();
                }
            });
        }
    });
    let cache = open_with(&format!("redis://{address}"), PATIENT);
    assert!(cache.read(&[symbol(BTC)]).await.is_err());
    assert!(writes_reach_it(&cache).await.is_err());
}
