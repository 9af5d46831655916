//! Foreign values under our keys: reported to readers, replaced by writers.

use std::time::Duration;

use proptest::prelude::*;
use tribune_reports::cache::Lease;
use tribune_reports::model::Report;

use super::{REPORT_KEY, open_with, works};
use crate::cache::{PATIENT, claims, reads, takes, writes};
use crate::redis_server::RedisServer;
use crate::reports::{BTC, claim, node, report, stored, symbol, write};

const WRITER_KEY: &str = "report:writer:BTCUSDT";
const KEYS: [&str; 3] = [REPORT_KEY, WRITER_KEY, "report:symbols"];

/// Stores a value of the given Redis type.
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
async fn garbage_is_reported_and_replaced() {
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    for kind in ["string", "list", "set", "hash", "zset", "stream"] {
        for key in KEYS {
            put(&server, kind, key);
        }
        match &reads(&cache, BTC).await[..] {
            [Err(why)] => assert!(why.starts_with("report:BTCUSDT holds a value whose type, "), "{why}"),
            other => panic!("{kind}: {other:?}"),
        }
        assert!(cache.indexed().await.expect("it answers").is_empty(), "{kind}");
        assert!(!writes(&cache, write(BTC, &me, 5, 1)).await, "{kind}");
        works(&cache, &me).await;
        cache.release(&me, &[(symbol(BTC), 5)]).await.expect("it answers");
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
        &["node", &long, "token", &long, "until_ms", &long],
        &["node", "\u{0}", "token", "", "until_ms", "", "sequence", ""],
        &["until_ms", "-1", "sequence", far],
    ];
    for fields in absurd {
        let _: i64 = server.does("DEL", &[WRITER_KEY]);
        let _: i64 = server.does("HSET", &[&[WRITER_KEY], fields].concat());
        assert!(!writes(&cache, write(BTC, &node("b"), 7, 1)).await);
        let token = takes(&cache, &me, BTC).await;
        assert!(token <= 1 << 52);
        assert_eq!(claims(&cache, &me, claim(BTC)).await, Lease::Renewed(token));
        assert!(writes(&cache, write(BTC, &me, token, 1)).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_values_are_reported() {
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
    let cases: [(&str, &str, &str); 8] = [
        (&good, "400000", "type, length or expiry"),
        (&long, "1000", "type, length or expiry"),
        (&deep, "1000", "no report of schema version 1.0"),
        ("", "1000", "no report of schema version 1.0"),
        ("{\"schemaVersion\":\"1.0\"}", "1000", "missing field"),
        ("{\"schemaVersion\":\"2.1\"}", "1000", "no report of schema version 1.0"),
        (&json(|report| report.schema_version = "9.0".to_owned()), "1000", "schema version 9.0; 1.0 is read here"),
        (&json(|report| report.symbol = "ETHUSDT".to_owned()), "1000", "a report of ETHUSDT"),
    ];
    for (value, life, reason) in cases {
        server.does::<()>("SET", &[REPORT_KEY, value, "PX", life]);
        let found = reads(&cache, BTC).await;
        let [Err(why)] = &found[..] else {
            panic!("{reason}: {found:?}");
        };
        assert!(why.contains(reason) && why.len() < 500, "{why}");
    }
    server.does::<()>("SET", &[REPORT_KEY, &good]);
    let found = reads(&cache, BTC).await;
    assert!(matches!(&found[..], [Err(why)] if why.contains("type, length or expiry")), "{found:?}");
    server.does::<()>("SET", &[REPORT_KEY, &good, "PX", "299000"]);
    assert!(stored(&reads(&cache, BTC).await).since >= Duration::from_secs(1));
}

/// A report with changed bytes, or random bytes.
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
fn hostile_bytes_break_nothing() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = RedisServer::start();
    let (cache, me) = (open_with(&server.url(), PATIENT), node("a"));
    let client = redis::Client::open(server.url()).expect("an address");
    let connection = std::cell::RefCell::new(client.get_connection().expect("it runs"));
    proptest!(ProptestConfig::with_cases(200), |(bytes in hostile_bytes(), field in 0_usize..4)| {
        let field = ["node", "token", "sequence", "until_ms"][field];
        redis::pipe()
            .cmd("SET").arg(REPORT_KEY).arg(&bytes).arg("PX").arg(1_000)
            .cmd("HSET").arg(WRITER_KEY).arg(field).arg(&bytes)
            .cmd("ZADD").arg("report:symbols").arg(1_700_000_000_000_u64).arg(&bytes)
            .exec(&mut connection.borrow_mut()).expect("it runs");
        runtime.block_on(async {
            let found = cache.read(&[symbol(BTC)]).await.expect("it answers");
            prop_assert!(matches!(found[..], [Ok(Some(_)) | Err(_)]));
            cache.indexed().await.expect("it answers");
            cache.claim(&me, &[claim(BTC)]).await.expect("it answers");
            cache.write(&[write(BTC, &me, 7, 1)]).await.expect("it answers");
            cache.release(&me, &[(symbol(BTC), 7)]).await.expect("it answers");
            Ok(())
        })?;
    });
}
