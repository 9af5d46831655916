//! Routes every request either to a fixture or to the wrapped handler.
#![expect(deprecated, reason = "resource subscriptions and log levels exist on the revisions with a handshake")]

use std::borrow::Cow;

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam, CompleteRequestParams,
        CompleteResult, CustomNotification, CustomRequest, CustomResult, DiscoverResult, ErrorData,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, InitializeRequestParams,
        InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use super::{Conformance, advertise, changes, prompts, resources, tools};

impl<H: ServerHandler> Conformance<H> {
    /// Whether a task request is for the wrapped handler. Without tasks of its own it would call
    /// the method unknown, where an unknown task is meant.
    fn is_inner_task(&self, id: &str) -> bool {
        !self.fixtures.board.contains(id) && self.inner.get_info().capabilities.supports_tasks()
    }
}

impl<H: ServerHandler> ServerHandler for Conformance<H> {
    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.inner.ping(context).await
    }

    fn get_info(&self) -> ServerConfig {
        let mut info = self.inner.get_info();
        advertise(&mut info.capabilities);
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.inner.initialize(request, context).await?;
        advertise(&mut result.capabilities);
        Ok(result)
    }

    fn negotiate_initialize(&self, request: &InitializeRequestParams) -> Result<InitializeResult, ErrorData> {
        let mut result = self.inner.negotiate_initialize(request)?;
        advertise(&mut result.capabilities);
        Ok(result)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.inner.supported_protocol_versions()
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut result = self.inner.discover(context).await?;
        advertise(&mut result.capabilities);
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // The suite probes the first tool listed for a streamed answer, and wants a fixture there.
        let first_page = request.as_ref().is_none_or(|page| page.cursor.is_none());
        let mut page = self.inner.list_tools(request, context).await?;
        if first_page {
            page.tools.splice(0..0, tools::all());
        }
        Ok(page)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::named(name).or_else(|| self.inner.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match tools::group_of(&request.name) {
            Some(group) => self.call_fixture(group, &request, &context).await,
            None => self.inner.call_tool(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut page = self.inner.list_prompts(request, context).await?;
        if page.next_cursor.is_none() {
            page.prompts.extend(prompts::all());
        }
        Ok(page)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if prompts::owns(&request.name) {
            return prompts::get(&request, &context);
        }
        self.inner.get_prompt(request, context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        if request.r#ref.as_prompt_name().is_some_and(prompts::owns) {
            return prompts::complete(&request);
        }
        self.inner.complete(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut page = self.inner.list_resources(request, context).await?;
        if page.next_cursor.is_none() {
            page.resources.extend(resources::all());
        }
        Ok(page)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut page = self.inner.list_resource_templates(request, context).await?;
        if page.next_cursor.is_none() {
            page.resource_templates.extend(resources::templates());
        }
        Ok(page)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if resources::owns(&request.uri) {
            return resources::read(&request.uri).map(Into::into);
        }
        self.inner.read_resource(request, context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if resources::owns(&request.uri) {
            return resources::check_subscribable(&request.uri);
        }
        self.inner.subscribe(request, context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if resources::owns(&request.uri) {
            return resources::check_subscribable(&request.uri);
        }
        self.inner.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let inner = self.inner.accepted_subscription_filter(requested);
        Some(changes::accepted_filter(requested, inner))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let announcements = self.fixtures.changes.forward(context.sink().clone());
        tokio::select! {
            result = self.inner.listen(context) => result,
            () = announcements => Ok(()),
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.log.set(request.level);
        if self.inner.get_info().capabilities.logging.is_some() {
            return self.inner.set_level(request, context).await;
        }
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        if self.is_inner_task(&request.task_id) {
            return self.inner.get_task(request, context).await;
        }
        self.fixtures.board.get(&request.task_id)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.is_inner_task(&request.task_id) {
            return self.inner.update_task(request, context).await;
        }
        self.fixtures.board.update(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.is_inner_task(&request.task_id) {
            return self.inner.cancel_task(request, context).await;
        }
        self.fixtures.board.cancel(&request.task_id)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.inner.on_custom_request(request, context).await
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, context: NotificationContext<RoleServer>) {
        self.inner.on_cancelled(notification, context).await;
    }

    async fn on_progress(&self, notification: ProgressNotificationParam, context: NotificationContext<RoleServer>) {
        self.inner.on_progress(notification, context).await;
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_roots_list_changed(context).await;
    }

    async fn on_custom_notification(&self, notification: CustomNotification, context: NotificationContext<RoleServer>) {
        self.inner.on_custom_notification(notification, context).await;
    }
}
