//! Which fixture tools exist, and which group of fixtures answers each.

use std::sync::LazyLock;

use rmcp::model::{ErrorData, JsonObject, Tool};
use serde_json::Value;

use super::{changes, client, content, input, tasks};

/// A family of fixtures that share the machinery they need.
#[derive(Clone, Copy, Debug)]
pub(super) enum Group {
    /// Answers at once from constants, possibly with notifications on the way.
    Content,
    /// Sends a request back to the client while the call is open.
    Client,
    /// Ends a round by asking the client for input.
    Input,
    /// Hands the work to the tasks extension.
    Tasks,
    /// Announces that a list changed.
    Changes,
}

static CATALOGUE: LazyLock<Vec<(Group, Tool)>> = LazyLock::new(|| {
    [
        (Group::Content, content::tools()),
        (Group::Client, client::tools()),
        (Group::Input, input::tools()),
        (Group::Tasks, tasks::tools()),
        (Group::Changes, changes::tools()),
    ]
    .into_iter()
    .flat_map(|(group, tools)| tools.into_iter().map(move |tool| (group, tool)))
    .collect()
});

/// Every fixture tool, always in the same order.
pub(super) fn all() -> impl Iterator<Item = Tool> {
    CATALOGUE.iter().map(|(_, tool)| tool.clone())
}

/// The definition of one fixture tool.
pub(super) fn named(name: &str) -> Option<Tool> {
    entry(name).map(|(_, tool)| tool.clone())
}

/// The group that answers calls to `name`, or `None` if it is no fixture.
pub(super) fn group_of(name: &str) -> Option<Group> {
    entry(name).map(|(group, _)| *group)
}

fn entry(name: &str) -> Option<&'static (Group, Tool)> {
    CATALOGUE.iter().find(|(_, tool)| tool.name == name)
}

/// A tool that takes no arguments.
pub(super) fn without_arguments(name: &'static str, description: &'static str) -> Tool {
    Tool::new(name, description, rmcp::object!({ "type": "object", "properties": {} }))
}

/// The text argument `name`, if the caller sent one.
pub(super) fn text_argument<'a>(arguments: Option<&'a JsonObject>, name: &str) -> Option<&'a str> {
    arguments?.get(name)?.as_str()
}

/// The error for a tool a group lists but does not answer.
pub(super) fn unanswered(name: &str) -> ErrorData {
    ErrorData::internal_error("the fixture is listed but has no answer", Some(Value::from(name)))
}
