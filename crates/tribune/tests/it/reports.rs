//! Market reports through the binary: what is answered, how fresh it is, and what happens when parts fail.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::exchange::Simulator;
use crate::redis::Redis;
use crate::support::{TestServer, binary, fault, root, text, wait_for};

/// A server with reports of three symbols; `cache` is what `[cache]` says.
fn serve(simulator: &Simulator, cache: &str) -> TestServer {
    let server = TestServer::builder()
        .tables(&format!(
            "[market]\nrest_url = \"{}\"\nsymbols = [\"BTCUSDT\", \"ETHUSDT\", \"SOLUSDT\"]\n[cache]\n{cache}",
            simulator.url
        ))
        .start();
    wait_for("a whole report", || {
        let answer = ask(&server, "get_report", &json!({"symbol": "BTCUSDT"}));
        !answer["result"]["structuredContent"]["best_bid"].is_null()
    });
    server
}

fn ask(server: &TestServer, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    server.modern("/mcp", "tools/call", params).json()
}

fn report(server: &TestServer) -> Value {
    server.call("get_report", json!({"symbol": "BTCUSDT"}))
}

fn status(report: &Value) -> &str {
    text(&report["ingestion"]["status"])
}

fn schema() -> Value {
    let path = root().join("crates/market/src/report/schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the schema")).expect("JSON")
}

