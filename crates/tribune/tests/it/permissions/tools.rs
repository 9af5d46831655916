//! Every tool that the binary lists, in both protocol eras.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::hidden::Shows;
use super::{ADMIN_TOKEN, ELSEWHERE, Outcome, Proof, Secrets, Site};
use crate::exchange::Simulator;
use crate::sse::open;
use crate::support::{TestServer, sample, text};

/// Every tool of every source, by the scope that it needs and what it shows. An account at the exchange is the server's.
pub const TOOLS: &[(&str, Shows, &[&str])] = &[
    ("read", Shows::Both, &["search", "fetch", "find_related"]),
    ("read", Shows::Documents, &["search_hansard_speeches", "fetch_hansard_speech"]),
    (
        "read",
        Shows::Common,
        &[
            "binance_get_ticker",
            "binance_get_avg_price",
            "binance_get_orderbook",
            "binance_get_recent_trades",
            "binance_get_klines",
            "binance_get_exchange_info",
            "binance_orderbook_l1",
            "binance_orderbook_l2",
            "binance_orderbook_health",
            "binance_get_order_flow",
            "binance_get_volume_profile",
            "binance_detect_market_anomalies",
            "binance_get_liquidity_vacuums",
            "binance_get_microstructure_health",
            "binance_cost_to_trade",
            "binance_compare_markets",
            "binance_top_markets",
            "market_overview",
            "get_report",
        ],
    ),
    ("tasks", Shows::Common, &["add_task"]),
    ("tasks", Shows::Personal, &["list_tasks", "complete_task", "update_task", "undo_task_update", "delete_task"]),
    (
        "trade",
        Shows::Common,
        &[
            "binance_get_account",
            "binance_get_open_orders",
            "binance_get_order",
            "binance_get_all_orders",
            "binance_get_my_trades",
            "binance_place_order",
            "binance_cancel_order",
        ],
    ),
    ("admin", Shows::Common, &["ingest_hansard_file", "ingest_hansard_directory"]),
];

fn everything(simulator: &Simulator) -> Site {
    let secrets = Secrets::new();
    let (admin, key) = (secrets.add("admin", ADMIN_TOKEN), secrets.add("key", "some-key"));
    let secret = secrets.add("secret", "some-secret");
    let server = TestServer::builder()
        .documents(&sample())
        .server(&format!("admin_token = \"{admin}\""))
        .tables(&format!(
            "[store]\n[auth]\nissuer = \"builtin\"\n\
             [[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = \"docs\"\ningest_dir = \"docs\"\n\
             [market]\nrest_url = \"{}\"\nsymbols = [\"BTCUSDT\"]\n\
             [market.trading]\nenabled = true\napi_key = \"{key}\"\napi_secret = \"{secret}\"\nmax_order_notional = \"500\"",
            simulator.url
        ))
        .start();
    let callers: Vec<Proof> = ELSEWHERE.into_iter().chain([Proof::Local]).collect();
    Site::new(server, secrets, &callers)
}

/// A message is refused like a request, and not only on the stream.
fn check_sse(site: &Site, usual: &BTreeSet<String>, wrong: &mut Vec<String>) {
    for caller in site.callers().filter(|caller| matches!(caller, Proof::Scopes(_))) {
        let (name, token) = site.header(caller).expect("a token");
        let (_stream, path) = open(&site.server, "/sse/full", &format!("{name}: {token}\r\n"));
        for (scope, _, tools) in TOOLS.iter().filter(|(scope, ..)| !caller.has(scope)) {
            for tool in tools.iter().filter(|tool| usual.contains(**tool)) {
                let refused = site.rpc(caller, &path, "tools/call", json!({"name": tool, "arguments": {}}));
                let checked = Outcome::Lacks(scope).check(refused.status().as_u16(), refused.headers());
                wrong.extend(checked.err().map(|why| format!("{tool} over SSE as {caller:?}: {why}")));
            }
        }
    }
}

/// What `tools/list` tells hosts of each tool: `noauth` only where a stranger is answered.
fn check_schemes(site: &Site, path: &str, wrong: &mut Vec<String>) {
    for tool in listed_at(site, path) {
        let (scope, ..) =
            TOOLS.iter().find(|(.., tools)| tools.iter().any(|name| tool["name"] == *name)).expect("known");
        let token = json!({"type": "oauth2", "scopes": [scope]});
        let expected = if *scope == "read" { json!([{"type": "noauth"}, token]) } else { json!([token]) };
        for schemes in [&tool["securitySchemes"], &tool["_meta"]["securitySchemes"]] {
            if *schemes != expected {
                wrong.push(format!("{} at {path} has {schemes} instead of {expected}", tool["name"]));
            }
        }
    }
}

