//! The built-in issuer: programs get tokens that people allow them, and nothing else.

mod clients;
pub mod providers;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use serde_json::{Value, json};

use crate::people::{Person, tribune};
use crate::support::{Answer, TestServer, binary, sample, wait_for};

/// From RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const CALLBACK: &str = "http://127.0.0.1:33418/callback";
pub const PASSWORD: &str = "correct horse battery";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A server with its own issuer, and the user ann.
pub fn issuing(auth: &str) -> TestServer {
    let server = TestServer::builder()
        .documents(&sample())
        .tables(&format!("[store]\n[auth]\nissuer = \"builtin\"\n{auth}"))
        .start();
    add_user(&server, "ann", &[]);
    server
}

pub fn add_user(server: &TestServer, name: &str, groups: &[&str]) {
    let file = server.config().with_file_name("password");
    fs::write(&file, format!("{PASSWORD}\n")).expect("written");
    let file = file.display().to_string();
    let mut command = Command::new(binary());
    command.args(["user", "add", name, "--password-file", &file]);
    command.args(groups.iter().flat_map(|group| ["--group", group]));
    let added = command.arg("--config").arg(server.config()).output().expect("runs");
    assert!(added.status.success(), "{added:?}");
}

fn encoded(fields: &[(&str, &str)]) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields).finish()
}

fn query_of(address: &str, name: &str) -> Option<String> {
    let url = url::Url::parse(address).expect("an address");
    let found = url.query_pairs().find(|(given, _)| given == name);
    found.map(|(_, value)| value.into_owned())
}

/// A program that registered, and a browser in which ann has signed in.
struct Host<'s> {
    server: &'s TestServer,
    id: String,
    cookie: String,
}

impl<'s> Host<'s> {
    fn new(server: &'s TestServer) -> Self {
        let metadata = json!({"client_name": "A host", "redirect_uris": [CALLBACK]});
        let registered = server.post("/oauth/register", &[], &metadata.to_string());
        assert_eq!(registered.status, 201, "{}", registered.body);
        let id = registered.json()["client_id"].as_str().expect("an id").to_owned();
        let again = server.post("/oauth/register", &[], &metadata.to_string()).json();
        assert_eq!(again["client_id"], id.as_str(), "registering again gives the same id");
        Self { server, id, cookie: sign_in(server, "ann", PASSWORD).expect("signed in") }
    }

    fn address(&self, changes: &[(&str, &str)]) -> String {
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &self.id),
            ("redirect_uri", CALLBACK),
            ("state", "xyz"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        for (name, value) in changes {
            fields.retain(|(known, _)| known != name);
            if !value.is_empty() {
                fields.push((name, value));
            }
        }
        format!("/oauth/authorize?{}", encoded(&fields))
    }

    /// What the browser is answered after a decision.
    fn decide(&self, decision: &str, changes: &[(&str, &str)]) -> Answer {
        let body = encoded(&[("decision", decision)]);
        let headers = [("cookie", self.cookie.as_str()), FORM, ("origin", self.server.url.as_str())];
        self.server.post_once(&self.address(changes), &headers, &body)
    }

    fn code(&self, changes: &[(&str, &str)]) -> String {
        let answer = self.decide("allow", changes);
        let back = answer.header("location").to_owned();
        assert!(back.starts_with(CALLBACK), "{answer:?}");
        assert_eq!(query_of(&back, "state").as_deref(), Some("xyz"));
        assert_eq!(query_of(&back, "iss").as_deref(), Some(self.server.url.as_str()));
        query_of(&back, "code").expect("a code")
    }

    fn redeem(&self, code: &str, changes: &[(&str, &str)]) -> Answer {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", &self.id),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        for (name, value) in changes {
            fields.retain(|(known, _)| known != name);
            fields.push((name, value));
        }
        self.server.post("/oauth/token", &[FORM], &encoded(&fields))
    }

    fn tokens(&self, scope: &str) -> Value {
        let answer = self.redeem(&self.code(&[("scope", scope)]), &[]);
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.header("cache-control"), "no-store");
        answer.json()
    }

    fn refresh(&self, token: &Value) -> Answer {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str().expect("a token")),
            ("client_id", &self.id),
        ];
        self.server.post("/oauth/token", &[FORM], &encoded(&fields))
    }

    fn with(&self, token: &Value) -> Person<'s> {
        Person::with_token(self.server, token.as_str().expect("a token"))
    }
}

