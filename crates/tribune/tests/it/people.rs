//! Users of a running Tribune.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Answer, TestServer, binary};

/// A caller of a server, with a token or other headers.
pub struct Person<'a> {
    pub server: &'a TestServer,
    pub headers: Vec<(String, String)>,
}

impl<'a> Person<'a> {
    /// A user with a token.
    pub fn new(server: &'a TestServer, name: &str) -> Self {
        Self::with_token(server, &token(server, name))
    }

    pub fn with_token(server: &'a TestServer, token: &str) -> Self {
        Self::with(server, &[("authorization", &format!("Bearer {token}"))])
    }

    /// The local user.
    pub fn local(server: &'a TestServer) -> Self {
        let (name, secret) = server.local_header();
        Self::with(server, &[(name, &secret)])
    }

    /// An anonymous caller.
    pub fn stranger(server: &'a TestServer) -> Self {
        Self::with(server, &[])
    }

    pub fn with(server: &'a TestServer, headers: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { server, headers: headers.iter().map(owned).collect() }
    }

    fn and<'h>(&'h self, more: &[(&'h str, &'h str)]) -> Vec<(&'h str, &'h str)> {
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        own.chain(more.iter().copied()).collect()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.server.get(path, &self.and(&[("accept", "application/json")]))
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = self.and(&[("content-type", "application/json")]);
        self.server.post(path, &headers, &body.to_string())
    }

    /// A request of the modern era at `/mcp`.
    pub fn modern(&self, method: &str, params: Value) -> Answer {
        self.server.modern_with("/mcp", method, params, &self.and(&[]))
    }

    pub fn tools(&self) -> Vec<String> {
        let listed = self.modern("tools/list", json!({})).json();
        let tools = listed["result"]["tools"].as_array().expect("tools");
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// A tool's structured answer, or its error message.
    pub fn try_call(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let answer = self.modern("tools/call", json!({"name": tool, "arguments": arguments})).json();
        let result = &answer["result"];
        match result["isError"].as_bool() {
            Some(false) => Ok(result["structuredContent"].clone()),
            Some(true) => Err(result["content"][0]["text"].as_str().unwrap_or_default().to_owned()),
            None => panic!("{answer}"),
        }
    }

    pub fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.try_call(tool, arguments).unwrap_or_else(|fault| panic!("{tool}: {fault}"))
    }

    pub fn add(&self, title: &str) -> String {
        self.call("add_task", &json!({"title": title}))["id"].as_str().expect("an id").to_owned()
    }

    pub fn titles(&self) -> Vec<String> {
        let listed = self.call("list_tasks", &json!({}));
        let tasks = listed["tasks"].as_array().expect("tasks");
        tasks.iter().map(|task| task["title"].as_str().expect("a title").to_owned()).collect()
    }

    /// The agent's answer.
    pub fn chat(&self, message: &str) -> Value {
        let answer = self.post("/chat", &json!({"message": message}));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }
}

/// Creates a token with the command line.
pub fn token(server: &TestServer, user: &str) -> String {
    let made = tribune(server, &["token", "create", "--user", user]);
    made.0.trim().to_owned()
}

/// Runs a command on the server's configuration; standard output and error.
pub fn tribune(server: &TestServer, args: &[&str]) -> (String, String) {
    let output =
        Command::new(binary()).args(args).arg("--config").arg(server.config()).output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{args:?}: {out}{err}");
    (out, err)
}
