//! What callers may do: with a token, on this machine, and from elsewhere.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::nginx::Nginx;
use crate::people::{Person, token, tribune};
use crate::support::{TestServer, free_port, sample, wait_for};

const TASK_TOOLS: [&str; 6] =
    ["add_task", "list_tasks", "complete_task", "update_task", "undo_task_update", "delete_task"];

fn with_store() -> TestServer {
    TestServer::builder().documents(&sample()).tables("[store]").start()
}

#[test]
fn local_secret_proves_local_user() {
    let server = with_store();
    let me = Person::local(&server);
    for tool in TASK_TOOLS {
        assert!(me.tools().contains(&tool.to_owned()), "{:?}", me.tools());
    }
    me.add("Mow the lawn");
    assert_eq!(me.titles(), ["Mow the lawn"]);
    let file = server.dir.path().join("tribune-data/local-secret");
    assert_eq!(fs::metadata(file).expect("the secret").permissions().mode() & 0o777, 0o600);
    assert!(!server.log().contains("tribune_local_"), "the secret stays out of logs");
    let (guide, _) = tribune(&server, &["connect", "cursor"]);
    assert!(guide.contains(&server.local_header().1), "{guide}");
    // A secret of another server is a wrong token.
    let other = with_store();
    let (name, secret) = other.local_header();
    assert_eq!(Person::with(&server, &[(name, &secret)]).modern("tools/list", json!({})).status, 401);
}

