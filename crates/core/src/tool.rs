//! A tool: what a host sees of it, and what it does, in one object.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::context::CallContext;
use crate::error::{Error, Result};

pub type JsonObject = serde_json::Map<String, Value>;

/// What a tool does to the world. All four are stated for every tool: a missing hint makes
/// some hosts ask before each call and others refuse the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

impl Hints {
    /// Reads a closed collection: the same call gives the same answer until the data changes.
    pub const READ: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };
}

/// Everything a host learns about a tool before calling it.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    pub name: String,
    pub title: String,
    /// For the model: the decisive part first.
    pub description: String,
    pub input_schema: JsonObject,
    pub output_schema: JsonObject,
    pub hints: Hints,
    /// A `data:` or `https:` image address.
    pub icon: Option<String>,
    /// Other names that callers use for an argument: `(alias, argument)`. Renamed before validation.
    pub aliases: Vec<(&'static str, &'static str)>,
}

/// A tool's answer: one JSON object, serialised exactly once.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    structured: Box<RawValue>,
    text: Option<String>,
    /// How many things the answer holds, for the log line.
    pub count: usize,
}

impl ToolOutput {
    /// The answer as a value that serialises to a JSON object.
    pub fn structured(answer: &impl Serialize, count: usize) -> Result<Self> {
        let structured = serde_json::value::to_raw_value(answer)
            .map_err(|e| Error::internal("the answer could not be written as JSON").caused_by(e))?;
        debug_assert!(structured.get().starts_with('{'), "an answer is a JSON object");
        Ok(Self {
            structured,
            text: None,
            count,
        })
    }

    /// Text for the model to read instead of the JSON itself.
    #[must_use]
    pub fn with_text(mut self, text: String) -> Self {
        self.text = Some(text);
        self
    }

    /// The JSON object.
    pub fn json(&self) -> &str {
        self.structured.get()
    }

    pub fn raw(&self) -> &RawValue {
        &self.structured
    }

    /// The text that stands in for the JSON, if the tool gave one.
    pub fn own_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// What the one text item of the answer says.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_else(|| self.structured.get())
    }
}

#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// `args` have been checked against the input schema.
    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput>;
}
