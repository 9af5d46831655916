//! What can happen to Redis: it stops, hangs, is full, and holds what others put there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tribune_core::SystemClock;
use tribune_market::report::cache::{
    Eagerness, Found, Lease, MAX_TOKEN, NodeId, RedisCache, ReportCache, Timing, Unavailable, Write, Written,
};
use tribune_market::report::model::Report;

use crate::cache::{PATIENT, claims, reads, takes, writes};
use crate::redis_server::RedisServer;
use crate::reports::{BTC, claim, node, report, stored, symbol, write};
use crate::support::until;

const REPORT_KEY: &str = "report:BTCUSDT";
const WRITER_KEY: &str = "report:writer:BTCUSDT";
const KEYS: [&str; 4] = [REPORT_KEY, WRITER_KEY, "report:nodes", "report:symbols"];

/// With the limits of real calls, and leases that do not run out meanwhile.
fn open(url: &str) -> Arc<dyn ReportCache> {
    let limits = Timing::default();
    open_with(
        url,
        Timing {
            read_within: limits.read_within,
            write_within: limits.write_within,
            ..PATIENT
        },
    )
}

fn open_with(url: &str, timing: Timing) -> Arc<dyn ReportCache> {
    Arc::new(RedisCache::open_with_timing(url, Arc::new(SystemClock), timing).expect("an address"))
}

async fn answers(cache: &Arc<dyn ReportCache>) -> bool {
    cache.read(&[symbol(BTC)]).await.is_ok() && cache.nodes(None).await.is_ok()
}

async fn recovers(cache: &Arc<dyn ReportCache>) {
    until("Redis is used again", || answers(cache)).await;
}

async fn read_error(cache: &Arc<dyn ReportCache>) -> String {
    let Unavailable(why) = cache.read(&[symbol(BTC)]).await.expect_err("it cannot answer");
    why
}

async fn write_error(cache: &Arc<dyn ReportCache>, write: Write) -> String {
    let Unavailable(why) = cache.write(&[write]).await.expect_err("it cannot answer");
    why
}

/// Everything works from taking a symbol to reading its report; gives the token.
async fn works(cache: &Arc<dyn ReportCache>, me: &NodeId) -> u64 {
    let token = match claims(cache, me, claim(BTC, Eagerness::First)).await {
        Lease::Taken { token } | Lease::Renewed { token, .. } => token,
        other => panic!("{other:?}"),
    };
    let sequence = Instant::now().duration_since(*BEGINNING).as_micros() as u64;
    assert_eq!(writes(cache, write(BTC, me, token, sequence)).await, Written::Stored);
    assert_eq!(stored(&reads(cache, BTC).await).report.writer.writer_token, token);
    let nodes = cache.nodes(Some(me)).await.expect("it answers");
    assert!(nodes.contains(me), "{nodes:?}");
    let indexed = cache.indexed().await.expect("it answers");
    assert!(indexed.iter().any(|indexed| &*indexed.symbol == BTC), "{indexed:?}");
    token
}

