//! Market reports of the binary: content, freshness, and failures.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::exchange::Simulator;
use crate::redis::Redis;
use crate::support::{TestServer, binary, fault, text, wait_for};

/// A server with reports of three symbols; `cache` is the `[cache]` table.
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
    tribune_reports::model::schema().into()
}

#[test]
fn get_report_returns_whole_market_state() {
    let simulator = Simulator::start(&["--seed", "5"]);
    let server = serve(&simulator, "");
    let first = wait_for_status(&server, "ok");
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    let faults: Vec<String> = schema.iter_errors(&first).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}\n{first:#}");
    assert_eq!(text(&first["symbol"]), "BTCUSDT", "{first:#}");
    assert!(text(&first["simulated"]).starts_with("SIMULATED"));
    assert!(first["data_age_ms"].as_u64().expect("an age") < 3_000);
    let price = |side: &str| text(&first[side]["price"]).parse::<f64>().expect("a price");
    assert!(price("best_bid") < price("best_ask"));

    // Reports keep coming, and another spelling is the same symbol.
    wait_for("the next report", || {
        let next = server.call("get_report", json!({"symbol": "btc/usdt"}));
        next["writer"]["sequence"].as_u64() > first["writer"]["sequence"].as_u64()
    });

    // The overview has a row for each.
    let overview = server.call("market_overview", json!({}));
    assert_eq!((&overview["indexed"], &overview["listed"]), (&json!(3), &json!(3)), "{overview:#}");
    let names: BTreeSet<&str> = overview["rows"].as_array().expect("rows").iter().map(|row| text(&row[0])).collect();
    assert_eq!(names, BTreeSet::from(["BTCUSDT", "ETHUSDT", "SOLUSDT"]));
    let columns = overview["columns"].as_array().expect("columns").len();
    assert!(
        overview["rows"].as_array().expect("rows").iter().all(|row| row.as_array().expect("cells").len() == columns)
    );

    // Markdown for a model, the same structure beside it.
    let written = ask(&server, "get_report", &json!({"symbol": "ETHUSDT", "format": "markdown"}));
    let words = text(&written["result"]["content"][0]["text"]);
    assert!(words.contains("SIMULATED") && words.contains("ETHUSDT") && words.contains("Health"), "{words}");
    assert_eq!(written["result"]["structuredContent"]["symbol"], "ETHUSDT");
}

#[test]
fn report_is_searched_fetched_shown_and_cited() {
    let simulator = Simulator::start(&["--seed", "6"]);
    let server = serve(&simulator, "url = \"memory:\"");
    let found = server.call("search", json!({"query": "bitcoin report"}));
    assert_eq!(found["results"][0]["id"], "report:BTCUSDT", "{found:#}");
    let plain = server.call("search", json!({"query": "bitcoin"}));
    let ids: Vec<&str> = plain["results"].as_array().expect("results").iter().map(|hit| text(&hit["id"])).collect();
    assert_eq!(ids[0], "ticker:BTCUSDT", "{ids:?}");
    assert!(ids.contains(&"report:BTCUSDT"), "{ids:?}");
    let pasted = server.call("search", json!({"query": "report:SOLUSDT"}));
    assert_eq!(pasted["results"][0]["id"], "report:SOLUSDT", "{pasted:#}");

    let document = server.call("fetch", json!({"id": "report:BTCUSDT"}));
    assert_eq!(document["id"], "report:BTCUSDT");
    assert!(text(&document["title"]).starts_with("SIMULATED BTCUSDT"), "{document:#}");
    let url = text(&document["url"]).replace(&server.url, "");
    let sequence = |report: &Value| report["writer"]["sequence"].as_u64();
    let before = sequence(&report(&server));
    wait_for("another report", || sequence(&report(&server)) > before);
    let cited = server.get(&url, &[("accept", "application/json")]).json();
    assert_eq!(cited["text"], document["text"], "as it was");
    let page = server.get("/data/report:BTCUSDT", &[("accept", "text/html")]);
    assert!(page.status == 200 && page.body.contains("BTCUSDT market report"), "{}", page.body);

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

    // Its own profile has only these tools.
    let tools = server.modern("/mcp/reports", "tools/list", json!({})).json();
    let names: Vec<&str> =
        tools["result"]["tools"].as_array().expect("tools").iter().map(|tool| text(&tool["name"])).collect();
    for name in ["search", "fetch", "get_report", "market_overview"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.starts_with("binance_")), "{names:?}");
    let known = tools["result"]["tools"].as_array().expect("tools");
    let output = known.iter().find(|tool| tool["name"] == "get_report").expect("the tool");
    assert_eq!(output["outputSchema"]["properties"]["schemaVersion"]["type"], "string", "the schema is published");
}

