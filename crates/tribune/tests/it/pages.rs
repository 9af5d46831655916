//! Every page but the chat: in a real browser (`tests/page/pages.spec.mjs`).

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::exchange::Simulator;
use crate::page::{check, screenshots};
use crate::people::Person;
use crate::support::{TestServer, root, sample, text, wait_for};

/// Nothing of this may become an element, run, or load anything.
const HOSTILE: &str = "# <script>window.pwned=1</script>\n\n\
    <script>window.pwned=1</script><img src=x onerror=\"window.pwned=1\">\n\n\
    </article></main><iframe srcdoc=\"<script>parent.pwned=1</script>\"></iframe>\n\n\
    [a](javascript:window.pwned=1) [b](data:text/html,<script>window.pwned=1</script>) ![p](https://evil.example/p.png)\n\n\
    <svg onload=window.pwned=1><style>* { display: none }</style> <b onclick=\"window.pwned=1\">bold</b>\n\n\
    <meta http-equiv=refresh content=\"0;url=https://evil.example\"> <base href=https://evil.example>\n\n\
    &lt;script&gt;window.pwned=1&lt;/script&gt; <!-- <script> --> <![CDATA[ <img> ]]>\n";

struct Site {
    server: TestServer,
    _simulator: Simulator,
    plan: Value,
}

/// Speeches, notes, tasks, a market and its reports.
fn site() -> Site {
    let simulator = Simulator::start(&[]);
    let mut documents = sample();
    documents.push(("hostile.md", HOSTILE));
    let hansard = root().join("crates/tribune/demo/hansard");
    let server = TestServer::builder()
        .documents(&documents)
        .tables(&format!(
            "[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = {:?}\n[market]\nrest_url = \"{}\"\nsymbols = [\"BTCUSDT\", \"ETHUSDT\"]\n[store]",
            hansard.display().to_string(),
            simulator.url
        ))
        .start();
    wait_for("a live book and its report", || {
        let book = server.call("binance_orderbook_l1", json!({"symbol": "BTCUSDT"}));
        book["book_state"] == "live" && server.get("/data/report:BTCUSDT", &[]).status == 200
    });
    let plan = plan(&server);
    Site { server, _simulator: simulator, plan }
}

