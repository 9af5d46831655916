//! The request of a call: sent by this page, and printed as a command.

use axum::body::Body;
use http::{Request, header};
use serde_json::json;
use tribune_core::{JsonObject, Principal};

use crate::identity::Caller;
use crate::mcp::MODERN;

/// Systems refuse command arguments of 128 KiB and more.
const MAX_SHELL_BYTES: usize = 100_000;

/// One `tools/call` of the modern era.
pub(super) struct CallRequest {
    pub(super) address: String,
    headers: [(&'static str, String); 5],
    body: String,
}

impl CallRequest {
    pub(super) fn new(address: String, tool: &str, arguments: &JsonObject) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"_meta": meta, "name": tool, "arguments": arguments});
        Self {
            address,
            headers: [
                ("content-type", "application/json".to_owned()),
                ("accept", "application/json, text/event-stream".to_owned()),
                ("mcp-protocol-version", MODERN.to_owned()),
                ("mcp-method", "tools/call".to_owned()),
                ("mcp-name", tool.to_owned()),
            ],
            body: json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string(),
        }
    }

    /// As if it came from the network, for a caller who is identified already.
    pub(super) fn to_http(&self, caller: Caller) -> Request<Body> {
        let mut request = Request::post("/").extension(caller);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        // The registry accepts only plain tool names, so every header is valid.
        request.body(Body::from(self.body.clone())).unwrap_or_default()
    }

    /// A command to paste; `None` if it is too long for a shell. Users put in their own token.
    pub(super) fn to_curl(&self, principal: &Principal) -> Option<String> {
        if self.body.len() > MAX_SHELL_BYTES {
            return None;
        }
        let token = matches!(principal, Principal::User(_)).then(|| (header::AUTHORIZATION.as_str(), "Bearer TOKEN"));
        let headers = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let mut command = format!("curl -sS {}", quoted(&self.address));
        for (name, value) in headers.chain(token) {
            command.push_str(" \\\n  -H ");
            command.push_str(&quoted(&format!("{name}: {value}")));
        }
        command.push_str(" \\\n  -d ");
        command.push_str(&quoted(&self.body));
        Some(command)
    }
}

/// Text as one word of a POSIX shell: inside single quotes nothing is special.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;
    use tribune_core::UserId;

    fn call(query: &str) -> CallRequest {
        let arguments = JsonObject::from_iter([("query".to_owned(), query.into())]);
        CallRequest::new("http://127.0.0.1:8080/mcp".to_owned(), "search", &arguments)
    }

    #[test]
    fn command_is_printed_completely() {
        let expected = r#"curl -sS 'http://127.0.0.1:8080/mcp' \
  -H 'content-type: application/json' \
  -H 'accept: application/json, text/event-stream' \
  -H 'mcp-protocol-version: 2026-07-28' \
  -H 'mcp-method: tools/call' \
  -H 'mcp-name: search' \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"search","arguments":{"query":"it'\''s"}}}'"#;
        assert_eq!(call("it's").to_curl(&Principal::Local).as_deref(), Some(expected));
    }

    #[test]
    fn token_is_a_placeholder_and_only_for_users() {
        let user = Principal::User(UserId::new("ann").expect("a name"));
        let command = call("x").to_curl(&user).expect("a command");
        assert!(command.contains("-H 'authorization: Bearer TOKEN'"), "{command}");
        for principal in [Principal::Local, Principal::Anonymous] {
            let command = call("x").to_curl(&principal).expect("a command");
            assert!(!command.contains("authorization"), "{command}");
        }
    }

    #[test]
    fn too_long_command_is_not_printed() {
        assert_eq!(call(&"x".repeat(MAX_SHELL_BYTES)).to_curl(&Principal::Local), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn shell_reads_any_text_unchanged(text in "[^\\x00]{0,60}|['\"$`\\\\!;&|\n ]{0,30}") {
            let script = format!("printf %s {}", quoted(&text));
            let output = Command::new("sh").arg("-c").arg(script).output().expect("a shell");
            prop_assert!(output.status.success());
            prop_assert_eq!(String::from_utf8(output.stdout).expect("UTF-8"), text);
        }

        #[test]
        fn body_carries_any_arguments(text in any::<String>()) {
            let call = call(&text);
            let body: serde_json::Value = serde_json::from_str(&call.body).expect("JSON");
            prop_assert_eq!(body["params"]["arguments"]["query"].as_str(), Some(text.as_str()));
            // A shell takes no zero bytes: the JSON has them escaped.
            prop_assert!(!call.body.contains('\0'));
        }
    }
}
