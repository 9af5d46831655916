//! What belongs to people: the store, tasks, tokens and the agent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::{CancellationToken, DropGuard};
use tribune_agent::Agent;
use tribune_core::{Links, Source, SystemClock};
use tribune_server::identity::ApiTokens;
use tribune_server::service::NoChat;
use tribune_server::{Chat, Service};
use tribune_store::{Place, Store};
use tribune_tasks::TasksSource;
use tribune_upstream::Upstreams;

use crate::config::{AgentConfig, Config, StorePlace};

/// How often the database is asked whether it is there.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub struct People {
    pub store: Store,
    pub upstreams: Arc<Upstreams>,
    /// Why the database cannot be used, as far as is known.
    trouble: Arc<Mutex<Option<String>>>,
}

impl People {
    pub(super) fn new(config: &Config) -> anyhow::Result<Self> {
        let servers = config.agent.as_ref().map(AgentConfig::servers).unwrap_or_default();
        let reachable = servers.into_iter().filter_map(|server| {
            server
                .inspect_err(|error| tracing::error!("{error:#}; its tools are left out"))
                .ok()
        });
        Ok(Self {
            store: store(config)?,
            upstreams: Arc::new(Upstreams::new(reachable.collect()).context("[[agent.servers]]")?),
            trouble: Arc::default(),
        })
    }

    pub(super) fn tasks(&self, links: Links) -> Arc<dyn Source> {
        let trouble = self.trouble.clone();
        let tasks = TasksSource::new(self.store.tasks(), links, Arc::new(SystemClock));
        Arc::new(tasks.reporting(move || trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }

    /// Lets a service know users, and the agent if there is one.
    pub(super) fn join(&self, service: Service, config: &Config) -> anyhow::Result<Service> {
        if let Some(agent) = &config.agent
            && service.profile(&agent.profile).is_none()
        {
            let known: Vec<&str> = service.profiles().map(|profile| profile.name()).collect();
            anyhow::bail!(
                "agent.profile = \"{}\" is not a profile; there are: {}",
                agent.profile,
                known.join(", ")
            );
        }
        if let Some(agent) = &config.agent
            && service
                .profile(&agent.profile)
                .is_some_and(|profile| profile.spec().admin)
        {
            anyhow::bail!(
                "agent.profile = \"{}\" has tools that need the administrator's token, and everybody who chats would have them; choose another",
                agent.profile
            );
        }
        let clock = Arc::new(SystemClock);
        let chat = match &config.agent {
            None => Err(NoChat::Unconfigured),
            Some(agent) => self.chat(agent).map_err(|error| {
                let reason = format!("{error:#}");
                tracing::error!("nobody can chat: {reason}");
                NoChat::Unusable(reason)
            }),
        };
        Ok(service
            .with_authenticator(Arc::new(ApiTokens::new(self.store.tokens(), clock)))
            .with_chat(chat, self.store.conversations()))
    }

    fn chat(&self, config: &AgentConfig) -> anyhow::Result<Chat> {
        let agent = Agent::new(config.settings()?, self.store.conversations(), Arc::new(SystemClock))?;
        let upstreams = self.upstreams.clone();
        let foreign = Arc::new(move || upstreams.tools());
        Ok(Chat::new(agent, config.profile.clone(), config.max_turns, foreign))
    }

    /// Looks after the database until what is given back is dropped, so that readiness tells the truth.
    pub(super) fn watch(&self) -> DropGuard {
        let (tokens, trouble) = (self.store.tokens(), self.trouble.clone());
        let end = CancellationToken::new();
        let look = async move {
            loop {
                // Any question will do; nobody has this token.
                let state = tokens.find([0; 32]).await.err().map(|error| error.message().to_owned());
                let now = state.clone();
                let before = std::mem::replace(&mut *trouble.lock().unwrap_or_else(PoisonError::into_inner), state);
                match (before, now) {
                    (None, Some(reason)) => tracing::error!(reason, "the database cannot be used"),
                    (Some(_), None) => tracing::info!("the database can be used again"),
                    _ => {}
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::spawn(end.clone().run_until_cancelled_owned(look));
        end.drop_guard()
    }
}

/// The database that is configured; nothing is opened before it is used.
pub fn store(config: &Config) -> anyhow::Result<Store> {
    let place = match &config.store {
        StorePlace::Sqlite(path) => Place::Sqlite(path.clone()),
        StorePlace::Postgres(url) => Place::Postgres(url.clone()),
    };
    Store::new(place).context("store.url")
}
