//! List-changed notifications, triggered by a tool call and delivered to subscribers.

use rmcp::{
    RoleServer,
    model::{CallToolRequestParams, CallToolResult, ContentBlock, ErrorData, SubscriptionFilter, Tool},
    service::{RequestContext, SubscriptionSendError, SubscriptionSink},
};
use tokio::sync::broadcast;

use super::{negotiates_per_request, resources, tools};

/// How many changes a slow subscriber may fall behind before it misses some.
const BACKLOG: usize = 16;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tools::without_arguments("test_trigger_tool_change", "Announces that the list of tools changed"),
        tools::without_arguments("test_trigger_prompt_change", "Announces that the list of prompts changed"),
    ]
}

/// A list whose change is announced.
///
/// The lists themselves stay as they are: the notification only invites a client to list again,
/// and a fixture list that differs between two scenarios would disturb the ones that compare it.
#[derive(Clone, Copy, Debug)]
enum ListChange {
    Tools,
    Prompts,
}

/// Carries announcements from the call that triggers them to every open subscription.
#[derive(Debug)]
pub(super) struct ListChanges(broadcast::Sender<ListChange>);

impl Default for ListChanges {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl ListChanges {
    pub(super) async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let (change, list) = match request.name.as_ref() {
            "test_trigger_tool_change" => (ListChange::Tools, "tools"),
            "test_trigger_prompt_change" => (ListChange::Prompts, "prompts"),
            other => return Err(tools::unanswered(other)),
        };
        // Fails only when nobody listens, which is no reason to fail the call.
        let _ = self.0.send(change);
        if !negotiates_per_request(context) {
            notify_caller(context, change).await;
        }
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("Announced a change of the list of {list}"))]))
    }

    /// Delivers announcements to one subscription until it ends.
    ///
    /// Listens from the moment of the call, not from the first poll, so that a change triggered
    /// right after the acknowledgement is not lost.
    pub(super) fn forward(&self, sink: SubscriptionSink) -> impl Future<Output = ()> + use<> {
        let mut announcements = self.0.subscribe();
        async move {
            loop {
                let sent = match announcements.recv().await {
                    Ok(ListChange::Tools) => sink.notify_tool_list_changed().await,
                    Ok(ListChange::Prompts) => sink.notify_prompt_list_changed().await,
                    Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return,
                };
                match sent {
                    Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                    Err(error) => {
                        tracing::debug!(%error, "subscription ended");
                        return;
                    }
                }
            }
        }
    }
}

/// Revisions with a handshake have no subscriptions; their notifications go to the connection.
async fn notify_caller(context: &RequestContext<RoleServer>, change: ListChange) {
    let sent = match change {
        ListChange::Tools => context.peer.notify_tool_list_changed().await,
        ListChange::Prompts => context.peer.notify_prompt_list_changed().await,
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "list change not delivered");
    }
}

/// What the fixtures can notify about, together with what the wrapped handler accepts.
pub(super) fn accepted_filter(requested: &SubscriptionFilter, inner: Option<SubscriptionFilter>) -> SubscriptionFilter {
    let inner = inner.unwrap_or_default();
    let mut accepted = SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().build();
    accepted.resources_list_changed = inner.resources_list_changed;
    let uris: Vec<String> = requested
        .resource_subscriptions
        .iter()
        .flatten()
        .filter(|uri| {
            resources::exists(uri)
                || inner.resource_subscriptions.as_ref().is_some_and(|accepted| accepted.contains(uri))
        })
        .cloned()
        .collect();
    accepted.resource_subscriptions = (!uris.is_empty()).then_some(uris);
    accepted
}