/// The cookie of a browser after somebody signed in; the status if they could not.
fn sign_in(server: &TestServer, name: &str, password: &str) -> Result<String, u16> {
    let form = encoded(&[("username", name), ("password", password), ("back", "/")]);
    let answer = server.post_once("/login", &[FORM], &form);
    let cookie = answer.header("set-cookie");
    match cookie.split(';').next().filter(|_| answer.status == 303) {
        Some(pair) => Ok(pair.to_owned()),
        None => Err(answer.status),
    }
}

fn error(answer: &Answer) -> (u16, String) {
    let error = answer.json()["error"].as_str().unwrap_or_default().to_owned();
    (answer.status, error)
}

#[test]
fn program_gets_the_access_that_is_allowed() {
    let server = issuing("required = true");
    let host = Host::new(&server);
    let stranger = Person::with(&server, &[]).modern("tools/list", json!({}));
    assert_eq!(stranger.status, 401);
    assert_eq!(
        stranger.header("www-authenticate"),
        format!(
            "Bearer realm=\"tribune\", resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\", scope=\"read tasks\"",
            server.url
        )
    );
    let tokens = host.tokens("read tasks");
    assert_eq!((&tokens["token_type"], &tokens["scope"]), (&json!("Bearer"), &json!("read tasks")));
    let ann = host.with(&tokens["access_token"]);
    ann.add("Mow the lawn");
    assert_eq!(ann.titles(), ["Mow the lawn"]);
    assert_eq!(ann.get("/conversations").status, 403, "the chat was not asked for");
    let revoked = encoded(&[("token", tokens["refresh_token"].as_str().expect("a token"))]);
    assert_eq!(server.post("/oauth/revoke", &[FORM], &revoked).status, 200);
    assert_eq!(server.delete("/session", &[("cookie", &host.cookie)]).status, 204);
    let audit = || tribune(&server, &["audit", "--json", "--user", "ann"]).0;
    wait_for("the sign-out in the audit log", || audit().contains("\"sign out\""));
    let allowed = format!("\"ids\":[\"{}\",\"read tasks\"]", host.id);
    let has = |action: &str, about: &str| audit().lines().any(|line| line.contains(action) && line.contains(about));
    assert!(has("\"allow a program\"", &allowed) && has("\"give a token\"", "\"ids\":[\"read tasks\"]"), "{}", audit());
    assert!(has("\"revoke a token\"", "\"ids\":[]"), "{}", audit());
}

