//! The MCP methods, on rmcp, for every transport.

use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities,
    ServerConfig, SubscriptionFilter,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::mpsc;
use tribune_core::{CallContext, Principal, Progress, ProgressSink, Scopes};

use super::{LIST_TTL_MS, MODERN, render};
use crate::identity::Caller;
use crate::service::{Profile, Service, call};

/// One profile of the service, as rmcp sees it.
#[derive(Clone)]
pub struct Handler {
    pub service: Arc<Service>,
    pub profile: Arc<Profile>,
    /// The principal of requests that carry no [`Caller`]: over standard input, the person at this machine.
    pub default_principal: Principal,
}

impl Handler {
    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let parts = context.extensions.get::<Parts>();
        let caller = parts.and_then(|parts| parts.extensions.get::<Caller>());
        caller.cloned().unwrap_or_else(|| Caller {
            principal: self.default_principal.clone(),
            scopes: Scopes::ALL,
            ..Caller::anonymous(Arc::from("local"))
        })
    }

    fn instructions(&self, context: &RequestContext<RoleServer>) -> String {
        let caller = self.caller(context);
        self.profile.state_for(&caller).visible_to(&caller.principal).instructions.clone()
    }

    fn call_context(&self, context: &RequestContext<RoleServer>) -> CallContext {
        let mut cx = self.service.call_context(&self.caller(context));
        cx.cancel = context.ct.clone();
        if let Some(token) = context.meta.get_progress_token() {
            cx.progress = Progress::to(Arc::new(Notifications::new(context.peer.clone(), token)));
        }
        cx
    }
}

/// The endpoint that a request came to, without the profile.
fn endpoint(context: &RequestContext<RoleServer>) -> &'static str {
    let parts = context.extensions.get::<Parts>();
    if parts.is_some_and(|parts| parts.uri.path().starts_with("/sse")) { "/sse" } else { "/mcp" }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= MODERN)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        let mut info = ServerConfig::new(capabilities.enable_tools().enable_resources().enable_prompts().build());
        info.server_info = render::implementation();
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        result.instructions = Some(self.instructions(&context));
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut result =
            DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), self.get_info());
        result.instructions = Some(self.instructions(&context));
        result.ttl_ms = LIST_TTL_MS;
        result.cache_scope = render::cache_scope(&self.profile.state().registry);
        Ok(result)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context);
        let state = self.profile.state_for(&caller);
        let visible = state.visible_to(&caller.principal);
        Ok(render::list_tools(&visible.registry, is_modern(&context), &self.service.settings))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context);
        let state = self.profile.state_for(&caller);
        let Some(tool) = state.registry.lookup(&request.name) else {
            let visible = state.visible_to(&caller.principal);
            let known: Vec<&str> = visible.registry.names().collect();
            let message = format!("Unknown tool `{}`; this endpoint has: {}", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let modern = is_modern(&context);
        let cx = self.call_context(&context);
        let outcome = call::run(&self.service, &tool, request.arguments.unwrap_or_default(), &cx).await;
        let challenge = self.service.sign_in_for(endpoint(&context), &self.profile, &**tool.tool(), &cx);
        Ok(render::call_result(&outcome, modern, challenge.as_ref()).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut list = ListResourcesResult::default().with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public);
        list.meta = is_modern(&context).then(render::server_meta);
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut list =
            ListResourceTemplatesResult::default().with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public);
        list.meta = is_modern(&context).then(render::server_meta);
        Ok(list)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut list = ListPromptsResult::default().with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public);
        list.meta = is_modern(&context).then(render::server_meta);
        Ok(list)
    }

    /// Clients learn of changes through the TTL of lists: no subscription is accepted, so that none stays open.
    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        None
    }

    /// rmcp calls this for every request that it cannot parse, also for methods it knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let wanted = match request.method.as_str() {
            "tools/call" => r#"{"name": string, "arguments"?: object}"#,
            "tools/list" | "resources/list" | "prompts/list" => r#"{"cursor"?: string}"#,
            "resources/read" => r#"{"uri": string}"#,
            "prompts/get" => r#"{"name": string, "arguments"?: object}"#,
            unknown => {
                let message = format!("Unknown method `{unknown}`");
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
            }
        };
        let message = format!("Invalid params for {}: send {wanted}", request.method);
        Err(ErrorData::invalid_params(message, None))
    }
}

/// Progress of one call as notifications to its caller.
struct Notifications {
    token: ProgressToken,
    waiting: mpsc::Sender<ProgressNotificationParam>,
}

impl Notifications {
    /// Notifications that may wait for a slow client; further ones are dropped, because later ones say more.
    const MAX_WAITING: usize = 16;

    fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        let (waiting, mut reports) = mpsc::channel(Self::MAX_WAITING);
        tokio::spawn(async move {
            while let Some(report) = reports.recv().await {
                // A client that left needs no progress.
                drop(peer.notify_progress(report).await);
            }
        });
        Self { token, waiting }
    }
}

impl ProgressSink for Notifications {
    /// Tools report from any thread and must not wait.
    fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let mut progress = ProgressNotificationParam::new(self.token.clone(), done);
        progress.total = total;
        progress.message = message.map(str::to_owned);
        drop(self.waiting.try_send(progress));
    }
}