fn tools_at(site: &Site, path: &str) -> BTreeSet<String> {
    listed_at(site, path).iter().map(|tool| text(&tool["name"]).to_owned()).collect()
}

fn listed_at(site: &Site, path: &str) -> Vec<Value> {
    let mut listed = site.rpc(Proof::Administrator, path, "tools/list", json!({}));
    let listed: Value = serde_json::from_str(&listed.body_mut().read_to_string().expect("a body")).expect("JSON");
    listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
}

/// What a call has to be, at a profile that has the tool.
fn outcome(is_admin_profile: bool, scope: &'static str, caller: Proof) -> Outcome {
    match caller {
        Proof::Invalid => Outcome::InvalidToken,
        Proof::OneProfile if is_admin_profile => Outcome::Lacks("admin"),
        Proof::OneProfile => Outcome::OtherProfile,
        // The secret of the local user is not the administrators' token.
        Proof::Local if is_admin_profile => Outcome::InvalidToken,
        Proof::Nothing if is_admin_profile => Outcome::SignIn("admin"),
        caller if is_admin_profile && caller.is_user() && !caller.has("admin") && !caller.has("trade") => {
            Outcome::Lacks("admin")
        }
        // Refused in the answer: the call has no token, and hosts start the sign-in from there.
        Proof::Nothing => Outcome::Allowed,
        caller if caller.has(scope) => Outcome::Allowed,
        _ => Outcome::Lacks(scope),
    }
}

/// Whether an answer refuses the caller, and names the scope that is needed.
fn is_refused(answer: &Value, scope: &str) -> bool {
    let result = &answer["result"];
    let challenge = text(&result["_meta"]["mcp/www_authenticate"][0]);
    let is_challenged = challenge.contains("resource_metadata=") && challenge.contains(&format!("scope=\"{scope}\""));
    result["isError"] == true && is_challenged && text(&result["content"][0]["text"]).contains("needs a user")
}

#[test]
fn every_tool() {
    let simulator = Simulator::start(&["--key", "some-key:some-secret"]);
    let site = everything(&simulator);
    let (usual, all) = (tools_at(&site, "/mcp/full"), tools_at(&site, "/mcp/admin"));
    let expected: BTreeSet<String> =
        TOOLS.iter().flat_map(|(_, _, tools)| tools.iter().map(|tool| (*tool).to_owned())).collect();
    assert_eq!(usual.union(&all).cloned().collect::<BTreeSet<_>>(), expected, "say in TOOLS what each tool needs");

    let mut wrong = Vec::new();
    check_sse(&site, &usual, &mut wrong);
    for path in ["/mcp/full", "/mcp/admin"] {
        check_schemes(&site, path, &mut wrong);
    }
    for (scope, tool) in TOOLS.iter().flat_map(|(scope, _, tools)| tools.iter().map(move |tool| (*scope, *tool))) {
        let is_admin = !usual.contains(tool);
        assert_eq!(is_admin, matches!(scope, "trade" | "admin"), "{tool} is in the wrong profile");
        let path = if is_admin { "/mcp/admin" } else { "/mcp/full" };
        for caller in site.callers() {
            let params = json!({"name": tool, "arguments": {}});
            let header = site.header(caller);
            let headers: Vec<(&str, &str)> = header.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let legacy = {
                let mut answer = site.rpc(caller, path, "tools/call", params.clone());
                let body = answer.body_mut().read_to_string().expect("a body");
                (answer.status().as_u16(), answer.headers().clone(), body)
            };
            let modern = site.server.modern_with(path, "tools/call", params, &headers);
            for (status, headers, body) in [legacy, (modern.status, modern.headers.clone(), modern.body.clone())] {
                let expected = outcome(is_admin, scope, caller);
                let mut checked = expected.check(status, &headers);
                if expected == Outcome::Allowed {
                    let message = body.lines().rev().find(|line| line.contains("jsonrpc")).unwrap_or_default();
                    let answer = serde_json::from_str(message.trim_start_matches("data:")).unwrap_or_default();
                    let must = caller == Proof::Nothing && scope != "read";
                    if is_refused(&answer, scope) != must || body.contains("needs the scope") {
                        checked = Err(format!("{status} {body}"));
                    }
                }
                wrong.extend(checked.err().map(|why| format!("{tool} as {caller:?}: {why}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
