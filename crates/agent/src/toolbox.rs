//! The tools of the agent.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tribune_core::{CallContext, JsonObject, Result, ToolOutput, ToolSpec};

use crate::text::tokens;

/// What the model may call, for one caller.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// Called once a turn; may return a shared set.
    fn tools(&self) -> Arc<ToolSet>;

    /// The arguments as the tool gets them: two calls with the same are the same call.
    fn prepared(&self, tool: &str, arguments: JsonObject) -> JsonObject;

    /// Checks a destructive call, and what to ask the user about it, as [`tribune_core::Tool::question`].
    async fn question(&self, tool: &str, arguments: JsonObject, cx: &CallContext) -> Result<Option<String>>;

    /// Checks the arguments and runs a tool as the caller of `cx`.
    async fn call(&self, tool: &str, arguments: JsonObject, cx: &CallContext) -> Result<ToolOutput>;
}

/// Tools, and their definitions for the model: serialised once, because schemas are long.
#[derive(Debug, Default)]
pub struct ToolSet {
    specs: Vec<ToolSpec>,
    /// `None` if there are no tools.
    definitions: Option<Box<RawValue>>,
}

impl ToolSet {
    /// In the order of the definitions.
    pub fn new(specs: Vec<ToolSpec>) -> Self {
        let functions: Vec<_> = specs.iter().map(function).collect();
        // Names, texts and schemas always serialise.
        let definitions = serde_json::value::to_raw_value(&functions).ok();
        Self { definitions: definitions.filter(|_| !specs.is_empty()), specs }
    }

    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    pub(crate) fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.specs.iter().find(|spec| spec.name == name)
    }

    pub(crate) fn definitions(&self) -> Option<&RawValue> {
        self.definitions.as_deref()
    }

    /// The size of the definitions.
    pub(crate) fn tokens(&self) -> usize {
        self.definitions().map_or(0, |definitions| tokens(definitions.get().len()))
    }
}

/// A tool as the model sees it. Not `strict`: that supports only a part of JSON Schema.
fn function(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.input_schema,
        },
    })
}