#[test]
fn report_errors_say_what_to_do() {
    let simulator = Simulator::start(&["--seed", "7"]);
    let server = serve(&simulator, "");
    let other = fault(&server, "get_report", &json!({"symbol": "XRPUSDT"}));
    assert!(other.starts_with("symbol_not_indexed:"), "{other}");
    assert!(other.contains("BTCUSDT, ETHUSDT, SOLUSDT") && other.contains("`symbols` of [market]"), "{other}");
    let unknown = fault(&server, "get_report", &json!({"symbol": "NOSUCHCOIN"}));
    assert!(unknown.contains("symbol_not_indexed") && unknown.contains("on the exchange"), "{unknown}");
    let wrong = fault(&server, "get_report", &json!({"symbool": "BTCUSDT"}));
    assert!(wrong.contains("symbol"), "{wrong}");
    assert_eq!(server.get("/data/report:XRPUSDT", &[]).status, 404);
    // Neither logs the requested symbol.
    assert!(!server.log().contains("NOSUCHCOIN"), "{}", server.log());
    let metrics = server.metrics();
    for name in [
        "tribune_report_age_seconds",
        "tribune_report_compute_seconds",
        "tribune_report_lease_changes_total",
        "tribune_report_symbols_written 3",
    ] {
        assert!(metrics.contains(name), "{name} is not in {metrics}");
    }
}

/// The first report with this status.
fn wait_for_status(server: &TestServer, wanted: &str) -> Value {
    let found = RefCell::new(Value::Null);
    wait_for(&format!("a report that is {wanted}"), || {
        *found.borrow_mut() = report(server);
        status(&found.borrow()) == wanted
    });
    found.into_inner()
}

#[test]
fn stopped_feed_degrades_and_recovers() {
    let simulator = Simulator::start(&["--seed", "8"]);
    let server = serve(&simulator, "");
    // Silent streams and a hanging exchange.
    for is_frozen in [false, true] {
        wait_for_status(&server, "ok");
        match is_frozen {
            false => simulator.fault(&json!({"fault": "silence", "on": true})),
            true => simulator.signal("STOP"),
        }
        // In every report from here on the status is what its age says, and once it is down it stays so.
        let is_down = Cell::new(false);
        wait_for("a report that is long down", || {
            let seen = report(&server);
            let age = seen["data_age_ms"].as_u64().expect("an age");
            let expected = match age {
                0..3_000 => "ok",
                3_000..5_000 => "degraded",
                _ => "down",
            };
            assert_eq!(status(&seen), expected, "{seen:#}");
            assert!(expected == "ok" || !seen["ingestion"]["reason"].is_null(), "{seen:#}");
            assert!(!is_down.get() || expected == "down", "{seen:#}");
            is_down.set(expected == "down");
            age >= 8_000
        });
        let words = ask(&server, "get_report", &json!({"symbol": "BTCUSDT", "format": "markdown"}));
        assert!(text(&words["result"]["content"][0]["text"]).contains("STALE"), "{words}");
        match is_frozen {
            false => simulator.fault(&json!({"fault": "clear"})),
            true => simulator.signal("CONT"),
        }
        wait_for_status(&server, "ok");
    }
}