#[test]
fn metadata_is_at_every_address_and_the_same() {
    let server = issuing("");
    let get = |path: &str| server.get(path, &[("origin", "https://inspector.example")]);
    for (path, resource) in [("", "/mcp"), ("/mcp", "/mcp"), ("/mcp/research", "/mcp/research"), ("/sse", "/sse")] {
        let found = get(&format!("/.well-known/oauth-protected-resource{path}"));
        assert_eq!(found.status, 200, "{path}: {}", found.body);
        let found = found.json();
        assert_eq!(found["resource"], format!("{}{resource}", server.url));
        assert_eq!(found["authorization_servers"], json!([server.url]));
    }
    for path in ["/mcp/nothing", "/chat", "/data"] {
        let found = get(&format!("/.well-known/oauth-protected-resource{path}"));
        assert_eq!(found.status, 404, "{path}");
    }
    let first = get("/.well-known/oauth-authorization-server");
    assert_eq!(first.json()["issuer"], server.url.as_str());
    assert_eq!(first.json()["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(first.body, get("/.well-known/openid-configuration").body);
    for path in ["oauth-protected-resource", "oauth-authorization-server", "openid-configuration"] {
        assert_eq!(get(&format!("/.well-known/{path}/")).body, get(&format!("/.well-known/{path}")).body);
    }
    for path in ["/other", "/mcp"] {
        let found = get(&format!("/.well-known/oauth-authorization-server{path}"));
        assert_eq!(found.status, 404);
        assert!(found.body.contains(&format!("The issuer of this server is {}", server.url)), "{}", found.body);
    }
}

#[test]
fn code_works_once_and_for_its_program_alone() {
    let server = issuing("");
    let host = Host::new(&server);
    for (name, value) in [
        ("code_verifier", "another-verifier-another-verifier-another-verifier"),
        ("client_id", "registered-elsewhere"),
        ("redirect_uri", "http://127.0.0.1:1/other"),
    ] {
        let refused = host.redeem(&host.code(&[]), &[(name, value)]);
        assert_eq!(error(&refused), (400, "invalid_grant".to_owned()), "{name}");
    }
    let elsewhere = host.redeem(&host.code(&[]), &[("resource", "https://elsewhere.example/mcp")]);
    assert_eq!(error(&elsewhere), (400, "invalid_target".to_owned()));
    let code = host.code(&[]);
    let tokens = host.redeem(&code, &[]).json();
    let ann = host.with(&tokens["access_token"]);
    assert_eq!(ann.modern("tools/list", json!({})).status, 200);
    assert_eq!(error(&host.redeem(&code, &[])), (400, "invalid_grant".to_owned()));
    crate::support::wait_for("the end of what a copied code gave", || {
        ann.modern("tools/list", json!({})).status == 401
    });
    assert_eq!(error(&host.refresh(&tokens["refresh_token"])), (400, "invalid_grant".to_owned()));
}

#[test]
fn wrong_requests_for_access_are_refused() {
    let server = issuing("");
    let host = Host::new(&server);
    // Where the program is uncertain, nobody is sent anywhere.
    for change in [
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "javascript:alert(1)"),
        ("client_id", "registered-nobody"),
        ("client_id", ""),
        ("client_id", "http://127.0.0.1:1/client.json"),
        ("client_id", "https://127.0.0.1:1/client.json"),
        ("client_id", "https://localhost/client.json"),
    ] {
        let answer = host.decide("allow", &[change]);
        assert_eq!((answer.status, answer.header("location")), (400, ""), "{change:?}");
    }
    for (change, code) in [
        (("response_type", "token"), "unsupported_response_type"),
        (("code_challenge", ""), "invalid_request"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("resource", "https://elsewhere.example"), "invalid_target"),
        (("scope", "everything"), "invalid_scope"),
        // Only members of these groups have them to give.
        (("scope", "admin trade"), "access_denied"),
    ] {
        let answer = host.decide("allow", &[change]);
        let back = answer.header("location");
        assert_eq!(query_of(back, "error").as_deref(), Some(code), "{change:?}: {answer:?}");
        assert_eq!(query_of(back, "iss").as_deref(), Some(server.url.as_str()));
    }
    let denied = host.decide("deny", &[]);
    assert_eq!(query_of(denied.header("location"), "error").as_deref(), Some("access_denied"));
    let cookie = ("cookie", host.cookie.as_str());
    for from in [vec![("origin", "http://localhost:3000")], vec![("sec-fetch-site", "same-site")], vec![]] {
        let headers = [vec![cookie, FORM], from.clone()].concat();
        let foreign = server.post_once(&host.address(&[]), &headers, "decision=allow");
        assert_eq!(foreign.status, 403, "{from:?}");
    }
    let own = [FORM, ("origin", server.url.as_str())];
    let nobody = server.post_once(&host.address(&[]), &own, "decision=allow");
    assert!(nobody.header("location").starts_with("/login?back="), "{nobody:?}");
    // Nobody is redirected before signing in.
    let nobody = server.get_once(&host.address(&[("response_type", "token")]), &[]);
    assert!(nobody.header("location").starts_with("/login?back="), "{nobody:?}");
}

#[test]
fn refresh_tokens_rotate_and_survive_a_restart() {
    let mut server = issuing("");
    let (first, id) = {
        let host = Host::new(&server);
        (host.tokens("read"), host.id)
    };
    server = server.restart();
    let host = Host { server: &server, id, cookie: String::new() };
    // From several addresses at once.
    let together = Barrier::new(4);
    let refresh = || {
        together.wait();
        host.refresh(&first["refresh_token"])
    };
    let answers: Vec<Answer> = thread::scope(|scope| {
        let refreshing: Vec<_> = (0..4).map(|_| scope.spawn(refresh)).collect();
        refreshing.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let (one, other) = (&answers[0], &answers[1]);
    for tokens in answers.iter().map(Answer::json) {
        assert_ne!(tokens["refresh_token"], first["refresh_token"]);
        let ann = host.with(&tokens["access_token"]);
        assert_eq!(ann.modern("tools/list", json!({})).status, 200);
    }
    let fields = encoded(&[("token", one.json()["refresh_token"].as_str().expect("a token"))]);
    assert_eq!(server.post("/oauth/revoke", &[FORM], &fields).status, 200);
    assert_eq!(server.post("/oauth/revoke", &[FORM], "token=unknown").status, 200);
    let ann = host.with(&other.json()["access_token"]);
    crate::support::wait_for("the end of the grant", || ann.modern("tools/list", json!({})).status == 401);
    assert_eq!(error(&host.refresh(&other.json()["refresh_token"])).1, "invalid_grant");
}

#[test]
fn missing_scope_is_named_and_a_write_starts_the_sign_in() {
    let server = issuing("");
    let host = Host::new(&server);
    let reader = host.with(&host.tokens("read")["access_token"]);
    let call = json!({"name": "add_task", "arguments": {"title": "x"}});
    let refused = reader.modern("tools/call", call.clone());
    assert_eq!(refused.status, 403, "{}", refused.body);
    let challenge = refused.header("www-authenticate");
    assert!(challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"tasks\""), "{challenge}");
    assert_eq!(reader.call("search", &json!({"query": "lawn"}))["results"], json!([]));
    // Who has no token sees what there is, and how to get at it.
    let stranger = Person::stranger(&server);
    let listed = stranger.modern("tools/list", json!({})).json();
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let schemes = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect(name);
        assert_eq!(tool["securitySchemes"], tool["_meta"]["securitySchemes"]);
        tool["securitySchemes"].clone()
    };
    let needs = |scope: &str| json!({"type": "oauth2", "scopes": [scope]});
    assert_eq!(schemes("search"), json!([{"type": "noauth"}, needs("read")]));
    assert_eq!(schemes("add_task"), json!([needs("tasks")]));
    let refused = stranger.modern("tools/call", call).json();
    let challenge = refused["result"]["_meta"]["mcp/www_authenticate"][0].as_str().unwrap_or_default();
    assert!(refused["result"]["isError"] == true && challenge.contains("resource_metadata="), "{refused}");
    assert!(challenge.contains("scope=\"tasks\"") && challenge.contains("error_description=\""), "{challenge}");
}

/// Serves one JSON document to everybody, until the test ends; counts how often.
fn serve_document(listener: TcpListener, document: String) -> Arc<AtomicUsize> {
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            count.fetch_add(1, Ordering::SeqCst);
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{document}", document.len());
        }
    });
    served
}

