//! The agent, with the tools of a profile and of other servers, for whoever talks to it.

use std::sync::Arc;

use async_trait::async_trait;
use tribune_agent::{Agent, Toolbox};
use tribune_core::{CallContext, Error, JsonObject, Principal, Result, Tool, ToolOutput, ToolSpec};

use crate::call;
use crate::profile::Profile;
use crate::service::Service;

/// Tools that are not ours, as they are to be had now.
pub type ForeignTools = Arc<dyn Fn() -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// An agent and what it may use.
pub struct Chat {
    pub agent: Agent,
    profile: String,
    foreign: ForeignTools,
}

impl Chat {
    /// `profile` is the name of one of the service's profiles.
    pub fn new(agent: Agent, profile: String, foreign: ForeignTools) -> Self {
        Self {
            agent,
            profile,
            foreign,
        }
    }

    /// What the model may call for this caller.
    pub fn toolbox(&self, service: &Arc<Service>, principal: &Principal) -> Arc<dyn Toolbox> {
        let profile = service
            .profile(&self.profile)
            .unwrap_or_else(|| service.default_profile());
        Arc::new(ProfileTools {
            service: service.clone(),
            profile: profile.clone(),
            principal: principal.clone(),
            foreign: (self.foreign)(),
        })
    }

    /// What a turn of this caller carries.
    pub fn call_context(&self, service: &Service, principal: Principal, correlation_id: Arc<str>) -> CallContext {
        let deadline = service.clock.monotonic() + self.agent.settings().turn_timeout;
        let mut cx = CallContext::new(principal, deadline);
        cx.correlation_id = correlation_id;
        // Not when the caller goes away: what was begun is finished and kept.
        cx.cancel = service.closing.child_token();
        cx
    }
}

struct ProfileTools {
    service: Arc<Service>,
    profile: Arc<Profile>,
    principal: Principal,
    foreign: Vec<Arc<dyn Tool>>,
}

#[async_trait]
impl Toolbox for ProfileTools {
    fn tools(&self) -> Vec<ToolSpec> {
        let state = self.profile.state();
        let own = state.shown_to(&self.principal).registry.specs().cloned();
        // A name of ours means ours.
        let is_new = |tool: &&Arc<dyn Tool>| state.registry.lookup(&tool.spec().name).is_none();
        let foreign = self.foreign.iter().filter(is_new).map(|tool| tool.spec().clone());
        own.chain(foreign).collect()
    }

    async fn call(&self, tool: &str, arguments: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        // Each call has its own time, within that of the turn.
        let cx = cx.until(self.service.clock.monotonic() + self.service.settings.call_timeout);
        let state = self.profile.state();
        if let Some(registered) = state.registry.lookup(tool) {
            return call::run(&self.service, &registered, arguments, &cx).await;
        }
        match self.foreign.iter().find(|foreign| foreign.spec().name == tool) {
            Some(foreign) => call::run_foreign(&self.service, foreign, arguments, &cx).await,
            None => Err(Error::not_found(format!("there is no tool `{tool}`"))),
        }
    }
}
