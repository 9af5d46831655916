//! Talks to the fixtures over an in-memory connection, the way a client does.

use std::collections::HashSet;

use rmcp::{
    RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
        Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use super::{Conformance, tools};

/// A handler whose answers are recognisably not those of a fixture.
struct Inner;

impl ServerHandler for Inner {
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = tools::without_arguments("inner_tool", "Belongs to the wrapped handler");
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == "inner_tool").then(Tool::default)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = format!("inner: {}", request.name);
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = ResourceContents::text("inner", request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    sent: u64,
}

impl Client {
    fn connect() -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let service = Conformance::new(Inner).serve(far).await.expect("served");
            service.waiting().await.expect("ran to its end");
        });
        let (reader, writer) = tokio::io::split(near);
        Self { lines: BufReader::new(reader).lines(), writer, sent: 0 }
    }

    /// Sends a request that stands alone, and returns the response to it.
    async fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.sent += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {},
                "sampling": {},
                "roots": {},
                "extensions": { "io.modelcontextprotocol/tasks": {} }
            }
        });
        let request = json!({
            "jsonrpc": "2.0", "id": self.sent, "method": method, "params": params
        });
        self.writer.write_all(format!("{request}\n").as_bytes()).await.expect("written");
        loop {
            let line = self.lines.next_line().await.expect("read");
            let message: Value = serde_json::from_str(&line.expect("an open connection")).expect("JSON");
            if message["id"] == self.sent {
                return message;
            }
        }
    }
}

#[tokio::test]
async fn the_fixtures_are_listed_first_and_no_name_twice() {
    let mut client = Client::connect();
    let response = client.request("tools/list", json!({})).await;
    let names: Vec<&str> = response["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names.last(), Some(&"inner_tool"));
    assert!(names[0].starts_with("test_"));
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
}

#[tokio::test]
async fn every_listed_fixture_is_answered() {
    let mut client = Client::connect();
    for tool in tools::all() {
        let response = client.request("tools/call", json!({ "name": tool.name, "arguments": {} })).await;
        assert!(response.get("result").is_some(), "{}: {response}", tool.name);
    }
}

#[tokio::test]
async fn what_is_no_fixture_goes_to_the_wrapped_handler() {
    let mut client = Client::connect();
    let called = client.request("tools/call", json!({ "name": "inner_tool" })).await;
    assert_eq!(called["result"]["content"][0]["text"], "inner: inner_tool");
    let read = client.request("resources/read", json!({ "uri": "inner://page" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "inner");

    let handler = Conformance::new(Inner);
    assert!(handler.get_tool("inner_tool").is_some());
    assert!(handler.get_tool("test_custom_header").is_some());
    assert!(handler.get_tool("unknown").is_none());
}

#[tokio::test]
async fn the_test_scheme_never_reaches_the_wrapped_handler() {
    let mut client = Client::connect();
    for uri in ["test://nothing", "test://template//data"] {
        let response = client.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(response["error"]["code"], -32602);
        assert_eq!(response["error"]["data"]["uri"], uri);
    }
}

#[tokio::test]
async fn a_second_round_continues_the_first() {
    let mut client = Client::connect();
    let tool = "test_input_required_result_request_state";
    let first = client.request("tools/call", json!({ "name": tool })).await;
    assert_eq!(first["result"]["resultType"], "input_required");
    let second = client
        .request(
            "tools/call",
            json!({
                "name": tool,
                "inputResponses": { "confirm": { "action": "accept", "content": { "ok": true } } },
                "requestState": first["result"]["requestState"]
            }),
        )
        .await;
    assert_eq!(second["result"]["content"][0]["text"], "state-ok, confirmed: true");
}

#[test]
fn clones_share_what_outlives_a_request() {
    let handler = Conformance::new(());
    let clone = handler.clone();
    assert!(std::sync::Arc::ptr_eq(&handler.fixtures, &clone.fixtures));
}
