//! The agent, with the tools of a profile and of other servers, for whoever talks to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use tribune_agent::{Agent, ToolSet, Toolbox};
use tribune_core::{CallContext, Error, JsonObject, Principal, Result, Tool, ToolOutput, UserId};

use crate::call;
use crate::profile::{ProfileState, unpoisoned};
use crate::service::Service;

/// Tools that are not ours, as they are to be had now.
pub type ForeignTools = Arc<dyn Fn() -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// An agent and what it may use.
pub struct Chat {
    pub agent: Agent,
    profile: String,
    foreign: ForeignTools,
    places: Arc<Places>,
    /// The tools of the last turn: nearly always those of the next.
    known: ArcSwapOption<Known>,
}

/// A set of tools, and what it was made of.
struct Known {
    state: Arc<ProfileState>,
    foreign: Vec<Arc<dyn Tool>>,
    set: Arc<ToolSet>,
}

impl Known {
    fn is_of(&self, state: &Arc<ProfileState>, foreign: &[Arc<dyn Tool>]) -> bool {
        let alike = self.foreign.iter().zip(foreign).all(|(a, b)| Arc::ptr_eq(a, b));
        Arc::ptr_eq(&self.state, state) && self.foreign.len() == foreign.len() && alike
    }
}

impl Chat {
    /// `profile` is the name of one of the service's profiles.
    pub fn new(agent: Agent, profile: String, max_turns: usize, foreign: ForeignTools) -> Self {
        let places = Places {
            most: max_turns,
            taken: Mutex::default(),
        };
        Self {
            agent,
            profile,
            foreign,
            places: Arc::new(places),
            known: ArcSwapOption::empty(),
        }
    }

    /// A place for a turn, until it is dropped. `None` if all are taken: a turn costs money and minutes, and goes on
    /// when whoever asked hangs up.
    pub fn place(&self, user: &UserId) -> Option<Place> {
        self.places.clone().take(user)
    }

    /// What the model may call for this caller.
    pub fn toolbox(&self, service: &Arc<Service>, principal: &Principal) -> Arc<dyn Toolbox> {
        let profile = service.profile(&self.profile);
        let state = profile.unwrap_or_else(|| service.default_profile()).state();
        let foreign = (self.foreign)();
        Arc::new(ProfileTools {
            service: service.clone(),
            set: self.tools(&state, &foreign, principal),
            state,
            foreign,
        })
    }

    fn tools(&self, state: &Arc<ProfileState>, foreign: &[Arc<dyn Tool>], principal: &Principal) -> Arc<ToolSet> {
        let is_user = *principal != Principal::Anonymous;
        if let Some(known) = &*self.known.load()
            && is_user
            && known.is_of(state, foreign)
        {
            return known.set.clone();
        }
        let own = state.shown_to(principal).registry.specs().cloned();
        // A name of ours means ours.
        let is_new = |tool: &&Arc<dyn Tool>| state.registry.lookup(&tool.spec().name).is_none();
        let others = foreign.iter().filter(is_new).map(|tool| tool.spec().clone());
        let set = Arc::new(ToolSet::new(own.chain(others).collect()));
        if is_user {
            self.known.store(Some(Arc::new(Known {
                state: state.clone(),
                foreign: foreign.to_vec(),
                set: set.clone(),
            })));
        }
        set
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

/// The turns that may be under way at once, of one user half as many.
struct Places {
    most: usize,
    taken: Mutex<HashMap<UserId, usize>>,
}

/// One of them.
pub struct Place {
    places: Arc<Places>,
    user: UserId,
}

impl Places {
    fn take(self: Arc<Self>, user: &UserId) -> Option<Place> {
        let mut taken = unpoisoned(&self.taken);
        let of_all: usize = taken.values().sum();
        let own = taken.get(user).copied().unwrap_or(0);
        if of_all >= self.most || own >= self.most.div_ceil(2) {
            return None;
        }
        taken.insert(user.clone(), own + 1);
        drop(taken);
        Some(Place {
            places: self,
            user: user.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = unpoisoned(&self.places.taken);
        match taken.get_mut(&self.user) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.remove(&self.user)),
        }
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

    async fn call(&self, tool: &str, arguments: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        // Each call has its own time, within that of the turn.
        let cx = cx.until(self.service.clock.monotonic() + self.service.settings.call_timeout);
        if let Some(registered) = self.state.registry.lookup(tool) {
            return call::run(&self.service, &registered, arguments, &cx).await;
        }
        match self.foreign.iter().find(|foreign| foreign.spec().name == tool) {
            Some(foreign) => call::run_foreign(&self.service, foreign, arguments, &cx).await,
            None => Err(Error::not_found(format!("there is no tool `{tool}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_half_of_the_places_and_gives_them_back() {
        let places = Arc::new(Places {
            most: 3,
            taken: Mutex::default(),
        });
        let user = |name| UserId::new(name).expect("a name");
        let take = |name| places.clone().take(&user(name));
        let (first, second) = (take("ann"), take("ann"));
        assert!(first.is_some() && second.is_some() && take("ann").is_none());
        let third = take("bob");
        assert!(third.is_some() && take("bob").is_none(), "all are taken");
        drop(first);
        assert!(take("bob").is_some());
        drop((second, third));
        assert!(
            unpoisoned(&places.taken).is_empty(),
            "nothing is remembered of those who left"
        );
    }
}
