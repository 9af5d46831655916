//! Several nodes count rates together in Redis, and go on without it.

use std::time::SystemTime;

use serde_json::json;

use crate::people::Person;
use crate::redis::Redis;
use crate::support::{TestServer, wait_for};

/// Changes of a user in an hour.
const LIMIT: u64 = 20;

fn node(redis: &Redis) -> TestServer {
    let tables = format!("[store]\n[limits]\nchanges_per_hour = {LIMIT}\n[cache]\nurl = \"{}\"", redis.url());
    TestServer::builder().tables(&tables).start()
}

fn hour() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs() / 3_600
}

/// Whether a user may change something.
fn change(person: &Person<'_>) -> bool {
    match person.try_call("add_task", &json!({"title": "Buy beans"})) {
        Ok(_) => true,
        Err(refused) if refused.contains("Too many changes") => false,
        Err(other) => panic!("{other}"),
    }
}

/// Until a count in Redis is that of all nodes.
fn wait_for_count(redis: &Redis, wanted: u64, began: u64) {
    wait_for("the count in Redis", || {
        let mut console = redis.connect();
        let counts = console.ask(&["KEYS", "rate:*"]).into_iter().map(|key| {
            let digest = key.trim_start_matches("rate:");
            assert!(digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
            console.ask(&["HVALS", &key]).iter().map(|count| count.parse::<u64>().expect("a count")).sum::<u64>()
        });
        let is_there = counts.collect::<Vec<_>>().contains(&wanted);
        is_there || hour() != began
    });
}

/// Changes until one is refused, each after Redis has the count; how many the nodes have allowed then.
fn change_until_refused(redis: &Redis, person: &Person<'_>, mut allowed: u64, began: u64) -> u64 {
    while change(person) {
        allowed += 1;
        wait_for_count(redis, allowed, began);
    }
    allowed
}

#[test]
fn nodes_share_rates_and_go_on_without_redis() {
    let mut redis = Redis::start();
    let (one, other) = (node(&redis), node(&redis));
    // A new hour begins a new count, so the second user is for a test that saw one begin.
    let allowed = ["ann", "cid"].into_iter().find_map(|user| {
        let began = hour();
        let (at_one, at_other) = (Person::new(&one, user), Person::new(&other, user));
        assert!((0..15).all(|_| change(&at_one)));
        wait_for_count(&redis, 15, began);
        let at_other = change_until_refused(&redis, &at_other, 15, began);
        let at_one = change_until_refused(&redis, &at_one, at_other, began);
        (hour() == began).then_some((at_other, at_one))
    });
    let (at_other, at_one) = allowed.expect("an hour");
    assert_eq!(at_other, LIMIT, "the node has learnt long before what the first one counted");
    // A node learns within a second or so of the first change that it sees.
    assert!(at_one < LIMIT + LIMIT / 2, "{at_one} changes");

    // A successor knows what its predecessor has counted.
    let one = one.restart();
    let (began, at_successor) = (hour(), Person::new(&one, "eve"));
    assert!((0..LIMIT).all(|_| change(&at_successor)));
    wait_for_count(&redis, LIMIT, began);
    let one = one.restart();
    let again = change_until_refused(&redis, &Person::new(&one, "eve"), LIMIT, began);
    assert!(again < LIMIT + LIMIT / 2 || hour() != began, "{again} changes");

    redis.kill();
    for node in [&one, &other] {
        let ben = Person::new(node, "ben");
        assert_eq!((0..2 * LIMIT).filter(|_| change(&ben)).count() as u64, LIMIT, "each node counts alone");
        node.wait_for_log("this node counts rates alone");
        wait_for("the metric", || node.metrics().contains("tribune_limits_shared 0"));
    }
    redis.run(&[]);
    for node in [&one, &other] {
        wait_for("Redis to be used again", || node.metrics().contains("tribune_limits_shared 1"));
        let log = node.wait_for_log("rates are counted together");
        let times = |line| log.matches(line).count();
        assert!(times("this node counts rates alone") <= times("rates are counted together") + 1, "{log}");
    }
}
