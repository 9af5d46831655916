//! The OAuth clients of the SDKs and the Inspector: they become known, a person signs in and allows them, they call tools.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use serde_json::json;

use super::providers::{Provider, signs_in_at};
use super::{PASSWORD, add_user, issuing};
use crate::clients::Client;
use crate::https::{Certified, Secured};
use crate::nginx::Nginx;
use crate::people::tribune;
use crate::support::{TestServer, free_port, installed, sample, wait_for};

fn python_path() -> String {
    installed("py-mcp2/bin/python").display().to_string()
}

pub fn python() -> Client {
    Client::python("py-mcp2", "python_oauth.py")
}

fn typescript() -> Client {
    Client::node("node_oauth.mjs")
}

fn inspector() -> Client {
    Client::node("node_inspector_oauth.mjs")
}

#[test]
fn python_sdk_signs_in() {
    let server = issuing("required = true");
    python().check(None, &server.mcp(), &["ann", PASSWORD]);
}

#[test]
fn typescript_sdk_signs_in() {
    let server = issuing("required = true");
    typescript().check(None, &server.mcp(), &["ann", PASSWORD, &python_path()]);
}

#[test]
fn inspector_signs_in() {
    let server = issuing("required = true");
    let port = free_port().to_string();
    inspector().check(None, &server.mcp(), &["ann", PASSWORD, &python_path(), &port]);
}

/// The Python SDK sends head and body one after the other, and repeats on the same connection what was refused.
#[test]
fn refused_request_leaves_its_connection_open() {
    let server = issuing("required = true");
    let host = format!("127.0.0.1:{}", server.port);
    for path in ["/mcp", "/mcp/nowhere", "/chat", "/oauth/nowhere", "/oauth/token"] {
        let mut connection = TcpStream::connect(&host).expect("connected");
        write!(connection, "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n").expect("sent");
        // Meanwhile the request is refused.
        assert_eq!(server.post("/mcp", &[], "{}").status, 401);
        let next = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        write!(connection, "{{}}{next}").expect("sent");
        let mut answers = String::new();
        connection.read_to_string(&mut answers).expect("answers");
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 2, "{path}: {answers}");
        assert!(answers.contains("HTTP/1.1 200 OK"), "{path}: {answers}");
    }
}

#[test]
fn clients_sign_in_through_a_provider() {
    let port = free_port();
    let provider = Provider::start(port);
    let server = signs_in_at(&provider, port, "");
    let callback = free_port().to_string();
    python().check(None, &server.mcp(), &["zoe", "any", "--provider"]);
    typescript().check(None, &server.mcp(), &["yan", "any", &python_path(), "--provider"]);
    let through_provider = inspector().variable("SIGN_IN_AT_PROVIDER", "1");
    through_provider.check(None, &server.mcp(), &["xia", "any", &python_path(), &callback]);
    let (users, _) = tribune(&server, &["user", "list", "--json"]);
    for name in ["zoe", "yan", "xia"] {
        assert!(users.contains(&format!("\"{name}@example.org\"")), "{users}");
    }
}

#[test]
fn clients_sign_in_at_another_issuer() {
    let port = free_port();
    let provider = Provider::start(port);
    let server = provider.serve(port, &format!("issuer = \"{}\"", provider.url));
    let callback = free_port().to_string();
    python().check(None, &server.mcp(), &["zoe", "any"]);
    typescript().check(None, &server.mcp(), &["yan", "any", &python_path()]);
    inspector().check(None, &server.mcp(), &["xia", "any", &python_path(), &callback]);
}

