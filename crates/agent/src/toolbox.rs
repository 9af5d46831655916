//! The tools that the agent is given.

use async_trait::async_trait;
use tribune_core::{CallContext, JsonObject, Result, ToolOutput, ToolSpec};

/// What the model may call, for one caller.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// In the order in which the model is shown them.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Checks the arguments and runs a tool as the caller of `cx`.
    async fn call(&self, tool: &str, arguments: JsonObject, cx: &CallContext) -> Result<ToolOutput>;
}
