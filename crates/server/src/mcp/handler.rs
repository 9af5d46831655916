//! What an MCP server answers, on rmcp, for every transport.

use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities,
    ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tribune_core::{CallContext, Principal, Progress, ProgressSink};

use super::{LIST_TTL_MS, MODERN, render};
use crate::call;
use crate::http::callers::Caller;
use crate::profile::Profile;
use crate::service::Service;

/// One profile of the service, as rmcp sees it.
#[derive(Clone)]
pub struct Handler {
    service: Arc<Service>,
    profile: Arc<Profile>,
    /// Who sends what says nothing of its sender.
    otherwise: Principal,
}

impl Handler {
    pub fn new(service: Arc<Service>, profile: Arc<Profile>) -> Self {
        Self {
            service,
            profile,
            otherwise: Principal::Anonymous,
        }
    }

    /// For standard input, where it can only be the person at this machine.
    #[must_use]
    pub fn local(mut self) -> Self {
        self.otherwise = Principal::Local;
        self
    }

    /// Who sent a request.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let parts = context.extensions.get::<Parts>();
        let caller = parts.and_then(|parts| parts.extensions.get::<Caller>());
        caller.cloned().unwrap_or_else(|| Caller {
            principal: self.otherwise.clone(),
            correlation_id: Arc::from("local"),
        })
    }

    fn call_context(&self, context: &RequestContext<RoleServer>) -> CallContext {
        let caller = self.caller(context);
        let deadline = self.service.clock.monotonic() + self.service.settings.call_timeout;
        let mut cx = CallContext::new(caller.principal, deadline);
        cx.cancel = context.ct.clone();
        cx.correlation_id = caller.correlation_id;
        if let Some(token) = context.meta.get_progress_token() {
            cx.progress = Progress::to(Arc::new(Notifications {
                peer: context.peer.clone(),
                token,
                runtime: tokio::runtime::Handle::current(),
            }));
        }
        cx
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= MODERN)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_resources()
                .enable_prompts()
                .build(),
        );
        info.server_info = render::implementation();
        info.instructions = Some(self.profile.state().instructions.clone());
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        let state = self.profile.state();
        let shown = state.shown_to(&self.caller(&context).principal);
        result.instructions = Some(shown.instructions.clone());
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut result =
            DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), self.get_info());
        let state = self.profile.state();
        let shown = state.shown_to(&self.caller(&context).principal);
        result.instructions = Some(shown.instructions.clone());
        result.ttl_ms = LIST_TTL_MS;
        result.cache_scope = if state.registry.depends_on_caller {
            CacheScope::Private
        } else {
            CacheScope::Public
        };
        Ok(result)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let state = self.profile.state();
        let shown = state.shown_to(&self.caller(&context).principal);
        Ok(render::list_tools(&shown.registry, is_modern(&context)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let state = self.profile.state();
        let Some(tool) = state.registry.lookup(&request.name) else {
            let shown = state.shown_to(&self.caller(&context).principal);
            let known: Vec<&str> = shown.registry.names().collect();
            let message = format!(
                "unknown tool `{}`; this endpoint has: {}",
                request.name,
                known.join(", ")
            );
            return Err(ErrorData::invalid_params(message, None));
        };
        let modern = is_modern(&context);
        let cx = self.call_context(&context);
        let outcome = call::run(&self.service, &tool, request.arguments.unwrap_or_default(), &cx).await;
        Ok(render::call_result(&outcome, modern).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut list = ListResourcesResult::default().with_ttl_ms(LIST_TTL_MS);
        list.cache_scope = Some(CacheScope::Public);
        list.meta = is_modern(&context).then(render::server_meta);
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut list = ListResourceTemplatesResult::default().with_ttl_ms(LIST_TTL_MS);
        list.cache_scope = Some(CacheScope::Public);
        list.meta = is_modern(&context).then(render::server_meta);
        Ok(list)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut list = ListPromptsResult::default().with_ttl_ms(LIST_TTL_MS);
        list.cache_scope = Some(CacheScope::Public);
        list.meta = is_modern(&context).then(render::server_meta);
        Ok(list)
    }

    /// Nothing here changes while a client listens that its list TTL would not tell it: no
    /// subscription is honoured, and none may hang open.
    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        None
    }

    /// rmcp brings requests here that it cannot read, also those of methods it knows.
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
                let message = format!("there is no method `{unknown}` here");
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
            }
        };
        let message = format!("the params of {} do not fit: send {wanted}", request.method);
        Err(ErrorData::invalid_params(message, None))
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {}
}

/// Progress of one call as notifications to its caller.
struct Notifications {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    runtime: tokio::runtime::Handle,
}

impl ProgressSink for Notifications {
    fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let mut progress = ProgressNotificationParam::new(self.token.clone(), done);
        progress.total = total;
        progress.message = message.map(str::to_owned);
        let peer = self.peer.clone();
        // Tools report from any thread; a notification that cannot be delivered is not worth failing for.
        self.runtime
            .spawn(async move { drop(peer.notify_progress(progress).await) });
    }
}