#[test]
fn loopback_proves_nothing() {
    let server = with_store();
    let mine = Person::local(&server).add("Mow the lawn");
    // What proxies send, with and without the headers that give them away; another account; a page of another server.
    for headers in [
        vec![],
        vec![("x-forwarded-for", "203.0.113.7")],
        vec![("forwarded", "for=203.0.113.7")],
        vec![("x-real-ip", "203.0.113.7")],
        vec![("x-forwarded-host", "tribune.example.org")],
        vec![("via", "1.1 proxy")],
        vec![("cf-connecting-ip", "127.0.0.1")],
        vec![("true-client-ip", "127.0.0.1")],
        vec![("forwarded", "for=127.0.0.1;host=localhost")],
        vec![("x-original-url", "/conversations")],
        vec![("x-rewrite-url", "/conversations")],
        vec![("x-forwarded-user", "local"), ("remote-user", "local"), ("x-remote-user", "local")],
        vec![("authorization", "Basic bG9jYWw6")],
        vec![("x-forwarded-for", "127.0.0.1"), ("x-real-ip", "127.0.0.1")],
        vec![("host", "localhost")],
        vec![("origin", "http://localhost:3000")],
    ] {
        let stranger = Person::with(&server, &headers);
        assert_eq!(stranger.tools(), ["search", "fetch", "find_related"], "{headers:?}");
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

/// nginx as people set it up at first: no header says that it is there.
#[test]
fn bare_proxy_makes_nobody_local() {
    let server = with_store();
    let mine = Person::local(&server).add("Mow the lawn");
    let port = free_port();
    let site = format!("server {{\n  listen 127.0.0.1:{port};\n  location / {{ proxy_pass {}; }}\n}}\n", server.url);
    let _nginx = Nginx::start(server.dir.path(), &site);
    wait_for("nginx to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let get = |path: &str| agent.get(format!("http://127.0.0.1:{port}{path}")).call().expect("an answer").status();
    assert_eq!((get("/data/docs:beans.md").as_u16(), get(&format!("/data/task:{mine}")).as_u16()), (200, 404));
    assert_eq!(get("/conversations").as_u16(), 401);
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_tasks", "arguments": {}}});
    let answer = agent.post(format!("http://127.0.0.1:{port}/mcp")).header("content-type", "application/json");
    let answer = answer.send(call.to_string()).expect("an answer").into_body().read_to_string().expect("a body");
    assert!(answer.contains("UNAUTHORIZED") && !answer.contains("Mow the lawn"), "{answer}");
}

#[test]
fn sign_in_link_opens_session_until_sign_out() {
    let server = with_store();
    let wrong = server.get("/login/local?key=guess", &[("accept", "text/html")]);
    assert_eq!(wrong.status, 401);
    assert!(wrong.body.contains("no longer valid"), "{}", wrong.body);
    let cookie = server.local_cookie();
    let browser = Person::with(&server, &[("cookie", &cookie), ("origin", &server.url)]);
    browser.add("Mow the lawn");
    assert_eq!(Person::local(&server).titles(), ["Mow the lawn"]);
    // The secret of a session is no bearer token, and that of programs no session.
    let (_, session) = cookie.split_once('=').expect("a value");
    assert_eq!(Person::with_token(&server, session).modern("tools/list", json!({})).status, 401);
    let (_, secret) = server.local_header();
    let name = cookie.split('=').next().expect("a name");
    let forged = format!("{name}={}", secret.trim_start_matches("Bearer "));
    assert_eq!(Person::with(&server, &[("cookie", &forged)]).modern("tools/list", json!({})).status, 401);
    // Pages of other servers on this machine are "same site", and browsers send them the cookie.
    for page in [("origin", "http://localhost:3000"), ("origin", "null"), ("sec-fetch-site", "same-site")] {
        let foreign = Person::with(&server, &[("cookie", &cookie), page]);
        assert_eq!(foreign.modern("tools/list", json!({})).status, 403, "{page:?}");
        assert_eq!(foreign.post("/chat", &json!({"message": "hello"})).status, 403, "{page:?}");
    }
    assert_eq!(server.delete("/session", &[("cookie", &cookie), ("origin", &server.url)]).status, 204);
    assert_eq!(browser.modern("tools/list", json!({})).status, 401);
    // Two sessions never share a secret.
    assert_ne!(server.local_cookie(), server.local_cookie());
}

#[test]
fn token_named_local_is_not_the_local_user() {
    let board = "[[sources]]\nname = \"board\"\nkind = \"documents\"\npath = \"docs\"\nreaders = [\"group:board\"]";
    let server = TestServer::builder().documents(&sample()).tables(&format!("[store]\n{board}")).start();
    let opened = server.post("/session", &[], &json!({"token": token(&server, "local")}).to_string());
    let cookie = opened.header("set-cookie").split(';').next().expect("a pair").to_owned();
    let reads = |cookie: &str| Person::with(&server, &[("cookie", cookie)]).get("/data/board:beans.md").status;
    assert_eq!((reads(&server.local_cookie()), reads(&cookie)), (200, 404));
}

#[test]
fn local_user_reads_restricted_documents_without_store() {
    let server = TestServer::builder()
        .documents(&[("open.md", "Beans"), ("own.md", "---\nreaders: [\"user:ann\"]\n---\nTurnips")])
        .start();
    assert_eq!(Person::stranger(&server).get("/data/docs:own.md").status, 404);
    let cookie = server.local_cookie();
    assert_eq!(Person::with(&server, &[("cookie", &cookie)]).get("/data/docs:own.md").status, 200);
    assert!(tribune(&server, &["connect", "cursor"]).0.contains(&server.local_header().1));
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
    assert_eq!(Person::stranger(&server).tools(), ["search", "fetch", "find_related"]);
    assert_eq!(server.sign_in, "", "nobody is local on a public server");
    wait_for("the log", || server.log().contains("anyone who reaches https://tribune.example.org can read"));
    let ann = Person::new(&server, "ann");
    ann.add("Mow the lawn");
    assert_eq!(ann.titles(), ["Mow the lawn"]);
}

#[test]
fn public_listener_allows_reads_and_warns() {
    let server = TestServer::builder().documents(&sample()).tables("[store]").arg("--listen").arg("0.0.0.0:0").start();
    assert_eq!(Person::stranger(&server).tools(), ["search", "fetch", "find_related"]);
    wait_for("the log", || server.log().contains("can read shared data; personal data"));
    assert_eq!(Person::new(&server, "ann").tools().len(), 9);
}

#[test]
fn required_auth_refuses_anonymous_callers() {
    let server = TestServer::builder().documents(&sample()).tables("[store]\n[auth]\nrequired = true").start();
    let nobody = Person::stranger(&server);
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
    assert_eq!(ann.tools().len(), 9);
    assert!(!server.log().contains("anyone who reaches"), "{}", server.log());
}

#[test]
fn token_is_hashed_dated_and_revocable() {
    let server = with_store();
    let (out, err) =
        tribune(&server, &["token", "create", "--user", "ann", "--label", "her laptop", "--expires-days", "30"]);
    let secret = out.trim();
    assert!(secret.starts_with("tribune_") && secret.len() > 70, "{secret}");
    assert!(err.contains("shown only now"), "{err}");
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