#[test]
fn one_call_gives_the_whole_state_of_a_market() {
    let simulator = Simulator::start(&["--seed", "5"]);
    let server = serve(&simulator, "");
    let first = report(&server);
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    let faults: Vec<String> = schema.iter_errors(&first).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}\n{first:#}");
    assert_eq!((text(&first["symbol"]), status(&first)), ("BTCUSDT", "ok"), "{first:#}");
    assert!(text(&first["simulated"]).starts_with("SIMULATED"));
    assert!(first["data_age_ms"].as_u64().expect("an age") < 3_000);
    let price = |side: &str| text(&first[side]["price"]).parse::<f64>().expect("a price");
    assert!(price("best_bid") < price("best_ask"));

    // It goes on being computed, and another spelling is the same symbol.
    wait_for("the next report", || {
        let next = server.call("get_report", json!({"symbol": "btc/usdt"}));
        next["writer"]["sequence"].as_u64() > first["writer"]["sequence"].as_u64()
    });

    // The overview has a row for each.
    let overview = server.call("market_overview", json!({}));
    assert_eq!(
        (&overview["indexed"], &overview["listed"]),
        (&json!(3), &json!(3)),
        "{overview:#}"
    );
    let names: BTreeSet<&str> = overview["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| text(&row[0]))
        .collect();
    assert_eq!(names, BTreeSet::from(["BTCUSDT", "ETHUSDT", "SOLUSDT"]));
    let columns = overview["columns"].as_array().expect("columns").len();
    assert!(
        overview["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .all(|row| row.as_array().expect("cells").len() == columns)
    );

    // Markdown for a model, the same structure beside it.
    let written = ask(
        &server,
        "get_report",
        &json!({"symbol": "ETHUSDT", "format": "markdown"}),
    );
    let words = text(&written["result"]["content"][0]["text"]);
    assert!(
        words.contains("SIMULATED") && words.contains("ETHUSDT") && words.contains("Health"),
        "{words}"
    );
    assert_eq!(written["result"]["structuredContent"]["symbol"], "ETHUSDT");
}

#[test]
fn a_report_is_found_fetched_shown_and_cited() {
    let simulator = Simulator::start(&["--seed", "6"]);
    let server = serve(&simulator, "url = \"memory:\"");
    let found = server.call("search", json!({"query": "bitcoin report"}));
    assert_eq!(found["results"][0]["id"], "report:BTCUSDT", "{found:#}");
    let plain = server.call("search", json!({"query": "bitcoin"}));
    let ids: Vec<&str> = plain["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|hit| text(&hit["id"]))
        .collect();
    assert_eq!(ids[0], "ticker:BTCUSDT", "{ids:?}");
    assert!(ids.contains(&"report:BTCUSDT"), "{ids:?}");
    let pasted = server.call("search", json!({"query": "report:SOLUSDT"}));
    assert_eq!(pasted["results"][0]["id"], "report:SOLUSDT", "{pasted:#}");

    let document = server.call("fetch", json!({"id": "report:BTCUSDT"}));
    assert_eq!(document["id"], "report:BTCUSDT");
    assert!(
        text(&document["title"]).starts_with("SIMULATED BTCUSDT"),
        "{document:#}"
    );
    let url = text(&document["url"]).replace(&server.url, "");
    std::thread::sleep(Duration::from_millis(600));
    let cited = server.get(&url, &[("accept", "application/json")]).json();
    assert_eq!(cited["text"], document["text"], "as it was");
    let page = server.get("/data/report:BTCUSDT", &[("accept", "text/html")]);
    assert!(
        page.status == 200 && page.body.contains("BTCUSDT market report"),
        "{}",
        page.body
    );

    // A shell that has just started finds it too.
    let asked = std::process::Command::new(binary())
        .args(["search", "bitcoin report", "--json", "--config"])
        .arg(server.config())
        .output()
        .expect("runs");
    let found: Value = serde_json::from_slice(&asked.stdout).unwrap_or_else(|_| panic!("{asked:?}"));
    assert_eq!(found["results"][0]["id"], "report:BTCUSDT", "{found:#}");
    let asked = std::process::Command::new(binary())
        .args(["call", "get_report", r#"{"symbol": "NOSUCHCOIN"}"#, "--config"])
        .arg(server.config())
        .output()
        .expect("runs");
    let told = String::from_utf8_lossy(&asked.stderr);
    assert!(told.contains("no symbol NOSUCHCOIN on the exchange"), "{told}");
    assert!(told.contains("Indexed: BTCUSDT"), "{told}");

    // The profile of its own has these tools and no other.
    let tools = server.modern("/mcp/reports", "tools/list", json!({})).json();
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| text(&tool["name"]))
        .collect();
    for name in ["search", "fetch", "get_report", "market_overview"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.starts_with("binance_")), "{names:?}");
    let known = tools["result"]["tools"].as_array().expect("tools");
    let output = known
        .iter()
        .find(|tool| tool["name"] == "get_report")
        .expect("the tool");
    assert_eq!(
        output["outputSchema"]["properties"]["schemaVersion"]["type"], "string",
        "the schema is published"
    );
}

#[test]
fn errors_say_what_happened_and_what_to_do() {
    let simulator = Simulator::start(&["--seed", "7"]);
    let server = serve(&simulator, "");
    let other = fault(&server, "get_report", &json!({"symbol": "XRPUSDT"}));
    assert!(other.starts_with("symbol_not_indexed:"), "{other}");
    assert!(
        other.contains("BTCUSDT, ETHUSDT, SOLUSDT") && other.contains("`symbols` of [market]"),
        "{other}"
    );
    let unknown = fault(&server, "get_report", &json!({"symbol": "NOSUCHCOIN"}));
    assert!(
        unknown.contains("symbol_not_indexed") && unknown.contains("on the exchange"),
        "{unknown}"
    );
    let wrong = fault(&server, "get_report", &json!({"symbool": "BTCUSDT"}));
    assert!(wrong.contains("symbol"), "{wrong}");
    assert_eq!(server.get("/data/report:XRPUSDT", &[]).status, 404);
    // Neither of them says what was asked for in the log.
    assert!(!server.log().contains("NOSUCHCOIN"), "{}", server.log());
    let metrics = server.get("/metrics", &[]).body;
    for name in [
        "tribune_report_age_seconds",
        "tribune_report_compute_seconds",
        "tribune_report_lease_changes_total",
        "tribune_report_symbols_written 3",
    ] {
        assert!(metrics.contains(name), "{name} is not in {metrics}");
    }
}

/// How long after the feed was stopped a status was first seen.
fn first_seen(server: &TestServer, wanted: &str, since: Instant) -> (Duration, Value) {
    loop {
        let seen = report(server);
        if status(&seen) == wanted {
            return (since.elapsed(), seen);
        }
        assert!(since.elapsed() < Duration::from_secs(30), "never {wanted}: {seen:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_stopped_feed_is_degraded_then_down_then_ok_again() {
    let simulator = Simulator::start(&["--seed", "8"]);
    let server = serve(&simulator, "");
    // Streams that say nothing, and an exchange that hangs altogether.
    for is_frozen in [false, true] {
        assert_eq!(status(&report(&server)), "ok");
        match is_frozen {
            false => simulator.fault(&json!({"fault": "silence", "on": true})),
            true => simulator.signal("STOP"),
        }
        let stopped = Instant::now();
        // Every report from here on: its age never falls, and its status is what its age says.
        let mut statuses: Vec<String> = Vec::new();
        let mut oldest = 0;
        let mut longest_step = 0;
        while stopped.elapsed() < Duration::from_secs(9) {
            let is_settled = stopped.elapsed() > Duration::from_millis(500);
            let seen = report(&server);
            let age = seen["data_age_ms"].as_u64().expect("an age");
            assert!(!is_settled || age >= oldest, "{age} ms after {oldest} ms: {seen:#}");
            longest_step = longest_step.max(age.saturating_sub(oldest));
            oldest = age;
            let expected = match age {
                0..3_000 => "ok",
                3_000..5_000 => "degraded",
                _ => "down",
            };
            assert_eq!(status(&seen), expected, "{seen:#}");
            assert!(expected == "ok" || !seen["ingestion"]["reason"].is_null(), "{seen:#}");
            if statuses.last().is_none_or(|last| last != expected) {
                statuses.push(expected.to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // A machine that stood still for as long may have missed what was between.
        if longest_step < 2_000 {
            assert_eq!(statuses, ["ok", "degraded", "down"]);
        }
        assert_eq!(
            (
                statuses.first().map(String::as_str),
                statuses.last().map(String::as_str)
            ),
            (Some("ok"), Some("down"))
        );
        assert!(oldest >= 8_000, "{oldest} ms old after 9 s");
        let words = ask(
            &server,
            "get_report",
            &json!({"symbol": "BTCUSDT", "format": "markdown"}),
        );
        assert!(
            text(&words["result"]["content"][0]["text"]).contains("STALE"),
            "{words}"
        );
        match is_frozen {
            false => simulator.fault(&json!({"fault": "clear"})),
            true => simulator.signal("CONT"),
        }
        first_seen(&server, "ok", Instant::now());
    }
}

#[test]
fn a_process_without_a_feed_serves_what_others_write() {
    let simulator = Simulator::start(&["--seed", "9"]);
    let redis = Redis::start();
    let cache = format!("url = \"{}\"", redis.url());
    let writer = serve(&simulator, &cache);
    let reader = TestServer::builder()
        .tables(&format!("[market]\nfeed = false\n[cache]\n{cache}"))
        .start();
    let read = report(&reader);
    assert_eq!(read["writer"]["nodeId"], report(&writer)["writer"]["nodeId"]);
    assert_eq!(status(&read), "ok");
    let found = reader.call("search", json!({"query": "ethereum report"}));
    assert_eq!(found["results"][0]["id"], "report:ETHUSDT", "{found:#}");
    let tools = reader.modern("/mcp", "tools/list", json!({})).body;
    assert!(tools.contains("get_report") && !tools.contains("binance_get_ticker"));
    let other = fault(&reader, "get_report", &json!({"symbol": "XRPUSDT"}));
    assert!(other.contains("of the nodes that write reports"), "{other}");
    // The one that writes is killed: what it wrote grows old, and says so.
    drop(writer);
    let killed = Instant::now();
    let (_, down) = first_seen(&reader, "down", killed);
    assert!(
        text(&down["ingestion"]["reason"]).contains("no node writes"),
        "{down:#}"
    );
    // A shell that asks takes nothing over.
    let asked = std::process::Command::new(binary())
        .args(["call", "market_overview", "{}", "--json", "--config"])
        .arg(reader.config())
        .output()
        .expect("runs");
    assert!(asked.status.success(), "{asked:?}");
}

#[test]
fn a_redis_that_fails_in_every_way_is_told_and_recovered_from() {
    let simulator = Simulator::start(&["--seed", "10"]);
    let mut redis = Redis::start();
    let server = serve(&simulator, &format!("url = \"{}\"", redis.url()));
    let unavailable = || {
        let asked = Instant::now();
        let answer = ask(&server, "get_report", &json!({"symbol": "BTCUSDT"}));
        let words = text(&answer["result"]["content"][0]["text"]).to_owned();
        (answer["result"]["isError"] == true && words.starts_with("backend_unavailable:"))
            .then(|| (asked.elapsed(), words))
    };
    let recovers = |what: &str| {
        wait_for(what, || {
            let answer = ask(&server, "get_report", &json!({"symbol": "BTCUSDT"}));
            status(&answer["result"]["structuredContent"]) == "ok"
        });
    };
    let token = || report(&server)["writer"]["writerToken"].as_u64().expect("a token");
    let before = token();

    // Stopped, and started again empty.
    redis.kill();
    wait_for("the error", || unavailable().is_some());
    assert_eq!(server.get("/readyz", &[]).status, 200, "everything else is served");
    wait_for("the reason", || {
        server.get("/readyz", &[]).body.contains("backend_unavailable")
    });
    redis.run(&[]);
    recovers("reports after a restart");
    // The last report is read until the next is written.
    wait_for("a larger token, although everything was lost", || token() > before);

    // Slow: it hangs.
    redis.signal("STOP");
    wait_for("the error", || unavailable().is_some());
    let (took, words) = unavailable().expect("still hanging");
    assert!(took < Duration::from_millis(1_000), "{took:?}");
    redis.signal("CONT");
    recovers("reports after a pause");
    assert!(words.contains("tried again") || words.contains("150 ms"), "{words}");

    // Out of memory: what is there is read on, and grows old.
    let mut console = redis.connect();
    console.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let (_, old) = first_seen(&server, "degraded", Instant::now());
    assert!(old["data_age_ms"].as_u64() >= Some(3_000));
    console.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    recovers("reports after the memory came back");

    // Garbage under every key.
    for garbage in ["not json", "{}", "[1,2", "\u{0}\u{1}"] {
        for key in [
            "report:BTCUSDT",
            "report:writer:BTCUSDT",
            "report:nodes",
            "report:symbols",
        ] {
            console.ask(&["SET", key, garbage]);
        }
        recovers("reports after garbage");
    }
    console.ask(&["SCRIPT", "FLUSH"]);
    recovers("reports after the scripts were forgotten");
    assert!(!server.log().contains("panicked"), "{}", server.log());
    let metrics = server.get("/metrics", &[]).body;
    for name in ["tribune_report_cache_seconds", "tribune_report_cache_breaker_open"] {
        assert!(metrics.contains(name), "{name} is not in {metrics}");
    }
}
