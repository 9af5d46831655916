//! Sources, profiles, tool calls and the chat agent, behind every transport.
//!
//! - [`profile`]: a selection of tools, rebuilt when the data changes;
//! - [`call`]: one tool call with its deadline, log line and metrics;
//! - [`chat`]: the agent with the tools of a profile.

pub mod call;
pub mod chat;
pub mod profile;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use http::HeaderValue;
use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tribune_core::{CallContext, Clock, Links, Principal, Scopes, Source, SourceStatus, Tool};
use tribune_oauth::Resources;
use tribune_registry::RegistrationError;
use tribune_storage::ConversationStore;

use crate::address::bare_host;
use crate::audit::Audit;
use crate::identity::{Accounts, Caller, challenge};
use crate::settings::Settings;
use crate::supervisor::{Jitter, Supervisor};
use tribune_limits::Limits;

pub use chat::{Chat, NoChat};
pub use profile::{Profile, ProfileSpec, ProfileState};

use profile::ToolContext;

pub struct Service {
    pub settings: Settings,
    pub links: Links,
    pub clock: Arc<dyn Clock>,
    /// How often callers may do what.
    pub(crate) limits: Arc<Limits>,
    /// Who tokens stand for; `None` rejects all.
    pub accounts: Option<Arc<Accounts>>,
    /// Who called what; set when the server starts, unless it keeps no audit log.
    pub audit: Arc<OnceLock<Audit>>,
    /// The chat agent, or why there is none.
    pub chat: Result<Chat, NoChat>,
    pub conversations: Option<Arc<dyn ConversationStore>>,
    sources: Vec<Arc<dyn Source>>,
    /// The background tasks of the sources.
    pub supervisor: Supervisor,
    profiles: IndexMap<String, Arc<Profile>>,
    by_host: HashMap<String, Arc<Profile>>,
    default: Arc<Profile>,
    /// Cancelled when the server stops: no new work.
    pub stopping: CancellationToken,
    /// Cancelled when running calls have had their time: streams end.
    pub closing: CancellationToken,
    /// Running tool calls.
    pub calls: TaskTracker,
    /// Responses that rmcp has not sent completely: it drops them once `closing` is cancelled.
    pub answers: TaskTracker,
}

/// Why the profiles of a configuration cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServiceError(String);

impl Service {
    /// `profiles` are added to the built-in ones and replace those of the same name.
    pub fn new(
        settings: Settings,
        sources: Vec<Arc<dyn Source>>,
        profiles: Vec<ProfileSpec>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServiceError> {
        let links = Links::new(&settings.public_url);
        let tools = ToolContext {
            links: links.clone(),
            source_timeout: settings.config.source_timeout,
            clock: clock.clone(),
            offers_oauth: settings.offers_oauth,
        };
        let mut specs: IndexMap<String, ProfileSpec> = IndexMap::new();
        for spec in ProfileSpec::built_in(&sources).into_iter().chain(profiles) {
            specs.insert(spec.name.clone(), spec);
        }
        let mut by_name = IndexMap::new();
        let mut by_host = HashMap::new();
        for (name, spec) in specs {
            let profile = Arc::new(build_profile(spec, &sources, tools.clone())?);
            for host in &profile.spec().hosts {
                if by_host.insert(bare_host(host), profile.clone()).is_some() {
                    return Err(ServiceError(format!("two profiles claim the host name `{host}`")));
                }
            }
            by_name.insert(name, profile);
        }
        let default = by_name["default"].clone();
        Ok(Self {
            limits: Arc::new(Limits::new(settings.limits.clone(), &clock, settings.shared.as_ref())),
            settings,
            links,
            clock,
            accounts: None,
            audit: Arc::default(),
            chat: Err(NoChat::Unconfigured),
            conversations: None,
            supervisor: Supervisor::new(&sources),
            sources,
            profiles: by_name,
            by_host,
            default,
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
            calls: TaskTracker::new(),
            answers: TaskTracker::new(),
        })
    }

    /// The context of a call by this caller that begins now.
    pub(crate) fn call_context(&self, caller: &Caller) -> CallContext {
        let deadline = self.clock.monotonic() + self.settings.config.call_timeout;
        let mut cx = CallContext::new(caller.principal.clone(), deadline);
        cx.groups = caller.groups.clone();
        cx.scopes = caller.scopes;
        cx.correlation_id = caller.correlation_id.clone();
        cx.peer = caller.peer;
        cx
    }

    /// What the tools of the MCP endpoints need.
    pub(crate) fn mcp_scopes(&self) -> Scopes {
        let state = self.default.state();
        let needed: Scopes = state.registry.tools().map(|tool| tool.scope()).collect();
        needed.and(Scopes::USUAL)
    }

    /// What a refusal says about getting a token, for the endpoint of a profile: `/mcp` or `/sse`.
    pub(crate) fn challenge(&self, endpoint: &str, profile: &str, scopes: Scopes, error: Option<&str>) -> HeaderValue {
        let base = self.accounts.as_ref().filter(|accounts| accounts.offers_oauth());
        let base = base.map(|_| self.links.base());
        let resource = match profile {
            "default" => endpoint.to_owned(),
            profile => format!("{endpoint}/{profile}"),
        };
        challenge(base, &resource, scopes, error)
    }

    /// How to get a token for a call at `endpoint` that is refused for want of one; `None` if it is not refused, or hosts
    /// cannot get tokens by themselves.
    pub(crate) fn sign_in_for(
        &self,
        endpoint: &str,
        profile: &Profile,
        tool: &dyn Tool,
        cx: &CallContext,
    ) -> Option<HeaderValue> {
        let is_anonymous = cx.principal == Principal::Anonymous;
        if !self.settings.offers_oauth || !call::lacks(tool, is_anonymous, cx.scopes) {
            return None;
        }
        let error = if is_anonymous { "invalid_token" } else { "insufficient_scope" };
        let missing = [tool.scope()].into_iter().collect();
        Some(self.challenge(endpoint, profile.name(), missing, Some(error)))
    }

    pub fn sources(&self) -> &[Arc<dyn Source>] {
        &self.sources
    }

    /// The source that owns the ids of a scheme.
    pub(crate) fn owner(&self, scheme: &str) -> Option<&Arc<dyn Source>> {
        self.sources.iter().find(|source| source.owns(scheme))
    }

    /// Starts the background tasks of those sources that need theirs. Must be called within a runtime, and once.
    pub fn start(&self, jitter: &Jitter, needs_task: impl Fn(&dyn Source) -> bool) {
        let sources = self.sources.iter().filter(|source| needs_task(&***source));
        self.supervisor.start(sources, jitter);
    }

    /// The status of a source, degraded while its background task fails.
    pub fn status(&self, source: &dyn Source) -> SourceStatus {
        self.supervisor.status(source)
    }

    pub fn profiles(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.profiles.values()
    }

    /// The profiles that exist for a caller.
    pub(crate) fn profiles_for<'a>(&'a self, caller: &'a Caller) -> impl Iterator<Item = &'a Arc<Profile>> {
        self.profiles().filter(|profile| !profile.is_hidden_from(caller))
    }

    /// The profile of `/mcp/{name}`, if it exists for a caller.
    pub(crate) fn profile_for(&self, name: &str, caller: &Caller) -> Option<&Arc<Profile>> {
        self.profile(name).filter(|profile| !profile.is_hidden_from(caller))
    }

    pub fn default_profile(&self) -> &Arc<Profile> {
        &self.default
    }

    /// The profile of `/mcp/{name}`.
    pub fn profile(&self, name: &str) -> Option<&Arc<Profile>> {
        self.profiles.get(name)
    }

    /// The MCP address of a profile. Another profile may have claimed the public host name, and with it plain `/mcp`.
    pub fn mcp_address(&self, profile: &Arc<Profile>) -> String {
        let base = self.links.base();
        let host = base.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(bare_host));
        let is_plain = host.is_some_and(|host| Arc::ptr_eq(self.profile_for_host(&host), profile));
        if is_plain { format!("{base}/mcp") } else { format!("{base}/mcp/{}", profile.name()) }
    }

