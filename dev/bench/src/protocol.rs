//! The two workloads, as the bytes that go over the wire.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// The MCP revision every request speaks.
pub const VERSION: &str = "2026-07-28";
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const TOOLS_LIST: &str = "tools/list";
pub const TOOLS_CALL: &str = "tools/call";
/// The one tool the search workload calls.
pub const TOOL: &str = "search";
const REPORT_TOOL: &str = "get_report";

/// What is asked of a server during one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    ToolsList,
    /// The same few queries again and again.
    Search,
    /// More different queries than any cache of answers holds.
    NewSearch,
}

impl Workload {
    pub const ALL: [Self; 3] = [Self::ToolsList, Self::Search, Self::NewSearch];

    pub fn label(self) -> &'static str {
        match self {
            Self::ToolsList => "tools/list",
            Self::Search => "tools/call search, 64 queries",
            Self::NewSearch => "tools/call search, new queries",
        }
    }

    /// Complete HTTP requests for this workload, written once and then only
    /// copied to the socket, so that the load generator spends nothing on them.
    pub fn requests(self, addr: SocketAddr, queries: &[String]) -> Vec<Vec<u8>> {
        match self {
            Self::ToolsList => vec![list_request(addr)],
            Self::Search => search_requests(addr, queries),
            Self::NewSearch => search_requests(addr, &recombined(queries)),
        }
    }
}

fn search_requests(addr: SocketAddr, queries: &[String]) -> Vec<Vec<u8>> {
    queries.iter().enumerate().map(|(index, query)| search_request(addr, index + 1, query)).collect()
}

/// Every two words of the queries, together with a third: thousands of queries over the same words.
fn recombined(queries: &[String]) -> Vec<String> {
    const MOST: usize = 12_000;
    let words: Vec<&str> = queries.iter().flat_map(|query| query.split_whitespace()).collect();
    let pairs = words.iter().enumerate().flat_map(|(at, first)| {
        let third = words[(at * 7 + 3) % words.len()];
        words[at + 1..].iter().map(move |second| format!("{first} {second} {third}"))
    });
    pairs.take(MOST).collect()
}

pub fn list_request(addr: SocketAddr) -> Vec<u8> {
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": TOOLS_LIST,
        "params": { "_meta": meta() },
    });
    post(addr, TOOLS_LIST, None, &body)
}

pub fn search_request(addr: SocketAddr, id: usize, query: &str) -> Vec<u8> {
    let body = json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": TOOLS_CALL,
        "params": {
            "name": TOOL,
            "arguments": { "query": query },
            "_meta": meta(),
        },
    });
    post(addr, TOOLS_CALL, Some(TOOL), &body)
}

pub fn report_request(addr: SocketAddr, symbol: &str) -> Vec<u8> {
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": TOOLS_CALL,
        "params": {
            "name": REPORT_TOOL,
            "arguments": { "symbol": symbol },
            "_meta": meta(),
        },
    });
    post(addr, TOOLS_CALL, Some(REPORT_TOOL), &body)
}

pub fn ready_request(addr: SocketAddr) -> Vec<u8> {
    format!("GET /readyz HTTP/1.1\r\nHost: {addr}\r\n\r\n").into_bytes()
}

fn meta() -> Value {
    json!({ META_VERSION: VERSION, META_CAPABILITIES: {} })
}

fn post(addr: SocketAddr, method: &str, name: Option<&str>, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let name = name.map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\n\
         Host: {addr}\r\n\
         Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: {VERSION}\r\n\
         Mcp-Method: {method}\r\n\
         {name}\
         Content-Length: {length}\r\n\
         \r\n\
         {body}"
    )
    .into_bytes()
}