#[test]
fn program_is_known_by_its_document() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let id = format!("http://127.0.0.1:{port}/client.json");
    let document = json!({"client_id": id, "client_name": "Described <b>", "redirect_uris": [CALLBACK]});
    let served = serve_document(listener, document.to_string());
    let server = issuing(&format!("client_hosts = [\"127.0.0.1:{port}\"]"));
    let mut host = Host::new(&server);
    host.id = id;
    let nobody = server.get_once(&host.address(&[]), &[]);
    assert!(nobody.header("location").starts_with("/login?back="), "{nobody:?}");
    assert_eq!(served.load(Ordering::SeqCst), 0, "strangers cannot have addresses fetched");
    let page = server.get(&host.address(&[]), &[("cookie", &host.cookie), ("accept", "text/html")]);
    assert!(page.body.contains("Described &lt;b&gt;"), "{}", page.body);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("form-action 'self' http://127.0.0.1:33418;"), "{policy}");
    let ann = host.with(&host.tokens("read")["access_token"]);
    assert_eq!(ann.modern("tools/list", json!({})).status, 200);
    // The document of another address is not this program's.
    host.id = host.id.replace("client.json", "other.json");
    for _ in 0..3 {
        assert_eq!(host.decide("allow", &[]).status, 400);
    }
    assert_eq!(served.load(Ordering::SeqCst), 2, "a failure is remembered too");
}

