//! A tool: what a host sees of it, and what it does, in one object.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use crate::context::CallContext;
use crate::error::{Error, ErrorKind, Result};
use crate::scope::Scope;

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
    pub const READ: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
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
    /// How chats and the audit log describe calls; hosts do not see it.
    pub display: CallDisplay,
}

/// How chats and the audit log describe calls of a tool. What is not set follows from the tool's title.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallDisplay {
    /// What a call does while it runs, and what it did: `("Adding a task", "Added a task")`.
    pub progress: Option<(&'static str, &'static str)>,
    /// The list that an answer holds, and what one item of it is called: `("tasks", "task")`.
    pub items: Option<(&'static str, &'static str)>,
    /// The argument, or the field of an item, that names what a call is about, if that is not `id`.
    pub subject: Option<&'static str>,
    /// Its answers are not sources that can be cited, such as the user's own list or something that is gone.
    pub is_uncitable: bool,
}

/// A tool's answer: one JSON object, serialised exactly once.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    json: String,
    text: Option<String>,
    /// How many items the answer holds, for the log.
    pub count: usize,
}

impl ToolOutput {
    /// The answer as a value that serialises to a JSON object.
    pub fn structured(answer: &impl Serialize, count: usize) -> Result<Self> {
        // Room for an ordinary answer, so that it is not copied while it grows.
        let mut json = Vec::with_capacity(8 * 1024);
        serde_json::to_writer(&mut json, answer)
            .map_err(|e| Error::internal("the answer could not be written as JSON").caused_by(e))?;
        let json = String::from_utf8(json).map_err(|e| Error::internal("the answer is not UTF-8").caused_by(e))?;
        debug_assert!(json.starts_with('{'), "an answer is a JSON object");
        Ok(Self { json, text: None, count })
    }

    /// The same, written already: a compact JSON object.
    pub fn from_json(json: String, count: usize) -> Self {
        debug_assert!(json.starts_with('{'), "an answer is a JSON object");
        Self { json, text: None, count }
    }

    /// Text for the model to read instead of the JSON itself.
    #[must_use]
    pub fn with_text(mut self, text: String) -> Self {
        self.text = Some(text);
        self
    }

    /// The JSON object.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The text that replaces the JSON, if the tool gave one.
    pub fn own_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The text item of the answer.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or(&self.json)
    }
}

#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Names of older versions: accepted, never listed.
    fn also_called(&self) -> Vec<String> {
        Vec::new()
    }

    /// Replaces spelling variants with the values of the schema, before arguments are checked.
    fn normalise(&self, _args: &mut JsonObject) {}

    /// Whether it acts for a user: hidden from and refused to anonymous callers. True for every tool that changes
    /// something, or that shows what not everybody with a token may see.
    fn needs_user(&self) -> bool {
        !self.spec().hints.read_only || self.scope() != Scope::Read
    }

    /// What a caller must be allowed to do.
    fn scope(&self) -> Scope {
        if self.spec().hints.read_only { Scope::Read } else { Scope::Admin }
    }

    /// An error code for the beginning of an error's text; `None` for none.
    fn error_code(&self, _kind: ErrorKind) -> Option<&'static str> {
        None
    }

    /// What the chat asks the user before a destructive call runs, by the name of what it acts on: `Delete the task
    /// "Buy milk"?`. It is asked again when the user has agreed, and the call runs only if the question is the same.
    /// `None`: the tool's title and the arguments are the question. An error means that the call cannot succeed.
    async fn question(&self, _args: &JsonObject, _cx: &CallContext) -> Result<Option<String>> {
        Ok(None)
    }

    /// `args` have been checked against the input schema.
    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput>;
}
