//! The chat agent, with the tools of a profile and of other MCP servers.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tribune_agent::{Agent, ToolAccess, ToolSet, Toolbox};
use tribune_core::{CallContext, Error, JsonObject, Result, Tool, ToolOutput, UserId};
use tribune_limits::{Place, Places, Subject};

use super::profile::ProfileState;
use super::{Service, call};
use crate::identity::Caller;

/// Why there is no chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoChat {
    /// No model is configured.
    Unconfigured,
    /// A model is configured but cannot be used; the reason is for the operator.
    Unusable(String),
}

impl NoChat {
    /// Example lines for the configuration.
    pub const LINES: [&str; 3] = [
        "base_url = \"https://openrouter.ai/api/v1\"",
        "model = \"openai/gpt-4o-mini\"",
        "api_key = \"env:OPENROUTER_API_KEY\"",
    ];

    /// What to add to the configuration, or why the configured model cannot be used.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unconfigured => format!("[agent]\n{}", Self::LINES.join("\n")),
            Self::Unusable(reason) => reason.clone(),
        }
    }
}

/// Tools of other MCP servers, as they are available now.
pub type ForeignTools = Arc<dyn Fn() -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// The agent and the tools it may use.
pub struct Chat {
    pub agent: Agent,
    profile: String,
    foreign: ForeignTools,
    turns: Turns,
}

impl Chat {
    /// `profile` is the name of one of the service's profiles.
    pub fn new(agent: Agent, profile: String, max_turns: usize, foreign: ForeignTools) -> Self {
        Self { agent, profile, foreign, turns: Turns::new(max_turns) }
    }

    /// Reserves a turn; `None` if too many are running. A turn costs money and minutes, and goes on when the caller
    /// hangs up.
    pub fn reserve_turn(&self, user: &UserId) -> Option<TurnSlot> {
        self.turns.reserve(user)
    }

    /// What the model may call for this caller.
    pub fn toolbox(&self, service: &Arc<Service>, caller: &Caller) -> Arc<dyn Toolbox> {
        let state = self.state(service, caller);
        let foreign = (self.foreign)();
        let own = state.visible_to(&caller.principal).registry.specs();
        // Our own tool wins over a foreign one of the same name.
        let is_new = |tool: &&Arc<dyn Tool>| state.registry.lookup(&tool.spec().name).is_none();
        let others = foreign.iter().filter(is_new).map(|tool| tool.spec());
        let reads_only = self.agent.settings().tools == ToolAccess::Read;
        let specs = own.chain(others).filter(|spec| spec.hints.read_only || !reads_only);
        let set = Arc::new(ToolSet::new(specs.cloned().collect()));
        Arc::new(ProfileTools { service: service.clone(), state, foreign, set })
    }

    /// Refuses a tool that this caller may not call.
    pub fn admit(&self, service: &Service, caller: &Caller, tool: &str) -> Result<()> {
        let state = self.state(service, caller);
        let own = state.registry.lookup(tool).map(|registered| registered.tool().clone());
        let foreign = || (self.foreign)().into_iter().find(|foreign| foreign.spec().name == tool);
        own.or_else(foreign).map_or(Ok(()), |tool| call::admit(&*tool, &caller.principal, caller.scopes))
    }

    fn state(&self, service: &Service, caller: &Caller) -> Arc<ProfileState> {
        let profile = service.profile_for(&self.profile, caller);
        profile.unwrap_or_else(|| service.default_profile()).state_for(caller)
    }

    /// The context of a turn for this caller.
    pub fn call_context(&self, service: &Service, caller: &Caller) -> CallContext {
        let mut cx = service.call_context(caller);
        cx.deadline = service.clock.monotonic() + self.agent.settings().turn_timeout;
        // Not cancelled when the caller hangs up: a turn that started is finished and stored.
        cx.cancel = service.closing.child_token();
        cx
    }
}

/// The turns that may still begin, and how many of them each user has.
struct Turns {
    all: Arc<Semaphore>,
    of_user: Arc<Places>,
}

/// A reserved turn, until it is dropped.
pub struct TurnSlot {
    _turn: OwnedSemaphorePermit,
    _place: Place,
}

impl Turns {
    /// At most `max`, and at most half of them for one user.
    fn new(max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(max)), of_user: Arc::new(Places::new(max.div_ceil(2))) }
    }

    fn reserve(&self, user: &UserId) -> Option<TurnSlot> {
        let turn = self.all.clone().try_acquire_owned().ok()?;
        let place = self.of_user.take(Some(Subject::User(user.clone())))?;
        Some(TurnSlot { _turn: turn, _place: place })
    }
}

struct ProfileTools {
    service: Arc<Service>,
    state: Arc<ProfileState>,
    foreign: Vec<Arc<dyn Tool>>,
    set: Arc<ToolSet>,
}

#[async_trait]
impl Toolbox for ProfileTools {
    fn tools(&self) -> Arc<ToolSet> {
        self.set.clone()
    }

    fn prepared(&self, tool: &str, arguments: JsonObject) -> JsonObject {
        let registered = self.state.registry.lookup(tool);
        let prepared = registered.and_then(|tool| tool.prepare(arguments.clone()).ok());
        prepared.unwrap_or(arguments)
    }

    async fn question(&self, tool: &str, arguments: JsonObject, cx: &CallContext) -> Result<Option<String>> {
        match self.state.registry.lookup(tool) {
            Some(registered) => call::question(&registered, arguments, cx).await,
            // Another server's tool cannot say more than its arguments.
            None => Ok(None),
        }
    }

    async fn call(&self, tool: &str, arguments: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        // Each call has its own timeout, within that of the turn.
        let cx = cx.until(self.service.clock.monotonic() + self.service.settings.config.call_timeout);
        if let Some(registered) = self.state.registry.lookup(tool) {
            return call::run(&self.service, &registered, arguments, &cx).await;
        }
        match self.foreign.iter().find(|foreign| foreign.spec().name == tool) {
            Some(foreign) => call::run_foreign(&self.service, foreign, arguments, &cx).await,
            None => Err(Error::not_found(format!("unknown tool `{tool}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_gets_half_of_the_turns() {
        let turns = Turns::new(3);
        let user = |name| UserId::new(name).expect("a name");
        let reserve = |name| turns.reserve(&user(name));
        let (first, second) = (reserve("ann"), reserve("ann"));
        assert!(first.is_some() && second.is_some() && reserve("ann").is_none());
        let third = reserve("bob");
        assert!(third.is_some() && reserve("bob").is_none(), "all are taken");
        drop(first);
        assert!(reserve("bob").is_some());
        drop((second, third));
    }
}
