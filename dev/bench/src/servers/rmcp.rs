//! The least server one can write with rmcp, in two configurations.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::Value;

use crate::{answers::Answers, protocol::TOOL};

/// JSON answers without sessions: rmcp's fastest form for these requests.
pub fn json(answers: &Answers) -> Result<Router> {
    let config = StreamableHttpServerConfig::default().with_json_response(true).with_legacy_session_mode(false);
    router(answers, config)
}

/// As rmcp comes: answers as server-sent events.
pub fn default(answers: &Answers) -> Result<Router> {
    router(answers, StreamableHttpServerConfig::default())
}

fn router(answers: &Answers, config: StreamableHttpServerConfig) -> Result<Router> {
    let handler = Handler::new(answers)?;
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(LocalSessionManager::default()), config);
    Ok(Router::new().route_service("/mcp", service))
}

/// Holds the answers in rmcp's own types. A call clones them, which is less
/// than a real tool does, so the comparison errs in rmcp's favour.
#[derive(Clone)]
struct Handler {
    list: Arc<ListToolsResult>,
    search: Arc<CallToolResult>,
}

impl Handler {
    fn new(answers: &Answers) -> Result<Self> {
        let list = serde_json::from_value(answers.list.result()?);
        let search = serde_json::from_value(answers.search.result()?);
        Ok(Self {
            list: Arc::new(list.context("the tool list in rmcp's types")?),
            search: Arc::new(search.context("the search answer in rmcp's types")?),
        })
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::clone(&self.list))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let has_query =
            request.arguments.as_ref().is_some_and(|arguments| arguments.get("query").is_some_and(Value::is_string));
        if request.name != TOOL || !has_query {
            return Err(ErrorData::invalid_params("unknown tool or no query", None));
        }
        Ok(CallToolResult::clone(&self.search).into())
    }

    /// rmcp asks this on every call, to check headers against the schema.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.list.tools.iter().find(|tool| tool.name == name).cloned()
    }
}
