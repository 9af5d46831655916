//! The OAuth clients of the SDKs and the Inspector: they register, a person signs in and allows them, they call tools.

use super::{PASSWORD, add_user, issuing};
use crate::clients::Client;
use crate::nginx::Nginx;
use crate::support::{TestServer, free_port, installed, sample};

fn python() -> String {
    installed("py-mcp2/bin/python").display().to_string()
}

#[test]
fn python_sdk_signs_in() {
    let server = issuing("required = true");
    let url = format!("{}/mcp", server.url);
    Client::python("py-mcp2", "python_oauth.py").check(None, &url, &["ann", PASSWORD]);
}

#[test]
fn typescript_sdk_signs_in() {
    let server = issuing("required = true");
    let url = format!("{}/mcp", server.url);
    Client::node("node_oauth.mjs").check(None, &url, &["ann", PASSWORD, &python()]);
}

#[test]
fn inspector_signs_in() {
    let server = issuing("required = true");
    let (url, port) = (format!("{}/mcp", server.url), free_port().to_string());
    Client::node("node_inspector_oauth.mjs").check(None, &url, &["ann", PASSWORD, &python(), &port]);
}

/// With nginx at another loopback address, which strips the path.
fn signs_in_behind_nginx(path: &str) {
    let port = free_port();
    let public = format!("http://127.0.0.2:{port}{path}");
    let server = TestServer::builder()
        .documents(&sample())
        .server(&format!("public_url = \"{public}\""))
        .tables("[store]\n[auth]\nissuer = \"builtin\"\nrequired = true")
        .arg("--listen")
        .arg(&format!("127.0.0.1:{port}"))
        .start();
    add_user(&server, "ann", &[]);
    let site = format!(
        "server {{ listen 127.0.0.2:{port}; location {path}/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr; proxy_buffering off; }} }}"
    );
    let _nginx = Nginx::start(server.dir.path(), &site);
    crate::support::wait_for("nginx to listen", || std::net::TcpStream::connect(("127.0.0.2", port)).is_ok());
    let client = Client::python("py-mcp2", "python_oauth.py");
    client.check(None, &format!("{public}/mcp"), &["ann", PASSWORD]);
}

#[test]
fn python_sdk_signs_in_behind_nginx() {
    signs_in_behind_nginx("");
}

#[test]
fn python_sdk_signs_in_behind_nginx_with_a_path() {
    signs_in_behind_nginx("/tribune");
}
