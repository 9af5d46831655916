//! What callers may do: with a token, on this machine, and from elsewhere.

use std::fs;

use serde_json::{Value, json};

use crate::people::{Person, token, tribune};
use crate::support::{TestServer, sample, wait_for};

const TASK_TOOLS: [&str; 6] =
    ["add_task", "list_tasks", "complete_task", "update_task", "undo_task_update", "delete_task"];

fn with_store() -> TestServer {
    TestServer::builder().documents(&sample()).tables("[store]").start()
}

#[test]
fn local_caller_needs_no_token() {
    let server = with_store();
    let me = Person::local(&server);
    for tool in TASK_TOOLS {
        assert!(me.tools().contains(&tool.to_owned()), "{:?}", me.tools());
    }
    me.add("Mow the lawn");
    assert_eq!(me.titles(), ["Mow the lawn"]);
}

#[test]
fn proxied_caller_reads_only_shared_data() {
    let server = with_store();
    let mine = Person::local(&server).add("Mow the lawn");
    for header in ["x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-host"] {
        let stranger = Person::with(&server, &[(header, "203.0.113.7")]);
        assert_eq!(stranger.tools(), ["search", "fetch", "find_related"], "{header}");
        for tool in TASK_TOOLS {
            let fault = stranger.try_call(tool, &json!({"task_id": mine, "title": "x"})).expect_err(tool);
            assert!(fault.starts_with("UNAUTHORIZED: "), "{fault}");
            assert!(fault.contains("tribune token create --user NAME"), "{fault}");
        }
    }
    let stranger = Person::stranger(&server);
    let found = stranger.call("search", &json!({"query": "lawn tasks"}));
    assert_eq!(found["results"], json!([]));
    assert!(
        !stranger.call("search", &json!({"query": "runner beans"}))["results"].as_array().expect("results").is_empty()
    );
    assert!(stranger.try_call("fetch", &json!({"id": format!("task:{mine}")})).is_err());
    assert_eq!(stranger.get(&format!("/data/task:{mine}")).status, 404);
    for answer in [
        stranger.get("/conversations"),
        stranger.get("/conversations/00000000-0000-0000-0000-000000000000/messages"),
        stranger.post("/chat", &json!({"message": "hello"})),
    ] {
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(answer.header("www-authenticate").starts_with("Bearer"), "{:?}", answer.headers);
    }
    // Neither the list nor the instructions reveal tools for users.
    let discovered = stranger.modern("server/discover", json!({})).json();
    assert!(!discovered["result"]["instructions"].as_str().expect("instructions").contains("task"), "{discovered}");
    let listed = stranger.modern("tools/list", json!({})).json();
    assert_eq!(listed["result"]["cacheScope"], "private", "{listed}");
    assert!(!listed.to_string().contains("Your tasks"), "{listed}");
    assert!(!stranger.get("/").body.contains("Mow the lawn"));
}

#[test]
fn foreign_host_or_origin_is_not_local() {
    let server = TestServer::builder()
        .documents(&sample())
        .server("allowed_hosts = [\"*\"]\nallowed_origins = [\"*\"]")
        .tables("[store]")
        .start();
    for headers in [
        [("host", "tribune.example.org"), ("accept", "*/*")],
        [("host", "localhost.evil.example"), ("accept", "*/*")],
        [("origin", "https://evil.example"), ("accept", "*/*")],
        [("origin", "null"), ("accept", "*/*")],
        [("via", "1.1 tunnel"), ("accept", "*/*")],
    ] {
        assert_eq!(Person::with(&server, &headers).tools(), ["search", "fetch", "find_related"], "{headers:?}");
    }
    for headers in
        [[("host", "localhost"), ("accept", "*/*")], [("origin", "http://localhost:3000"), ("accept", "*/*")]]
    {
        assert_eq!(Person::with(&server, &headers).tools().len(), 8, "{headers:?}");
    }
}

