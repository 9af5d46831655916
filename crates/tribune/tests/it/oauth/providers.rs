//! `oidc-provider` from npm: people sign in there, and its own tokens are checked.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::json;

use super::{FORM, encoded};
use crate::clients::node;
use crate::people::Person;
use crate::support::{TestServer, free_port, root, sample, wait_for};

/// A provider, for a server at a port.
pub struct Provider {
    pub url: String,
    resource: String,
    child: Child,
    /// Open, because it goes on writing.
    _out: BufReader<ChildStdout>,
}

impl Provider {
    pub fn start(server_port: u16) -> Self {
        let port = free_port();
        let resource = format!("http://127.0.0.1:{server_port}/mcp");
        let mut child = Command::new(node())
            .arg(root().join("tests/clients/oidc_provider.mjs"))
            .arg(port.to_string())
            .arg(format!("http://127.0.0.1:{server_port}/login/callback"))
            .arg(&resource)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("stdout"));
        let mut line = String::new();
        out.read_line(&mut line).expect("its address");
        let (url, _) = line.split_once(' ').expect("its address");
        Self { url: url.to_owned(), resource, child, _out: out }
    }

    /// A server at the port that the provider knows.
    pub fn serve(&self, port: u16, auth: &str) -> TestServer {
        TestServer::builder()
            .documents(&sample())
            .tables(&format!("[store]\n[auth]\nrequired = true\n{auth}"))
            .environment("OIDC_SECRET", "tribune-secret")
            .arg("--listen")
            .arg(&format!("127.0.0.1:{port}"))
            .start()
    }

    /// A signed token of the provider.
    fn token(&self, scope: &str, resource: &str) -> String {
        let form = encoded(&[("grant_type", "client_credentials"), ("scope", scope), ("resource", resource)]);
        let answer = ureq::post(format!("{}/token", self.url))
            .header(FORM.0, FORM.1)
            .header("authorization", "Basic cm9ib3Q6cm9ib3Qtc2VjcmV0")
            .send(form);
        let answer = answer.expect("an answer").into_body().read_to_string().expect("a body");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
        answer["access_token"].as_str().expect("a token").to_owned()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A server whose users sign in at the provider.
pub fn signs_in_at(provider: &Provider, port: u16, more: &str) -> TestServer {
    let oidc = format!(
        "{{ issuer = \"{}\", client_id = \"tribune\", client_secret = \"env:OIDC_SECRET\"{more} }}",
        provider.url
    );
    provider.serve(port, &format!("issuer = \"builtin\"\n[auth.login]\noidc = {oidc}"))
}

#[test]
fn people_sign_in_at_a_provider() {
    let port = free_port();
    let provider = Provider::start(port);
    let server = signs_in_at(&provider, port, ", allow = [\"@example.org\"]");
    super::clients::python().check(None, &server.mcp(), &["zoe", "any", "--provider"]);
    let (users, _) = crate::people::tribune(&server, &["user", "list", "--json"]);
    let users: serde_json::Value = serde_json::from_str(&users).expect("JSON");
    assert_eq!((&users[0]["name"], &users[0]["signs_in"]), (&json!("zoe@example.org"), &json!("provider")));
    // A sign-in that this browser did not begin.
    let foreign = server.get("/login/callback?code=x&state=y", &[]);
    assert_eq!(foreign.status, 401);
    assert!(foreign.body.contains("was not begun in this browser"), "{}", foreign.body);
    // An answer of another provider.
    let begun = server.get_once("/login/provider", &[]);
    let state = super::query_of(begun.header("location"), "state").expect("a state");
    let cookie = begun.header("set-cookie").split(';').next().expect("a cookie");
    let answer = |issuer: &str| {
        let path = format!("/login/callback?code=x&state={state}&iss={issuer}");
        server.get(&path, &[("cookie", cookie)]).body
    };
    assert!(answer("https%3A%2F%2Fevil.example").contains("Another provider than 127.0.0.1 answered"));
    assert!(!answer(&provider.url).contains("Another provider"), "the code is wrong, the provider right");
}

#[test]
fn tokens_of_another_issuer_are_checked() {
    let port = free_port();
    let provider = Provider::start(port);
    let stranger = Provider::start(port);
    let server = provider.serve(port, &format!("issuer = \"{}\"", provider.url));
    let metadata = server.get("/.well-known/oauth-protected-resource/mcp", &[]).json();
    assert_eq!(metadata["authorization_servers"], json!([provider.url]));
    assert_eq!(server.get("/.well-known/oauth-authorization-server", &[]).status, 404);

    let call = |token: &str, tool: &str| {
        let call = json!({"name": tool, "arguments": {}});
        Person::with_token(&server, token).modern("tools/call", call).status
    };
    let good = provider.token("read tasks", &provider.resource);
    assert_eq!(call(&good, "list_tasks"), 200);
    // A token for the endpoint that a host uses.
    let research = format!("{}/mcp/research", server.url);
    let research = Person::with_token(&server, &provider.token("read", &research));
    let headers: Vec<(&str, &str)> =
        research.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let at = |path: &str| server.modern_with(path, "tools/list", json!({}), &headers).status;
    assert_eq!((at("/mcp/research"), at("/mcp")), (200, 403), "it opens nothing else");
    assert_eq!(call(&provider.token("read", &provider.resource), "list_tasks"), 403);
    let (header, rest) = good.split_once('.').expect("three parts");
    let (claims, signature) = rest.split_once('.').expect("three parts");
    let other_key = stranger.token("read tasks", &provider.resource);
    for (what, token) in [
        ("another audience", provider.token("read tasks", "http://127.0.0.1:1/mcp")),
        ("another issuer", other_key.clone()),
        // `{"alg":"none"}` and `{"alg":"HS256"}`
        ("no signature", format!("eyJhbGciOiJub25lIn0.{claims}.")),
        ("a signature of none", format!("eyJhbGciOiJub25lIn0.{claims}.{signature}")),
        ("a secret's signature", format!("eyJhbGciOiJIUzI1NiJ9.{claims}.{signature}")),
        // At its beginning: the last letter holds bits that count for nothing.
        ("another signature", format!("{header}.{claims}.A{signature}")),
        (
            "another's signature",
            format!("{}.{}", good.rsplit_once('.').expect("parts").0, other_key.rsplit_once('.').expect("parts").1),
        ),
        ("cut", good[..good.len() / 2].to_owned()),
        ("long", format!("{good}{}", "A".repeat(20_000))),
    ] {
        assert_eq!(call(&token, "list_tasks"), 401, "{what}");
    }
    // Lives for a second, and a few more for clocks that differ.
    let short = provider.token("chat", &provider.resource);
    wait_for("the end of a token", || call(&short, "search") == 401);
    assert_eq!(call(&good, "list_tasks"), 200);
}
