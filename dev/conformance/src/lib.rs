//! The fixtures that the official MCP conformance suite calls by name.
//!
//! The suite checks a server through tools, resources and prompts that every SDK's conformance
//! server offers under agreed names. [`Conformance`] adds them to any handler, so that the suite
//! runs against the transport, the middleware and the handler that are really served, and not
//! against a server built for the test.

#![allow(clippy::disallowed_methods, reason = "benchmarks and fixtures use the machine's clock")]

mod board;
mod changes;
mod client;
mod content;
mod input;
mod logging;
mod media;
mod prompts;
mod resources;
mod rounds;
mod tasks;
mod tools;
mod wrapper;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, ErrorData, PromptsCapability, ResourcesCapability, ServerCapabilities,
        TASKS_EXTENSION_ID, ToolsCapability,
    },
    service::RequestContext,
};

use self::{board::TaskBoard, changes::ListChanges, logging::LogThreshold, rounds::StateSeal, tools::Group};

/// A handler with the conformance fixtures in front of it.
///
/// Requests for a fixture are answered here, everything else goes to the wrapped handler, and
/// tools list the fixtures first, other lists the wrapped handler's entries.
///
/// Build one and clone it for every session and every stateless request: clones share the tasks,
/// the open subscriptions and the key that signs request states, all of which have to outlive the
/// request that created them. Only the log level a client sets stays with its own connection.
#[derive(Debug)]
pub struct Conformance<H> {
    inner: H,
    fixtures: Arc<Fixtures>,
    log: LogThreshold,
}

/// What outlives a single connection.
#[derive(Debug, Default)]
struct Fixtures {
    seal: StateSeal,
    board: TaskBoard,
    changes: ListChanges,
}

impl<H> Conformance<H> {
    /// Puts a fresh set of fixtures in front of `inner`.
    pub fn new(inner: H) -> Self {
        Self { inner, fixtures: Arc::default(), log: LogThreshold::default() }
    }

    /// Calls a fixture tool.
    async fn call_fixture(
        &self,
        group: Group,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Fixtures { seal, board, changes } = self.fixtures.as_ref();
        match group {
            Group::Content => content::call(request, context, &self.log).await.map(Into::into),
            Group::Client => client::call(request, context).await.map(Into::into),
            Group::Input => input::call(request, context, seal),
            Group::Tasks => tasks::call(request, context, board).await,
            Group::Changes => changes.call(request, context).await.map(Into::into),
        }
    }
}

impl<H: Clone> Clone for Conformance<H> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), fixtures: Arc::clone(&self.fixtures), log: LogThreshold::default() }
    }
}

/// Adds what the fixtures can do to what the wrapped handler can do.
fn advertise(capabilities: &mut ServerCapabilities) {
    capabilities.tools.get_or_insert_with(ToolsCapability::default).list_changed = Some(true);
    capabilities.prompts.get_or_insert_with(PromptsCapability::default).list_changed = Some(true);
    capabilities.resources.get_or_insert_with(ResourcesCapability::default).subscribe = Some(true);
    capabilities.logging.get_or_insert_default();
    capabilities.completions.get_or_insert_default();
    capabilities.extensions.get_or_insert_default().entry(TASKS_EXTENSION_ID.to_owned()).or_default();
}

/// Whether the client speaks a revision without a handshake, where each request stands alone.
fn negotiates_per_request(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}