#[test]
fn guessed_passwords_are_slowed_down() {
    let server = issuing("[limits]\ntrusted_proxies = [\"127.0.0.1\"]");
    let sign_in = |from: &str, name: &str, password: &str| {
        let form = encoded(&[("username", name), ("password", password)]);
        server.post_once("/login", &[FORM, ("x-forwarded-for", from)], &form).status
    };
    for _ in 0..5 {
        assert_eq!(sign_in("203.0.113.7", "ann", "wrong password"), 401);
    }
    assert_eq!(sign_in("203.0.113.7", "ann", PASSWORD), 429, "even with the right one");
    // Nobody keeps others from signing in by guessing.
    for guess in 0..101 {
        let from = format!("203.0.113.{}", 100 + guess / 25);
        assert_eq!(sign_in(&from, &format!("nobody{guess}"), "wrong password"), 401);
    }
    assert_eq!(sign_in("203.0.113.8", "ann", PASSWORD), 303);
}

#[test]
fn session_ends_at_sign_out_and_with_a_new_password() {
    let server = issuing("required = true");
    let (one, other) = (sign_in(&server, "ann", PASSWORD), sign_in(&server, "ann", PASSWORD));
    let (one, other) = (one.expect("signed in"), other.expect("signed in"));
    assert_ne!(one, other);
    let again = encoded(&[("username", "ann"), ("password", PASSWORD)]);
    let again = server.post_once("/login", &[FORM, ("cookie", &one), ("origin", &server.url)], &again);
    let (ended, one) = (one, again.header("set-cookie").split(';').next().expect("a pair").to_owned());
    let reads = |cookie: &str| server.get("/openapi.json", &[("cookie", cookie)]).status;
    assert_eq!((reads(&one), reads(&other), reads(&ended)), (200, 200, 401), "a new sign-in ends the session before");
    assert_eq!(server.delete("/session", &[("cookie", &one)]).status, 204);
    assert_eq!((reads(&one), reads(&other)), (401, 200));
    // A session's secret is no token.
    let (_, secret) = other.split_once('=').expect("a pair");
    assert_eq!(Person::with_token(&server, secret).modern("tools/list", json!({})).status, 401);
    let file = server.config().with_file_name("password");
    fs::write(&file, "another password\n").expect("written");
    let file = file.display().to_string();
    tribune(&server, &["user", "password", "ann", "--password-file", &file]);
    crate::support::wait_for("the end of the session", || reads(&other) == 401);
}

#[test]
fn api_tokens_have_scopes_and_a_profile() {
    let server = issuing("");
    let create = |more: &[&str]| {
        let args = [&["token", "create", "--user", "ann"], more].concat();
        tribune(&server, &args).0.trim().to_owned()
    };
    let reader = Person::with_token(&server, &create(&["--scope", "read"]));
    assert_eq!(reader.modern("tools/call", json!({"name": "list_tasks", "arguments": {}})).status, 403);
    assert_eq!(reader.get("/conversations").status, 403);
    let token = create(&["--profile", "research"]);
    let headers = [("authorization", format!("Bearer {token}"))];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let at = |path: &str| server.modern_with(path, "tools/list", json!({}), &headers).status;
    assert_eq!((at("/mcp/research"), at("/mcp"), at("/mcp/full")), (200, 403, 403));
    assert_eq!(server.get("/openapi.json", &headers).status, 403);
    let listed: Value = serde_json::from_str(&tribune(&server, &["token", "list", "--json"]).0).expect("JSON");
    assert_eq!(listed[0]["scopes"], json!(["read"]));
    assert!(listed[0]["expires_at"].is_string(), "90 days unless said otherwise: {listed}");
    // What an operator gives needs no group, also in a browser.
    let operator = create(&["--scope", "admin"]);
    let opened = server.post("/session", &[], &json!({"token": operator}).to_string());
    let cookie = opened.header("set-cookie").split(';').next().expect("a pair").to_owned();
    let bearer = format!("Bearer {operator}");
    for proof in [("cookie", cookie.as_str()), ("authorization", &bearer)] {
        assert_eq!(server.get("/metrics", &[proof]).status, 200, "{proof:?}");
    }
    let forever = tribune(&server, &["token", "create", "--user", "ann", "--expires", "never", "--json"]);
    let forever: Value = serde_json::from_str(&forever.0).expect("JSON");
    assert_eq!(forever["expires_at"], Value::Null);
}

/// A source with tools for administrators.
const INGESTING: &str = "[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = \"docs\"\ningest_dir = \"docs\"";