static BEGINNING: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_stopped_and_started_again() {
    let mut server = RedisServer::start();
    let (cache, me) = (open(&server.url()), node("a"));
    recovers(&cache).await;
    let token = works(&cache, &me).await;
    server.kill();
    let why = read_error(&cache).await;
    assert!(why.contains(&format!("Redis at 127.0.0.1:{}", server.port())), "{why}");
    assert!(why.contains("tried again by itself"), "{why}");
    write_error(&cache, write(BTC, &me, token, 1)).await;
    server.start_again();
    recovers(&cache).await;
    assert!(matches!(reads(&cache, BTC).await[..], [Found::Nothing]));
    assert_eq!(
        writes(&cache, write(BTC, &me, token, u64::from(u32::MAX))).await,
        Written::Refused { token: 0 },
        "the lease is forgotten"
    );
    assert!(works(&cache, &me).await > token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_comes_later() {
    let mut server = RedisServer::start();
    server.kill();
    let cache = open(&server.url());
    let begun = Instant::now();
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
    assert!(begun.elapsed() < Duration::from_secs(5));
    server.start_again();
    recovers(&cache).await;
    works(&cache, &node("a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_hangs() {
    let server = RedisServer::start();
    let (cache, me) = (open(&server.url()), node("a"));
    recovers(&cache).await;
    let token = works(&cache, &me).await;
    server.freeze();
    let begun = Instant::now();
    let why = read_error(&cache).await;
    let took = begun.elapsed();
    assert!(
        why.ends_with("did not answer within 150 ms; it is tried again by itself"),
        "{why}"
    );
    assert!(
        (Duration::from_millis(150)..Duration::from_secs(1)).contains(&took),
        "{took:?}"
    );
    let generated = Instant::now();
    let parcel = Write {
        generated,
        ..write(BTC, &me, token, u64::from(u32::MAX))
    };
    let why = write_error(&cache, parcel).await;
    assert!(why.contains("did not answer within 500 ms"), "{why}");
    // After some failures nobody waits any more.
    for _ in 0..3 {
        read_error(&cache).await;
    }
    let begun = Instant::now();
    for _ in 0..1_000 {
        read_error(&cache).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    server.thaw();
    recovers(&cache).await;
    // The write lingered and was done now: the report is as old as it is.
    let least = generated.elapsed();
    let found = reads(&cache, BTC).await;
    let found = stored(&found);
    assert_eq!(found.report.writer.sequence, u64::from(u32::MAX));
    assert!(found.age >= least, "{:?} < {least:?}", found.age);
    let renewed = Lease::Renewed { token, wanted_by: None };
    assert_eq!(claims(&cache, &me, claim(BTC, Eagerness::First)).await, renewed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_slow() {
    let server = Arc::new(RedisServer::start());
    let cache = open(&server.url());
    recovers(&cache).await;
    let asleep = server.clone();
    let sleeper = tokio::task::spawn_blocking(move || asleep.does::<String>("DEBUG", &["SLEEP", "1"]));
    until("it sleeps", || async { !answers(&cache).await }).await;
    assert!(read_error(&cache).await.contains("did not answer"));
    sleeper.await.expect("it sleeps");
    recovers(&cache).await;
    works(&cache, &node("a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_out_of_memory() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    let token = works(&cache, &me).await;
    let _: String = server.does("CONFIG", &["SET", "maxmemory", "1"]);
    let why = write_error(&cache, write(BTC, &me, token, u64::from(u32::MAX))).await;
    assert!(why.contains("is out of memory and takes no writes"), "{why}");
    let asked = [claim(BTC, Eagerness::First)];
    let Unavailable(why) = cache.claim(&me, &asked).await.expect_err("it is full");
    assert!(why.contains("is out of memory"), "{why}");
    for _ in 0..20 {
        assert_eq!(stored(&reads(&cache, BTC).await).report.writer.writer_token, token);
        assert_eq!(cache.indexed().await.expect("reading goes on").len(), 1);
    }
    let _: String = server.does("CONFIG", &["SET", "maxmemory", "0"]);
    assert_eq!(works(&cache, &me).await, token, "at once, with the same lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_forgets_its_scripts() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    for _ in 0..5 {
        works(&cache, &me).await;
        let _: String = server.does("SCRIPT", &["FLUSH"]);
    }
    let token = works(&cache, &me).await;
    cache
        .release(&me, &[(symbol(BTC), token)], true)
        .await
        .expect("it answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_cuts_connections() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    for _ in 0..20 {
        works(&cache, &me).await;
        let _: i64 = server.does("CLIENT", &["KILL", "TYPE", "normal"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_said_and_not_shown() {
    let server = RedisServer::with_password("correct-horse");
    let wrong = format!("redis://:battery-staple@127.0.0.1:{}/1", server.port());
    let cache = RedisCache::open_with_timing(&wrong, Arc::new(SystemClock), PATIENT).expect("an address");
    let Unavailable(why) = cache.read(&[symbol(BTC)]).await.expect_err("the password is wrong");
    assert!(why.contains("refuses the user or the password"), "{why}");
    let shown = format!("{why} {cache:?} {}", cache.place());
    assert!(!shown.contains("battery-staple"), "{shown}");
    assert!(shown.ends_with(&format!("Redis at 127.0.0.1:{}, database 1", server.port())));

    let none = open_with(&server.url(), PATIENT);
    let why = read_error(&none).await;
    assert!(why.contains("wants another user or password"), "{why}");

    let right = format!("redis://:correct-horse@127.0.0.1:{}", server.port());
    works(&open_with(&right, PATIENT), &node("a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_answers_is_no_redis() {
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
    assert!(cache.nodes(None).await.is_err());
}

/// Something of every type of Redis under a key.
fn put(server: &RedisServer, kind: &str, key: &str) {
    let _: i64 = server.does("DEL", &[key]);
    match kind {
        "string" => server.does::<()>("SET", &[key, "\u{0}\u{1}hostile"]),
        "list" => server.does::<()>("RPUSH", &[key, "hostile"]),
        "set" => server.does::<()>("SADD", &[key, "hostile"]),
        "hash" => server.does::<()>("HSET", &[key, "hostile", "yes", "node", "", "token", "x"]),
        "zset" => server.does::<()>("ZADD", &[key, "inf", "hostile", "-inf", "a/b/c/d", "1e300", "/"]),
        _ => server.does::<()>("XADD", &[key, "*", "hostile", "yes"]),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_under_every_key_is_said_and_replaced() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    for kind in ["string", "list", "set", "hash", "zset", "stream"] {
        for key in KEYS {
            put(&server, kind, key);
        }
        match &reads(&cache, BTC).await[..] {
            [Found::Garbage(why)] => assert!(why.starts_with("report:BTCUSDT holds a "), "{why}"),
            other => panic!("{kind}: {other:?}"),
        }
        assert!(cache.indexed().await.expect("it answers").is_empty(), "{kind}");
        assert_eq!(
            writes(&cache, write(BTC, &me, 5, 1)).await,
            Written::Refused { token: 0 },
            "{kind}"
        );
        assert!(cache.nodes(None).await.expect("it answers").is_empty(), "{kind}");
        works(&cache, &me).await;
        cache.release(&me, &[(symbol(BTC), 5)], true).await.expect("it answers");
        assert_eq!(cache.indexed().await.expect("it answers").len(), 1, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absurd_leases_are_not_in_force() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    let long = "x".repeat(5_000_000);
    let far = "4000000000000000";
    let absurd: [&[&str]; 9] = [
        &["node", "b", "token", "7"],
        &["node", "b", "until_ms", "99999999999999"],
        &["node", "b", "token", "7", "until_ms", far],
        &["node", "b", "token", "18446744073709551615", "until_ms", "1e300"],
        &["node", "b", "token", "-7", "until_ms", "nan"],
        &["node", "b", "token", "0x10", "until_ms", "inf"],
        &["node", &long, "token", &long, "until_ms", &long, "wanted_by", &long],
        &[
            "node",
            "\u{0}",
            "token",
            "",
            "until_ms",
            "",
            "sequence",
            "",
            "wanted_until_ms",
            "",
        ],
        &[
            "until_ms",
            "-1",
            "sequence",
            far,
            "wanted_by",
            "b",
            "wanted_until_ms",
            far,
        ],
    ];
    for fields in absurd {
        let _: i64 = server.does("DEL", &[WRITER_KEY]);
        let _: i64 = server.does("HSET", &[&[WRITER_KEY], fields].concat());
        assert_eq!(
            writes(&cache, write(BTC, &node("b"), 7, 1)).await,
            Written::Refused { token: 0 }
        );
        assert_eq!(claims(&cache, &me, claim(BTC, Eagerness::IfLeft)).await, Lease::Free);
        let token = takes(&cache, &me, BTC).await;
        assert!(token <= MAX_TOKEN);
        let renewed = Lease::Renewed { token, wanted_by: None };
        assert_eq!(claims(&cache, &me, claim(BTC, Eagerness::First)).await, renewed);
        assert_eq!(writes(&cache, write(BTC, &me, token, 1)).await, Written::Stored);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_report_is_said() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    let json = |change: fn(&mut Report)| {
        let mut report = report(BTC, &me, 7, 1);
        change(&mut report);
        serde_json::to_string(&report).expect("JSON")
    };
    let good = json(|_| {});
    let long = " ".repeat((1 << 20) + 1);
    let deep = "[".repeat(100_000);
    let cases: [(&str, &str, &str); 9] = [
        (&good, "300001", "expires later than any report"),
        (&long, "1000", "1048577 bytes, too many for a report"),
        (&deep, "1000", "something that is no report"),
        ("", "1000", "something that is no report"),
        ("{\"schemaVersion\":\"1.0\"}", "1000", "missing field"),
        (
            "{\"schemaVersion\":\"2.1\"}",
            "1000",
            "schema version 2.1, and 1.0 is read here",
        ),
        (
            &json(|report| report.schema_version = "9.0".to_owned()),
            "1000",
            "schema version 9.0",
        ),
        (
            &json(|report| report.symbol = "ETHUSDT".to_owned()),
            "1000",
            "a report of ETHUSDT",
        ),
        (
            &json(|report| report.writer.writer_token = u64::MAX),
            "1000",
            "no writer can have",
        ),
    ];
    for (value, life, reason) in cases {
        server.does::<()>("SET", &[REPORT_KEY, value, "PX", life]);
        let found = reads(&cache, BTC).await;
        let [Found::Garbage(why)] = &found[..] else {
            panic!("{reason}: {found:?}");
        };
        assert!(why.contains(reason) && why.len() < 500, "{why}");
    }
    server.does::<()>("SET", &[REPORT_KEY, &good]);
    let found = reads(&cache, BTC).await;
    assert!(
        matches!(&found[..], [Found::Garbage(why)] if why.contains("never expires")),
        "{found:?}"
    );
    server.does::<()>("SET", &[REPORT_KEY, &good, "PX", "299000"]);
    assert!(stored(&reads(&cache, BTC).await).age >= Duration::from_secs(1));
}

/// A report with bytes of it changed, or bytes of any kind.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    let good = serde_json::to_vec(&report(BTC, &node("a"), 7, 1)).expect("JSON");
    let length = good.len();
    let changed = (0..length, any::<u8>(), 0..=length).prop_map(move |(at, byte, end)| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes.truncate(end.max(length / 2));
        bytes
    });
    prop_oneof![changed, proptest::collection::vec(any::<u8>(), 0..300)]
}

/// Whatever is under our keys, every call has an answer.
#[test]
fn hostile_bytes_are_found_and_nothing_breaks() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    let client = redis::Client::open(server.url()).expect("an address");
    let connection = std::cell::RefCell::new(client.get_connection().expect("it runs"));
    proptest!(ProptestConfig::with_cases(200), |(bytes in hostile_bytes(), field in 0_usize..5)| {
        let field = ["node", "token", "sequence", "until_ms", "wanted_by"][field];
        redis::pipe()
            .cmd("SET").arg(REPORT_KEY).arg(&bytes).arg("PX").arg(1_000)
            .cmd("HSET").arg(WRITER_KEY).arg(field).arg(&bytes)
            .cmd("ZADD").arg("report:nodes").arg(1e13).arg(&bytes)
            .cmd("ZADD").arg("report:symbols").arg(1_700_000_000_000_u64).arg(&bytes)
            .exec(&mut connection.borrow_mut()).expect("it runs");
        runtime.block_on(async {
            let found = cache.read(&[symbol(BTC)]).await.expect("it answers");
            prop_assert!(matches!(found[..], [Found::Garbage(_) | Found::Report(_)]));
            cache.indexed().await.expect("it answers");
            cache.nodes(Some(&me)).await.expect("it answers");
            cache.claim(&me, &[claim(BTC, Eagerness::IfLeft)]).await.expect("it answers");
            cache.write(&[write(BTC, &me, 7, 1)]).await.expect("it answers");
            cache.release(&me, &[(symbol(BTC), 7)], false).await.expect("it answers");
            Ok(())
        })?;
    });
}