#[test]
fn public_url_makes_callers_anonymous() {
    let server = TestServer::builder()
        .documents(&sample())
        .server("public_url = \"https://tribune.example.org\"")
        .tables("[store]")
        .start();
    let anyone = Person::with(&server, &[("host", "tribune.example.org")]);
    assert_eq!(anyone.tools(), ["search", "fetch", "find_related"]);
    assert_eq!(Person::local(&server).tools(), ["search", "fetch", "find_related"]);
    wait_for("the log", || server.log().contains("anyone who reaches https://tribune.example.org can read"));
    let ann = Person::new(&server, "ann");
    ann.add("Mow the lawn");
    assert_eq!(ann.titles(), ["Mow the lawn"]);
}

#[test]
fn public_listener_allows_reads_and_warns() {
    let server = TestServer::builder().documents(&sample()).tables("[store]").arg("--listen").arg("0.0.0.0:0").start();
    assert_eq!(Person::local(&server).tools(), ["search", "fetch", "find_related"]);
    wait_for("the log", || server.log().contains("can read shared data, and nothing else"));
    assert_eq!(Person::new(&server, "ann").tools().len(), 8);
}

#[test]
fn required_auth_refuses_anonymous_callers() {
    let server = TestServer::builder().documents(&sample()).tables("[store]\n[auth]\nrequired = true").start();
    let nobody = Person::local(&server);
    for answer in [
        nobody.modern("tools/list", json!({})),
        nobody.get("/data/docs:beans.md"),
        nobody.get("/conversations"),
        nobody.get("/sse"),
        nobody.get("/openapi.json"),
    ] {
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(answer.body.contains("tribune token create"), "{}", answer.body);
        assert!(!answer.body.contains("beans"), "{}", answer.body);
    }
    let page = server.get("/", &[("accept", "text/html")]);
    assert_eq!(page.status, 200);
    assert!(page.body.contains("API token") && !page.body.contains("docs"), "{}", page.body);
    assert_eq!(server.get("/healthz", &[]).status, 200);
    let ann = Person::new(&server, "ann");
    assert_eq!(ann.get("/data/docs:beans.md").status, 200);
    assert_eq!(ann.tools().len(), 8);
    assert!(!server.log().contains("anyone who reaches"), "{}", server.log());
}

#[test]
fn token_is_hashed_dated_and_revocable() {
    let server = with_store();
    let (out, err) =
        tribune(&server, &["token", "create", "--user", "ann", "--label", "her laptop", "--expires-days", "30"]);
    let secret = out.trim();
    assert!(secret.starts_with("tribune_") && secret.len() > 70, "{secret}");
    assert!(err.contains("shown this once"), "{err}");
    for file in fs::read_dir(server.dir.path().join("tribune-data")).expect("the data folder") {
        let path = file.expect("an entry").path();
        if path.is_file() {
            let content = fs::read(&path).expect("a file");
            let secret = secret.as_bytes();
            assert!(!content.windows(secret.len()).any(|part| part == secret), "{}", path.display());
        }
    }
    let list = || -> Vec<Value> {
        let (out, _) = tribune(&server, &["token", "list", "--json"]);
        serde_json::from_str(&out).expect("JSON")
    };
    let before = list();
    assert_eq!((before.len(), &before[0]["user"], &before[0]["last_used"]), (1, &json!("ann"), &Value::Null));
    let ann = Person::with_token(&server, secret);
    ann.add("Mow the lawn");
    wait_for("the use to be noted", || !list()[0]["last_used"].is_null());
    let (table, _) = tribune(&server, &["token", "list"]);
    assert!(table.contains("her laptop") && table.contains("until 2"), "{table}");

    let id = before[0]["id"].as_str().expect("an id");
    tribune(&server, &["token", "revoke", id]);
    // Running servers cache a token for a second.
    wait_for("the revocation", || ann.modern("tools/list", json!({})).status == 401);
    let refused = ann.modern("tools/list", json!({}));
    assert_eq!(refused.status, 401, "{}", refused.body);
    assert!(refused.header("www-authenticate").contains("invalid_token"), "{:?}", refused.headers);
    assert!(tribune(&server, &["token", "list"]).0.contains("revoked"));
    assert!(!server.log().contains(secret), "tokens stay out of logs");
}

