//! One tool of another server as one of ours.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tribune_core::{CallContext, Error, ErrorKind, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use crate::answer;
use crate::catalogue::Offer;
use crate::server::{Server, Status};
use crate::words::line;

const MAX_ERROR_CHARS: usize = 2_000;

pub(crate) struct UpstreamTool {
    spec: ToolSpec,
    /// What the server calls it.
    own_name: String,
    server: Arc<Server>,
}

/// Why there is no answer, as far as time goes.
enum Ended {
    Cancelled,
    OutOfTime,
    TooSlow,
}

impl UpstreamTool {
    pub(crate) fn new(server: Arc<Server>, offer: &Offer, name: String) -> Self {
        let mut output_schema = JsonObject::new();
        output_schema.insert("type".to_owned(), Value::from("object"));
        Self {
            spec: ToolSpec {
                name,
                title: offer.title.clone(),
                description: offer.description.clone(),
                input_schema: offer.input_schema.clone(),
                output_schema,
                hints: offer.hints,
                icon: None,
                aliases: Vec::new(),
            },
            own_name: offer.own_name.clone(),
            server,
        }
    }

    /// Waits for the answer, the caller's end, or the end of patience. A future that is dropped here tells
    /// the server that its work is no longer wanted.
    async fn ask(
        &self,
        peer: &Peer<RoleClient>,
        args: JsonObject,
        cx: &CallContext,
    ) -> Result<Result<CallToolResponse, ServiceError>, Ended> {
        let left = cx.time_left(Instant::now());
        let patience = self.server.spec.timeout;
        let params = CallToolRequestParams::new(self.own_name.clone()).with_arguments(args);
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(Ended::Cancelled),
            answer = peer.call_tool_once(params) => Ok(answer),
            () = tokio::time::sleep(left.min(patience)) => {
                Err(if left <= patience { Ended::OutOfTime } else { Ended::TooSlow })
            }
        }
    }

    fn ended(&self, why: &Ended) -> Error {
        if matches!(why, Ended::TooSlow) {
            // Slow work or a server that hangs: whoever looks after it finds out.
            self.server.doubt.notify_one();
        }
        let server = &self.server.spec.name;
        match why {
            Ended::Cancelled => Error::new(ErrorKind::Cancelled, "the caller cancelled the call"),
            Ended::OutOfTime => Error::new(
                ErrorKind::DeadlineExceeded,
                format!("server `{server}` did not answer before the call ran out of time; ask for less"),
            ),
            Ended::TooSlow => Error::unavailable(format!(
                "server `{server}` did not answer within {}; try again later or ask for less",
                shown(self.server.spec.timeout)
            )),
        }
    }

    fn refused(&self, error: ServiceError) -> Error {
        let server = &self.server.spec.name;
        match error {
            ServiceError::McpError(said) => self.said_no(&said),
            ServiceError::UnexpectedResponse => Error::unavailable(format!(
                "server `{server}` answered with something that is no result; tell its operator"
            )),
            trouble => {
                // Whoever looks after the server finds out whether it is still there.
                self.server.doubt.notify_one();
                Error::unavailable(format!(
                    "server `{server}` did not answer: the connection failed; try again in a moment"
                ))
                .caused_by(trouble)
            }
        }
    }

    fn said_no(&self, said: &ErrorData) -> Error {
        let (server, tool) = (&self.server.spec.name, &self.own_name);
        let words = line(&said.message, MAX_ERROR_CHARS);
        let tool = line(tool, 60);
        match said.code {
            ErrorCode::INVALID_PARAMS => {
                Error::invalid_argument(format!("server `{server}` did not take the call of `{tool}`: {words}"))
            }
            _ => Error::unavailable(format!("server `{server}` could not run `{tool}`: {words}")),
        }
    }

    fn not_connected(&self) -> Error {
        let server = &self.server.spec.name;
        match self.server.status() {
            Status::Connecting => {
                Error::unavailable(format!("server `{server}` is not connected yet; try again in a moment"))
            }
            _ => Error::unavailable(format!(
                "server `{server}` is not there at the moment; it is being connected again, try later"
            )),
        }
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
        let _under_way = self.server.call_begins();
        let server = &self.server.spec.name;
        let response = self
            .ask(&peer, args, cx)
            .await
            .map_err(|why| self.ended(&why))?
            .map_err(|error| self.refused(error))?;
        match response {
            CallToolResponse::Complete(result) => answer::read(server, &line(&self.own_name, 60), result),
            CallToolResponse::InputRequired(_) => Err(Error::unavailable(format!(
                "`{}` of server `{server}` wants to ask the user something, which is not possible here; \
                 call it with everything it needs",
                line(&self.own_name, 60)
            ))),
            _ => Err(Error::unavailable(format!(
                "`{}` of server `{server}` wants to answer later, which is not possible here",
                line(&self.own_name, 60)
            ))),
        }
    }
}

fn shown(timeout: Duration) -> String {
    if timeout.as_secs() == 0 {
        format!("{} ms", timeout.as_millis())
    } else {
        format!("{} s", timeout.as_secs())
    }
}