#[test]
fn clients_are_known_by_their_document() {
    let dir = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let id = format!("https://127.0.0.1:{port}/client.json");
    let document = json!({
        "client_id": id,
        "client_name": "A described program",
        "redirect_uris": ["http://127.0.0.1:33419/callback", "http://127.0.0.1:33420/callback"],
    });
    std::fs::write(dir.path().join("client.json"), document.to_string()).expect("a document");
    let certified = Certified::new("127.0.0.1", dir.path());
    let site = format!(
        "server {{ listen 127.0.0.1:{port} ssl; {} location = /client.json {{ root .; default_type application/json; }} }}",
        certified.nginx()
    );
    let _documents = Nginx::start(dir.path(), &site);
    wait_for("nginx to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let server = TestServer::builder()
        .documents(&sample())
        .tables(&format!(
            "[store]\n[auth]\nissuer = \"builtin\"\nrequired = true\nclient_hosts = [\"127.0.0.1:{port}\"]"
        ))
        .environment("SSL_CERT_FILE", &certified.authority)
        .start();
    add_user(&server, "ann", &[]);
    python().check(None, &server.mcp(), &["ann", PASSWORD, "--document", &id]);
    typescript().check(None, &server.mcp(), &["ann", PASSWORD, &python_path(), "--document", &id]);
}

/// What a client has stored is good after a restart of the server, and no longer when it was revoked.
fn goes_on_after_a_restart(client: &Client, more: &[&str]) {
    let mut server = issuing("required = true");
    let address = format!("127.0.0.1:{}", server.port);
    let file = server.config().with_file_name("kept.json").display().to_string();
    let args = [&["ann", PASSWORD], more, &["--kept", &file]].concat();
    client.check(None, &server.mcp(), &args);
    server.stop();
    let server = TestServer::over(Arc::clone(&server.dir), &["--listen".to_owned(), address], &[]);
    server.wait_ready();
    client.check(None, &server.mcp(), &args);
    client.check(None, &server.mcp(), &[&args[..], &["--revoke"]].concat());
}

#[test]
fn python_sdk_goes_on_after_a_restart() {
    goes_on_after_a_restart(&python(), &[]);
}

#[test]
fn typescript_sdk_goes_on_after_a_restart() {
    goes_on_after_a_restart(&typescript(), &[&python_path()]);
}

/// With the site that is shipped and a certificate. Below a path, the proxy strips it, and hands on the metadata of the
/// issuer at the root.
fn signs_in_behind_nginx(path: &str) {
    let site = Secured::start(path);
    add_user(&site.tribune, "ann", &[]);
    let resource = format!("{}/mcp", site.public);
    for (root, below) in [
        (format!("/.well-known/oauth-protected-resource{path}/mcp"), "/.well-known/oauth-protected-resource/mcp"),
        (format!("/.well-known/oauth-authorization-server{path}"), "/.well-known/oauth-authorization-server"),
    ] {
        assert_eq!(site.get(&root), site.get(&format!("{path}{below}")), "{root}");
    }
    let trusting = |client: Client| {
        let client = client.variable("SSL_CERT_FILE", &site.certified.authority);
        client.variable("NODE_EXTRA_CA_CERTS", &site.certified.authority)
    };
    trusting(python()).check(None, &resource, &["ann", PASSWORD]);
    trusting(typescript()).check(None, &resource, &["ann", PASSWORD, &python_path()]);
}

#[test]
fn clients_sign_in_behind_nginx() {
    signs_in_behind_nginx("");
}

#[test]
fn clients_sign_in_behind_nginx_with_a_path() {
    signs_in_behind_nginx("/tribune");
}

/// With a proxy that hands on nothing but what is below the path.
#[test]
fn python_sdk_finds_metadata_below_a_path() {
    let port = free_port();
    let public = format!("http://127.0.0.2:{port}/tribune");
    let server = TestServer::builder()
        .documents(&sample())
        .server(&format!("public_url = \"{public}\""))
        .tables("[store]\n[auth]\nissuer = \"builtin\"\nrequired = true")
        .arg("--listen")
        .arg(&format!("127.0.0.1:{port}"))
        .start();
    add_user(&server, "ann", &[]);
    let site = format!(
        "server {{ listen 127.0.0.2:{port}; location /tribune/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr; proxy_buffering off; }} }}"
    );
    let _nginx = Nginx::start(server.dir.path(), &site);
    wait_for("nginx to listen", || TcpStream::connect(("127.0.0.2", port)).is_ok());
    python().check(None, &format!("{public}/mcp"), &["ann", PASSWORD]);
}
