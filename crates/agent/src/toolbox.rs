//! The tools that the agent is given.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::value::RawValue;
use tribune_core::{CallContext, JsonObject, Result, ToolOutput, ToolSpec};

use crate::model::request::function;
use crate::rounds::tokens;

/// What the model may call, for one caller.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// Asked for once a turn: whoever has the same tools for many gives the same set.
    fn tools(&self) -> Arc<ToolSet>;

    /// Checks the arguments and runs a tool as the caller of `cx`.
    async fn call(&self, tool: &str, arguments: JsonObject, cx: &CallContext) -> Result<ToolOutput>;
}

/// Tools, and the words in which the model is shown them: written once, because schemas are long.
#[derive(Debug, Default)]
pub struct ToolSet {
    specs: Vec<ToolSpec>,
    /// `None` if there are no tools.
    definitions: Option<Box<RawValue>>,
}

impl ToolSet {
    /// In the order in which the model is shown them.
    pub fn new(specs: Vec<ToolSpec>) -> Self {
        let functions: Vec<_> = specs.iter().map(function).collect();
        // Names, texts and schemas always make JSON; if they did not, there would be nothing to show.
        let definitions = serde_json::value::to_raw_value(&functions).ok();
        Self {
            definitions: definitions.filter(|_| !specs.is_empty()),
            specs,
        }
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

    /// What the definitions take of the budget.
    pub(crate) fn tokens(&self) -> usize {
        self.definitions()
            .map_or(0, |definitions| tokens(definitions.get().len()))
    }
}