#[test]
fn administrators_are_members_of_their_group() {
    let server = issuing(INGESTING);
    add_user(&server, "root", &["admin"]);
    let mut host = Host::new(&server);
    let at_admin = |person: &Person<'_>| {
        let headers: Vec<(&str, &str)> =
            person.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        server.modern_with("/mcp/admin", "tools/list", json!({}), &headers).status
    };
    let ann = host.with(&host.tokens("read admin")["access_token"]);
    assert_eq!(at_admin(&ann), 403);
    assert_eq!(at_admin(&Person::stranger(&server)), 401);
    host.cookie = sign_in(&server, "root", PASSWORD).expect("signed in");
    let root = host.with(&host.tokens("read admin")["access_token"]);
    assert_eq!(at_admin(&root), 200);
}

#[test]
fn operator_sees_and_ends_grants() {
    let server = issuing("");
    let host = Host::new(&server);
    let tokens = host.tokens("read tasks");
    let ann = host.with(&tokens["access_token"]);
    assert_eq!(ann.modern("tools/list", json!({})).status, 200);
    let (shown, _) = tribune(&server, &["user", "grants", "ann"]);
    assert!(shown.contains("A host") && shown.contains("read tasks"), "{shown}");
    let (listed, _) = tribune(&server, &["user", "grants", "ann", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert!(listed[0]["last_used"].is_string(), "{listed}");
    tribune(&server, &["user", "revoke", "ann", listed[0]["id"].as_str().expect("an id")]);
    crate::support::wait_for("the end of the grant", || ann.modern("tools/list", json!({})).status == 401);
    assert_eq!(error(&host.refresh(&tokens["refresh_token"])).1, "invalid_grant");
    assert!(tribune(&server, &["user", "grants", "ann"]).0.contains("lets no program in"));
}

#[test]
fn who_leaves_a_group_loses_its_scope() {
    let server = issuing(INGESTING);
    let joined = tribune(&server, &["user", "group", "ann", "--add", "admin", "--add", "staff"]);
    assert!(joined.0.contains("ann is in: admin, staff."), "{joined:?}");
    let host = Host::new(&server);
    let tokens = host.tokens("read admin");
    assert_eq!(tokens["scope"], "read admin");
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().expect("a token"));
    let lists = || server.modern_with("/mcp/admin", "tools/list", json!({}), &[("authorization", &bearer)]).status;
    assert_eq!(lists(), 200);
    tribune(&server, &["user", "group", "ann", "--remove", "admin"]);
    crate::support::wait_for("the end of the scope", || lists() == 403);
}

#[test]
fn grant_for_a_profile_opens_nothing_else() {
    let server = issuing("");
    let host = Host::new(&server);
    let resource = |path: &str| format!("{}{path}", server.url);
    let refused = host.decide("allow", &[("resource", &resource("/mcp/nonsense"))]);
    assert_eq!(query_of(refused.header("location"), "error").as_deref(), Some("invalid_target"));
    let opens = |path: &str, tokens: &Value| {
        let bearer = format!("Bearer {}", tokens["access_token"].as_str().expect("a token"));
        let headers = [("authorization", bearer.as_str())];
        match path.starts_with("/mcp") {
            true => server.modern_with(path, "tools/list", json!({}), &headers).status,
            false => server.get(path, &headers).status,
        }
    };
    for (asked, expected) in
        [("/mcp/research", [200, 403, 403]), ("/sse/research", [200, 403, 403]), ("/mcp", [200; 3])]
    {
        let asked = resource(asked);
        let tokens = host.redeem(&host.code(&[("resource", &asked)]), &[("resource", &asked)]).json();
        let found = ["/mcp/research", "/mcp", "/data/docs:beans.md"].map(|path| opens(path, &tokens));
        assert_eq!(found, expected, "{asked}");
    }
}

#[test]
fn token_cannot_let_programs_in() {
    let server = issuing("");
    let host = Host::new(&server);
    let create = ["token", "create", "--user", "ann", "--profile", "research"];
    let token = format!("Bearer {}", tribune(&server, &create).0.trim());
    let headers = [("authorization", token.as_str()), FORM, ("origin", server.url.as_str())];
    let answer = server.post_once(&host.address(&[]), &headers, "decision=allow");
    assert!(answer.header("location").starts_with("/login?back="), "{answer:?}");
    // Nor does a session that was opened with one: what it lets in would outlive the token.
    let token = crate::people::token(&server, "ann");
    let opened = server.post("/session", &[], &json!({"token": token}).to_string());
    let cookie = opened.header("set-cookie").split(';').next().expect("a pair").to_owned();
    assert_eq!(server.get("/conversations", &[("cookie", &cookie)]).status, 200);
    let answer = Host { cookie, ..host }.decide("allow", &[]);
    assert!(answer.header("location").starts_with("/login?back="), "{answer:?}");
}

#[test]
fn consent_names_what_can_be_allowed() {
    let server = issuing("");
    let host = Host::new(&server);
    let page = |scope: &str| server.get(&host.address(&[("scope", scope)]), &[("cookie", &host.cookie)]).body;
    let shown = page("read admin");
    assert!(shown.contains("<code>read</code>") && !shown.contains("<code>admin</code>"), "{shown}");
    assert!(page("admin").contains("You may allow nothing"));
}

#[test]
fn consent_names_where_the_code_goes() {
    let server = issuing("");
    let mut host = Host::new(&server);
    let register = |address: &str| {
        let metadata = json!({"client_name": "Good\u{202e}\u{200b} host", "redirect_uris": [address]});
        server.post("/oauth/register", &[], &metadata.to_string())
    };
    for misleading in ["https:evil.example", "https://evil.example\\@good.example/cb", "search-ms:query=x"] {
        assert_eq!(error(&register(misleading)), (400, "invalid_redirect_uri".to_owned()), "{misleading}");
    }
    for (address, shown, form_target) in [
        ("https://bücher.example/cb", "xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("com.example.app:/cb", "com.example.app:", "com.example.app:"),
        ("cursor://good.example/cb", "cursor:", "cursor:"),
    ] {
        host.id = register(address).json()["client_id"].as_str().expect("an id").to_owned();
        let page = server.get(&host.address(&[("redirect_uri", address)]), &[("cookie", &host.cookie)]);
        assert!(page.body.contains(&format!("sent to <strong>{shown}</strong>")), "{address}: {}", page.body);
        assert!(page.body.contains("Allow Good host to use"), "{}", page.body);
        let policy = page.header("content-security-policy");
        assert!(policy.contains(&format!("form-action 'self' {form_target};")), "{address}: {policy}");
    }
}

#[test]
fn other_pages_cannot_sign_a_browser_in() {
    let server = issuing("");
    let form = encoded(&[("username", "ann"), ("password", PASSWORD)]);
    let secret = crate::people::token(&server, "ann");
    for page in [("origin", "http://localhost:3000"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
        for (path, body) in [("/login", form.clone()), ("/session", encoded(&[("token", &secret)]))] {
            let answer = server.post_once(path, &[FORM, page], &body);
            assert_eq!((answer.status, answer.header("set-cookie")), (403, ""), "{path} {page:?}");
        }
    }
    let own = [FORM, ("origin", server.url.as_str()), ("sec-fetch-site", "same-origin")];
    assert_eq!(server.post_once("/login", &own, &form).status, 303);
}

#[test]
fn every_refusal_leads_to_metadata() {
    let server = issuing("required = true");
    let headers = [("authorization", "Bearer tribune_at_ended"), ("accept", "text/html,application/xhtml+xml")];
    for path in ["/mcp", "/mcp/", "/mcp/research", "/mcp/admin", "/sse", "/sse/research", "/sse/messages?sessionId=1"] {
        let is_message = path.starts_with("/sse/messages");
        let refused = if is_message { server.post(path, &headers, "{}") } else { server.get(path, &headers) };
        let challenge = refused.header("www-authenticate").to_owned();
        assert_eq!(refused.status, 401, "{path}: {}", refused.body);
        assert!(challenge.contains("error=\"invalid_token\"") && challenge.contains("scope="), "{path}: {challenge}");
        assert!(refused.json()["error"]["message"].is_string(), "{path}: JSON, whatever a probe accepts");
        let metadata = challenge.split('"').find(|part| part.contains("/.well-known/")).expect("an address");
        let metadata = server.get(metadata.strip_prefix(&server.url).expect("of this server"), &[]);
        let known = metadata.status == 200 || path == "/mcp/admin";
        assert!(known, "{path}: {}", metadata.body);
    }
}
