//! Users: the store, tasks, tokens and the agent.

use std::sync::Arc;

use anyhow::{Context, bail};
use tribune_agent::Agent;
use tribune_config::Secret;
use tribune_core::{Error, Links, Source, SystemClock};
use tribune_oauth::Issuer;
use tribune_oauth::jwt::Verifier;
use tribune_oauth::login::Provider;
use tribune_server::identity::{Accounts, SignIn};
use tribune_server::service::NoChat;
use tribune_server::{Chat, Service};
use tribune_storage::{Backend, ConversationStore, Store};
use tribune_tasks::TasksSource;
use tribune_upstream::Upstreams;

use crate::config::{AgentTable, Config};

pub struct People {
    pub store: Store,
    pub upstreams: Arc<Upstreams>,
}

impl People {
    pub(super) fn new(config: &Config) -> anyhow::Result<Self> {
        let servers = config.agent.iter().flat_map(|agent| &agent.servers);
        let usable = servers.filter_map(|server| {
            let failed = |error: &Error| tracing::error!("{}; its tools are not offered", error.message());
            server.spec(&config.dir).inspect_err(failed).ok()
        });
        Ok(Self {
            store: store(config)?,
            upstreams: Arc::new(Upstreams::new(usable.collect()).context("[[agent.servers]]")?),
        })
    }

    pub(super) fn tasks(&self, config: &Config, links: Links) -> Arc<dyn Source> {
        let origin = match &config.store {
            Backend::Sqlite(path) => path.display().to_string(),
            // Its address may hold a password.
            Backend::Postgres(_) => "PostgreSQL".to_owned(),
        };
        let tasks = self.store.tasks().at_most(config.limits.tasks_per_user);
        Arc::new(TasksSource::new(tasks, origin, links, Arc::new(SystemClock)))
    }

    /// Adds users and the agent to a service.
    pub(super) fn join(&self, mut service: Service, config: &Config) -> anyhow::Result<Service> {
        if let Some(agent) = &config.agent {
            check_profile(&service, &agent.profile)?;
        }
        let clock = Arc::new(SystemClock);
        let chat = match &config.agent {
            None => Err(NoChat::Unconfigured),
            Some(agent) => self.chat(agent, config).map_err(|error| NoChat::Unusable(format!("{error:#}"))),
        };
        service.accounts = Some(Arc::new(self.accounts(config, &service, clock)?));
        service.chat = chat;
        service.conversations = Some(self.conversations(config));
        Ok(service)
    }

    /// Who may use the server, and how people sign in.
    fn accounts(&self, config: &Config, service: &Service, clock: Arc<SystemClock>) -> anyhow::Result<Accounts> {
        let auth = &config.auth;
        let sign_in = match auth.issuer.as_deref() {
            None => SignIn::None,
            Some("builtin") => {
                let exempt = auth.client_hosts.clone().into();
                let (base, grants) = (service.links.base(), self.store.grants());
                let issuer = Issuer::new(base, service.resources(), grants, exempt, clock.clone());
                SignIn::BuiltIn(Box::new(issuer?))
            }
            Some(issuer) => {
                // Hosts ask for tokens for the endpoint that they use.
                let mut audience = service.resources();
                if let Some(only) = &auth.audience {
                    let profile = audience.remove(only).flatten();
                    audience = [(only.clone(), profile)].into();
                }
                let verifier = Verifier::new(issuer, audience, clock.clone()).context("auth.issuer")?;
                SignIn::Elsewhere(issuer.to_owned(), Box::new(verifier))
            }
        };
        let provider = auth.login.oidc.as_ref().map(|oidc| {
            const SECRET: &str = "auth.login.oidc.client_secret";
            let secret = Secret::parse(SECRET, &oidc.client_secret, &config.dir)?.read(SECRET)?;
            let (id, allow) = (oidc.client_id.clone(), oidc.allow.clone());
            Provider::new(&oidc.issuer, id, secret, allow, clock.clone()).context("auth.login.oidc")
        });
        Ok(Accounts::new(&self.store, sign_in, provider.transpose()?, clock, service.settings.shared.as_ref()))
    }

    fn conversations(&self, config: &Config) -> Arc<dyn ConversationStore> {
        self.store.conversations_at_most(config.limits.conversations_per_user)
    }

    fn chat(&self, table: &AgentTable, config: &Config) -> anyhow::Result<Chat> {
        let settings = table.settings(&config.dir)?;
        let agent = Agent::new(settings, self.conversations(config), Arc::new(SystemClock))?;
        let upstreams = self.upstreams.clone();
        let foreign = Arc::new(move || upstreams.tools());
        Ok(Chat::new(agent, table.profile.clone(), table.max_turns, foreign))
    }
}

/// The agent needs a profile without administrators' tools.
fn check_profile(service: &Service, name: &str) -> anyhow::Result<()> {
    let Some(profile) = service.profile(name) else {
        let known: Vec<&str> = service.profiles().map(|profile| profile.name()).collect();
        bail!("agent.profile = \"{name}\" is not a profile; there are: {}", known.join(", "));
    };
    if profile.spec().admin {
        bail!(
            "agent.profile = \"{name}\" has administrators' tools, which everybody who chats could call; choose another profile"
        );
    }
    Ok(())
}

/// The configured database; nothing is opened before it is used.
pub fn store(config: &Config) -> anyhow::Result<Store> {
    Store::new(config.store.clone()).context("store.url")
}
