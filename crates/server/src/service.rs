//! The sources and profiles behind every transport.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tribune_core::registry::RegistrationError;
use tribune_core::store::ConversationStore;
use tribune_core::{Clock, Links, Source};

use crate::chat::Chat;
use crate::http::guard::bare_host;
use crate::identity::Authenticator;
use crate::profile::{Making, Profile, ProfileSpec};
use crate::settings::Settings;

pub struct Service {
    pub settings: Settings,
    pub links: Links,
    pub clock: Arc<dyn Clock>,
    /// Whose tokens are; without one every token is refused.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// The agent, or why there is none.
    pub chat: Result<Chat, NoChat>,
    /// What was said to the agent, and what it answered.
    pub conversations: Option<Arc<dyn ConversationStore>>,
    sources: Vec<Arc<dyn Source>>,
    profiles: IndexMap<String, Arc<Profile>>,
    by_host: HashMap<String, Arc<Profile>>,
    default: Arc<Profile>,
    /// Cancelled when the process has been told to stop: no new work.
    pub stopping: CancellationToken,
    /// Cancelled when calls under way have had their time: streams end.
    pub closing: CancellationToken,
    /// Tool calls under way.
    pub calls: TaskTracker,
    /// Answers that rmcp has not wholly handed on: it drops what it still holds once `closing` is cancelled.
    pub answers: TaskTracker,
}

/// Why nobody can chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoChat {
    /// No model is configured.
    Unconfigured,
    /// One is, but it cannot be used; the reason is for the operator.
    Unusable(String),
}

impl NoChat {
    /// What has to stand in the configuration.
    pub const LINES: [&str; 3] = [
        "base_url = \"https://openrouter.ai/api/v1\"",
        "model = \"openai/gpt-4o-mini\"",
        "api_key = \"env:OPENROUTER_API_KEY\"",
    ];

    /// What to do about it, as text to paste.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unconfigured => format!("[agent]\n{}", Self::LINES.join("\n")),
            Self::Unusable(reason) => reason.clone(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("profile `{profile}`: {error}")]
    Tools { profile: String, error: RegistrationError },
    #[error("profile `{profile}` names the source `{source_name}`, which is not configured (there are: {known})")]
    UnknownSource {
        profile: String,
        source_name: String,
        known: String,
    },
    #[error("profile `{profile}` names the tool `{tool}`, which none of its sources brings (there are: {known})")]
    UnknownTool {
        profile: String,
        tool: String,
        known: String,
    },
    #[error("two profiles claim the host name `{0}`")]
    HostTwice(String),
}

impl Service {
    /// `profiles` come beside the built-in ones and replace those of the same name.
    pub fn new(
        settings: Settings,
        sources: Vec<Arc<dyn Source>>,
        profiles: Vec<ProfileSpec>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServiceError> {
        let links = Links::new(&settings.public_url);
        let making = Making {
            links: links.clone(),
            source_timeout: settings.source_timeout,
            clock: clock.clone(),
        };
        let mut specs: IndexMap<String, ProfileSpec> = IndexMap::new();
        for spec in ProfileSpec::built_in(&sources).into_iter().chain(profiles) {
            specs.insert(spec.name.clone(), spec);
        }
        let mut made = IndexMap::new();
        let mut by_host = HashMap::new();
        for (name, spec) in specs {
            let profile = Arc::new(make(spec, &sources, making.clone())?);
            for host in &profile.spec().hosts {
                if by_host.insert(bare_host(host), profile.clone()).is_some() {
                    return Err(ServiceError::HostTwice(host.clone()));
                }
            }
            made.insert(name, profile);
        }
        let default = made["default"].clone();
        Ok(Self {
            settings,
            links,
            clock,
            authenticator: None,
            chat: Err(NoChat::Unconfigured),
            conversations: None,
            sources,
            profiles: made,
            by_host,
            default,
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
            calls: TaskTracker::new(),
            answers: TaskTracker::new(),
        })
    }

    /// Lets users show who they are.
    #[must_use]
    pub fn with_authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.authenticator = Some(authenticator);
        self
    }

    #[must_use]
    pub fn with_chat(mut self, chat: Result<Chat, NoChat>, conversations: Arc<dyn ConversationStore>) -> Self {
        self.chat = chat;
        self.conversations = Some(conversations);
        self
    }

    pub fn sources(&self) -> &[Arc<dyn Source>] {
        &self.sources
    }

    pub fn profiles(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.profiles.values()
    }

    pub fn default_profile(&self) -> &Arc<Profile> {
        &self.default
    }

    /// The profile of `/mcp/{name}`.
    pub fn profile(&self, name: &str) -> Option<&Arc<Profile>> {
        self.profiles.get(name)
    }

    /// The profile of plain `/mcp` for a host name: some hosts connect only to exactly that path.
    pub fn profile_for_host(&self, host: &str) -> &Arc<Profile> {
        self.by_host.get(host).unwrap_or(&self.default)
    }

    /// Host names that profiles claim, which the server therefore answers to.
    pub fn profile_hosts(&self) -> impl Iterator<Item = &str> {
        self.by_host.keys().map(String::as_str)
    }
}

fn make(spec: ProfileSpec, all: &[Arc<dyn Source>], making: Making) -> Result<Profile, ServiceError> {
    let sources: Vec<Arc<dyn Source>> = match &spec.sources {
        None => all.to_vec(),
        Some(names) => names
            .iter()
            .map(|name| {
                all.iter()
                    .find(|source| source.name() == name)
                    .cloned()
                    .ok_or_else(|| ServiceError::UnknownSource {
                        profile: spec.name.clone(),
                        source_name: name.clone(),
                        known: all.iter().map(|source| source.name()).collect::<Vec<_>>().join(", "),
                    })
            })
            .collect::<Result<_, _>>()?,
    };
    let name = spec.name.clone();
    let wanted = spec.tools.clone();
    let unfiltered = ProfileSpec {
        tools: None,
        ..spec.clone()
    };
    let all_of_them = |sources: Vec<Arc<dyn Source>>, making: Making| {
        let profile = Profile::new(unfiltered, sources, making).ok()?;
        Some(profile.state().registry.names().collect::<Vec<_>>().join(", "))
    };
    let (known_sources, known_making) = (sources.clone(), making.clone());
    let profile = Profile::new(spec, sources, making).map_err(|error| ServiceError::Tools {
        profile: name.clone(),
        error,
    })?;
    let state = profile.state();
    for tool in wanted.into_iter().flatten() {
        if state.registry.lookup(&tool).is_none() {
            return Err(ServiceError::UnknownTool {
                profile: name,
                tool,
                known: all_of_them(known_sources, known_making).unwrap_or_default(),
            });
        }
    }
    Ok(profile)
}