#[test]
fn invalid_token_is_refused_not_ignored() {
    let server = with_store();
    for wrong in ["x", "tribune_00000000_", "tribune_0_x; drop", &"tribune_".repeat(1000)] {
        let somebody = Person::with_token(&server, wrong);
        for answer in [somebody.modern("tools/list", json!({})), somebody.get("/conversations"), somebody.get("/")] {
            assert_eq!(answer.status, 401, "{wrong}: {}", answer.body);
        }
    }
    // An empty token does not make a caller anonymous or another user.
    for empty in ["Bearer", "Bearer ", "bearer  "] {
        let somebody = Person::with(&server, &[("authorization", empty)]);
        assert_eq!(somebody.modern("tools/list", json!({})).status, 401, "{empty:?}");
    }
    // Another authorization scheme is ignored.
    let basic = Person::with(&server, &[("authorization", "Basic YTpi")]);
    assert_eq!(basic.modern("tools/list", json!({})).status, 200);
}

#[test]
fn browser_sign_in_sets_http_only_cookie() {
    let server = TestServer::builder().documents(&sample()).tables("[store]\n[auth]\nrequired = true").start();
    let secret = token(&server, "ann");
    let refused = server.post("/session", &[], &json!({"token": "tribune_x"}).to_string());
    assert_eq!(refused.status, 401, "{}", refused.body);
    let signed_in = server.post("/session", &[], &json!({"token": secret}).to_string());
    assert_eq!(signed_in.status, 204);
    let cookie = signed_in.header("set-cookie").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && cookie.contains("Path=/;"), "{cookie}");
    let pair = cookie.split(';').next().expect("a pair").to_owned();
    let browser = Person::with(&server, &[("cookie", &pair)]);
    let id = browser.add("Mow the lawn");
    let page = server.get(&format!("/data/task:{id}"), &[("cookie", &pair), ("accept", "text/html")]);
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Mow the lawn"));
    assert_eq!(page.header("cache-control"), "private, no-store");
    // Another server on this machine ignores and keeps the cookie.
    let other = with_store();
    let elsewhere = Person::with(&other, &[("cookie", &pair)]);
    let page = elsewhere.get("/");
    assert_eq!((page.status, page.header("set-cookie")), (200, ""));
    // An invalid cookie is cleared, so that the user can sign in again.
    let (name, _) = pair.split_once('=').expect("a pair");
    let stale = Person::with(&server, &[("cookie", &format!("{name}=tribune_stale"))]).get("/");
    assert_eq!(stale.status, 401);
    assert!(stale.header("set-cookie").starts_with(&format!("{name}=; Max-Age=0; Path=/;")), "{:?}", stale.headers);
    // A page of another site cannot use it.
    let foreign = Person::with(&server, &[("cookie", &pair), ("origin", "https://evil.example")]);
    assert_eq!(foreign.modern("tools/list", json!({})).status, 403);
}

#[test]
fn sessions_and_streams_belong_to_their_user() {
    let server = with_store();
    let (ann, bob) = (Person::new(&server, "ann"), Person::new(&server, "bob"));
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let begun = ann.post("/mcp", &initialize);
    let session = begun.header("mcp-session-id").to_owned();
    assert!(!session.is_empty(), "{:?}", begun.headers);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let with_session = |person: &Person<'_>| {
        let mut headers: Vec<(&str, &str)> = vec![("mcp-session-id", &session), ("content-type", "application/json")];
        headers.extend(person.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        server.post("/mcp", &headers, &list.to_string()).status
    };
    assert_eq!(with_session(&ann), 200);
    for other in [&bob, &Person::local(&server), &Person::stranger(&server)] {
        assert_eq!(with_session(other), 404);
    }
}