#[test]
fn process_without_feed_serves_shared_reports() {
    let simulator = Simulator::start(&["--seed", "9"]);
    let redis = Redis::start();
    let cache = format!("url = \"{}\"", redis.url());
    let writer = serve(&simulator, &cache);
    let reader = TestServer::builder().tables(&format!("[market]\nfeed = false\n[cache]\n{cache}")).start();
    let read = wait_for_status(&reader, "ok");
    assert_eq!(read["writer"]["nodeId"], report(&writer)["writer"]["nodeId"]);
    let found = reader.call("search", json!({"query": "ethereum report"}));
    assert_eq!(found["results"][0]["id"], "report:ETHUSDT", "{found:#}");
    let tools = reader.modern("/mcp", "tools/list", json!({})).body;
    assert!(tools.contains("get_report") && !tools.contains("binance_get_ticker"));
    let other = fault(&reader, "get_report", &json!({"symbol": "XRPUSDT"}));
    assert!(other.contains("of the nodes that write reports"), "{other}");
    // The writer is killed: its reports become stale and say so.
    drop(writer);
    let down = wait_for_status(&reader, "down");
    assert!(text(&down["ingestion"]["reason"]).contains("no node writes"), "{down:#}");
    // A shell command takes no lease.
    let asked = std::process::Command::new(binary())
        .args(["call", "market_overview", "{}", "--json", "--config"])
        .arg(reader.config())
        .output()
        .expect("runs");
    assert!(asked.status.success(), "{asked:?}");
}

#[test]
fn redis_failures_are_reported_and_recovered() {
    let simulator = Simulator::start(&["--seed", "10"]);
    let mut redis = Redis::start();
    let server = serve(&simulator, &format!("url = \"{}\"", redis.url()));
    let unavailable = || {
        let answer = ask(&server, "get_report", &json!({"symbol": "BTCUSDT"}));
        let words = text(&answer["result"]["content"][0]["text"]).to_owned();
        (answer["result"]["isError"] == true && words.starts_with("backend_unavailable:")).then_some(words)
    };
    let recovers = |what: &str| {
        wait_for(what, || {
            let answer = ask(&server, "get_report", &json!({"symbol": "BTCUSDT"}));
            status(&answer["result"]["structuredContent"]) == "ok"
        });
    };
    let token = || report(&server)["writer"]["writerToken"].as_u64().expect("a token");
    let before = token();
    // A report is there before the list of reports is.
    wait_for("the list of reports", || server.readiness().status == 200);

    // Stopped, and restarted empty.
    redis.kill();
    wait_for("the error", || unavailable().is_some());
    assert_eq!(server.readiness().status, 200, "everything else is served");
    wait_for("the reason", || server.readiness().body.contains("backend_unavailable"));
    redis.run(&[]);
    recovers("reports after a restart");
    // The last report is read until the next is written.
    wait_for("a larger token, although everything was lost", || token() > before);

    // Redis hangs.
    redis.signal("STOP");
    wait_for("the error", || unavailable().is_some());
    let words = unavailable().expect("still hanging");
    redis.signal("CONT");
    recovers("reports after a pause");
    assert!(words.contains("tried again") || words.contains("150 ms"), "{words}");

    // Redis is out of memory: existing reports are served and age.
    let mut console = redis.connect();
    console.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let old = wait_for_status(&server, "degraded");
    assert!(old["data_age_ms"].as_u64() >= Some(3_000));
    console.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    recovers("reports after the memory came back");

    // Garbage under every key.
    for garbage in ["not json", "{}", "[1,2", "\u{0}\u{1}"] {
        for key in ["report:BTCUSDT", "report:writer:BTCUSDT", "report:symbols"] {
            console.ask(&["SET", key, garbage]);
        }
        recovers("reports after garbage");
    }
    console.ask(&["SCRIPT", "FLUSH"]);
    recovers("reports after the scripts were forgotten");
    assert!(!server.log().contains("panicked"), "{}", server.log());
    let metrics = server.metrics();
    assert!(metrics.contains("tribune_report_cache_seconds"), "{metrics}");
}