/// The pages for the browser.
fn plan(server: &TestServer) -> Value {
    let path = |url: &Value| text(url).strip_prefix(&server.url).expect("an address here").to_owned();
    let cited = |id: &str| path(&server.call("fetch", json!({"id": id}))["url"]);
    let found = |query: &str, id: &str| {
        let found = server.call("search", json!({"query": query}));
        let first = &found["results"][0];
        assert!(text(&first["id"]).starts_with(id), "{query}: {found}");
        path(&first["url"])
    };
    let speech = found("renters eviction without grounds", "hansard:");
    assert!(speech.contains("?passage="), "{speech}");
    let task = Person::local(server).call(
        "add_task",
        &json!({"title": "Read the pages", "description": "All of them, *twice*.", "due_date": "2020-01-01", "priority": "high", "tags": ["pages"]}),
    );
    json!({
        "base": server.url,
        "signIn": server.sign_in,
        "search": {"query": "runner beans", "first": "docs:beans.md"},
        "pages": [
            {"name": "home", "path": "/", "seen": ["Ask your data anything", "needs a public address", "24 speeches"]},
            {"name": "results", "path": "/?q=beans", "seen": ["Runner beans"]},
            {"name": "design", "path": "/design", "seen": ["Colour", "Badges"]},
            {"name": "try", "path": "/try", "seen": ["binance_get_ticker", "destructive"]},
            {"name": "try-profile", "path": "/try/hansard", "seen": ["search_hansard_speeches"]},
            {"name": "try-tool", "path": "/try/default/binance_get_klines", "seen": ["interval", "readOnlyHint"]},
            {"name": "speech", "path": speech, "passage": true, "seen": ["Cite as", "Passage", "p. 127"]},
            {"name": "note", "path": "/data/docs:beans.md", "seen": ["Sow runner beans", "28 May 2024"]},
            {"name": "hostile", "path": "/data/docs:hostile.md", "hostile": true, "seen": ["<script>"]},
            {"name": "ticker", "path": "/data/ticker:BTCUSDT", "live": true, "seen": ["BTC/USDT", "SIMULATED", "Order book", "Cost to trade"]},
            {"name": "ticker-cited", "path": cited("ticker:BTCUSDT"), "frozen": true, "seen": ["SIMULATED"]},
            {"name": "book-cited", "path": cited("orderbook:BTCUSDT"), "frozen": true, "seen": ["SIMULATED", "Depth"]},
            {"name": "price-found", "path": found("bitcoin price", "ticker:BTCUSDT"), "frozen": true, "chart": true, "seen": ["SIMULATED", "Last price"]},
            {"name": "book-found", "path": found("bitcoin order book", "orderbook:BTCUSDT"), "chart": true, "seen": ["SIMULATED", "As cited on", "Best bid"]},
            {"name": "candles-found", "path": found("bitcoin 1m candles", "klines:BTCUSDT:1m"), "chart": true, "seen": ["SIMULATED", "As cited on"]},
            {"name": "report-found", "path": found("bitcoin market report", "report:BTCUSDT"), "chart": true, "seen": ["SIMULATED", "As cited on", "Health"]},
            {"name": "candles", "path": "/data/klines:BTCUSDT:1m", "seen": ["SIMULATED", "candles"]},
            {"name": "profile", "path": "/data/analytics:volume_profile:ETHUSDT", "seen": ["SIMULATED", "ETH"]},
            {"name": "report", "path": "/data/report:BTCUSDT", "live": true, "seen": ["BTC/USDT", "SIMULATED", "Health"]},
            {"name": "report-cited", "path": cited("report:BTCUSDT"), "frozen": true, "seen": ["SIMULATED"]},
            {"name": "task", "path": path(&task["url"]), "seen": ["Read the pages", "overdue", "twice"]},
            {"name": "missing", "path": "/data/docs:nowhere.md", "status": 404, "seen": ["There is no document"]},
            {"name": "gone", "path": "/data/ticker:BTCUSDT?at=0000000000000", "status": 410, "seen": ["Current values"]}
        ]
    })
}

#[test]
fn every_page_passes_in_chromium() {
    let site = site();
    let folder = screenshots("pages");
    let plan = folder.join("plan.json");
    std::fs::write(&plan, site.plan.to_string()).expect("a plan");
    check("pages.spec.mjs", &[&folder.display().to_string(), &plan.display().to_string()]);
}

/// The first event of a stream.
fn first_event(server: &TestServer, path: &str) -> String {
    let response = ureq::get(format!("{}{path}", server.url)).call().expect("a stream");
    let lines = BufReader::new(response.into_body().into_reader()).lines();
    let lines: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// The stream of a live page, and of one that is not live.
#[test]
fn only_live_documents_are_streamed() {
    let site = site();
    let event = first_event(&site.server, "/live/ticker:BTCUSDT");
    let regions: Value =
        serde_json::from_str(event.strip_prefix("event: regions\ndata: ").expect("regions")).expect("JSON");
    let keys: Vec<&str> = regions["keys"].as_array().expect("keys").iter().map(text).collect();
    assert_eq!(keys[..2], ["head", "panel-candles"]);
    assert!(first_event(&site.server, "/live").contains("24 speeches"));
    let pages = site.plan["pages"].as_array().expect("pages");
    let task = pages.iter().find(|page| page["name"] == "task").expect("a task");
    let task = text(&task["path"]).replace("/data/", "/live/");
    for path in ["/live/docs:beans.md", "/live/nothing", "/live/ticker:NOPE", &task] {
        let answer = site.server.get(path, &[]);
        assert_eq!(answer.status, 404, "{path}");
    }
}
