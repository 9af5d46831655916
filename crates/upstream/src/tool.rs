//! Calls one tool of another server.

#![allow(clippy::disallowed_methods, reason = "a call ends at its deadline")]

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tribune_core::{CallContext, CallDisplay, Error, ErrorKind, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use crate::answer;
use crate::catalogue::ToolListing;
use crate::sanitize::single_line;
use crate::server::{Server, Status};

const MAX_ERROR_CHARS: usize = 2_000;

pub(crate) struct UpstreamTool {
    spec: ToolSpec,
    /// The server's own name for it.
    remote_name: String,
    server: Arc<Server>,
}

impl UpstreamTool {
    pub(crate) fn new(server: Arc<Server>, listing: &ToolListing, name: String) -> Self {
        let mut output_schema = JsonObject::new();
        output_schema.insert("type".to_owned(), Value::from("object"));
        Self {
            spec: ToolSpec {
                name,
                title: listing.title.clone(),
                description: listing.description.clone(),
                input_schema: listing.input_schema.clone(),
                output_schema,
                hints: listing.hints,
                icon: None,
                display: CallDisplay::default(),
                aliases: Vec::new(),
            },
            remote_name: listing.remote_name.clone(),
            server,
        }
    }

    /// Waits for the answer, cancellation, the deadline or the timeout. Dropping rmcp's future cancels the request at
    /// the server.
    async fn send(&self, peer: &Peer<RoleClient>, args: JsonObject, cx: &CallContext) -> Result<CallToolResponse> {
        let server = &self.server.spec;
        let left = cx.time_left(Instant::now());
        let params = CallToolRequestParams::new(self.remote_name.clone()).with_arguments(args);
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the caller cancelled the call")),
            answer = peer.call_tool_once(params) => answer.map_err(|error| self.failed(error)),
            () = tokio::time::sleep(left.min(server.timeout)) => Err(if left <= server.timeout {
                let name = &server.name;
                let message = format!("server `{name}` did not answer before the call's deadline; ask for less");
                Error::new(ErrorKind::DeadlineExceeded, message)
            } else {
                // The supervisor finds out whether the server hangs or only this call is slow.
                self.server.suspect.notify_one();
                Error::unavailable(format!(
                    "server `{}` did not answer within {} s; try again later or ask for less",
                    server.name,
                    server.timeout.as_secs()
                ))
            }),
        }
    }

    fn failed(&self, error: ServiceError) -> Error {
        let server = &self.server.spec.name;
        match error {
            ServiceError::McpError(error) => self.rejected(&error),
            ServiceError::UnexpectedResponse => {
                Error::unavailable(format!("server `{server}` sent an invalid result; tell its operator"))
            }
            error => {
                // The supervisor finds out whether the server is gone.
                self.server.suspect.notify_one();
                Error::unavailable(format!(
                    "server `{server}` did not answer: the connection failed; try again in a moment"
                ))
                .caused_by(error)
            }
        }
    }

    fn rejected(&self, error: &ErrorData) -> Error {
        let (server, tool) = (&self.server.spec.name, self.shown_name());
        let message = single_line(&error.message, MAX_ERROR_CHARS);
        match error.code {
            ErrorCode::INVALID_PARAMS => {
                Error::invalid_argument(format!("server `{server}` rejected the call of `{tool}`: {message}"))
            }
            _ => Error::unavailable(format!("server `{server}` could not run `{tool}`: {message}")),
        }
    }

    /// The remote name, safe to show.
    fn shown_name(&self) -> String {
        single_line(&self.remote_name, 60)
    }

    fn not_connected(&self) -> Error {
        let server = &self.server.spec.name;
        Error::unavailable(match self.server.status() {
            Status::Connecting => format!("server `{server}` is not connected yet; try again in a moment"),
            _ => format!("server `{server}` is not connected; Tribune is reconnecting, try again later"),
        })
    }
}

#[async_trait]
impl Tool for UpstreamTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        cx.check(Instant::now())?;
        let peer = self.server.peer().ok_or_else(|| self.not_connected())?;
        let _in_progress = self.server.calls.token();
        let (server, tool) = (&self.server.spec.name, self.shown_name());
        match self.send(&peer, args, cx).await? {
            CallToolResponse::Complete(result) => answer::read(server, &tool, result),
            CallToolResponse::InputRequired(_) => Err(Error::unavailable(format!(
                "`{tool}` of server `{server}` wants to ask the user something, which is not possible here; \
                 call it with everything it needs"
            ))),
            _ => Err(Error::unavailable(format!(
                "`{tool}` of server `{server}` wants to answer later, which is not possible here"
            ))),
        }
    }
}