    /// What a token can be for: this server, or one of its MCP endpoints.
    pub fn resources(&self) -> Resources {
        let base = self.links.base();
        let all = [base.to_owned(), format!("{base}/mcp"), format!("{base}/sse")].map(|address| (address, None));
        let endpoints = self.profiles().flat_map(|profile| {
            let name = profile.name();
            ["mcp", "sse"].map(|path| (format!("{base}/{path}/{name}"), Some(name.to_owned())))
        });
        endpoints.chain(all).collect()
    }

    /// The profile of plain `/mcp` for a host name: some MCP hosts connect to exactly that path only.
    pub fn profile_for_host(&self, host: &str) -> &Arc<Profile> {
        self.by_host.get(host).unwrap_or(&self.default)
    }

    /// Host names that profiles claim.
    pub fn profile_hosts(&self) -> impl Iterator<Item = &str> {
        self.by_host.keys().map(String::as_str)
    }
}

fn build_profile(spec: ProfileSpec, all: &[Arc<dyn Source>], tools: ToolContext) -> Result<Profile, ServiceError> {
    let name = spec.name.clone();
    let faulty = |error: RegistrationError| ServiceError(format!("profile `{name}`: {error}"));
    let sources = match &spec.sources {
        None => all.to_vec(),
        Some(names) => select_sources(&name, names, all)?,
    };
    if let Some(selected) = &spec.tools {
        let everything = ProfileSpec { tools: None, ..spec.clone() };
        let everything = Profile::new(everything, sources.clone(), tools.clone()).map_err(faulty)?;
        let available = everything.state();
        if let Some(unknown) = selected.iter().find(|tool| available.registry.lookup(tool).is_none()) {
            let known: Vec<&str> = available.registry.names().collect();
            return Err(ServiceError(format!(
                "profile `{name}` selects the tool `{unknown}`, which none of its sources has (available: {})",
                known.join(", ")
            )));
        }
    }
    Profile::new(spec, sources, tools).map_err(faulty)
}

fn select_sources(
    profile: &str,
    names: &[String],
    all: &[Arc<dyn Source>],
) -> Result<Vec<Arc<dyn Source>>, ServiceError> {
    let select = |name: &String| {
        let source = all.iter().find(|source| source.name() == name).cloned();
        source.ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|source| source.name()).collect();
            ServiceError(format!(
                "profile `{profile}` selects the source `{name}`, which is not configured (configured: {})",
                known.join(", ")
            ))
        })
    };
    names.iter().map(select).collect()
}
