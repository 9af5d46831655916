//! One selection of tools behind one endpoint, rendered from the data as it is now.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tribune_core::registry::RegistrationError;
use tribune_core::{Clock, Links, Principal, Registry, Source, SourceFacts};

use crate::contract::{FetchTool, RelatedTool, SearchTool, overview};
use crate::mcp::render;

/// Which tools over which sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileSpec {
    pub name: String,
    /// Names of sources; `None` for all.
    pub sources: Option<Vec<String>>,
    /// Names of tools; `None` for all that the sources bring.
    pub tools: Option<Vec<String>>,
    /// Host names that select this profile at `/mcp`.
    pub hosts: Vec<String>,
    /// Whether it has the tools that change what sources hold. Only the built-in profile `admin` does.
    pub admin: bool,
}

impl ProfileSpec {
    /// The profiles every server has: the default one, `research`, `full`, one for each source, and
    /// `admin` where a source has tools for it.
    pub fn built_in(sources: &[Arc<dyn Source>]) -> Vec<Self> {
        let named = |name: &str| Self {
            name: name.to_owned(),
            ..Self::default()
        };
        let mut specs = vec![
            named("default"),
            Self {
                tools: Some(vec!["search".to_owned(), "fetch".to_owned()]),
                ..named("research")
            },
            named("full"),
        ];
        if sources.iter().any(|source| !source.clone().admin_tools().is_empty()) {
            specs.push(Self {
                admin: true,
                ..named("admin")
            });
        }
        specs.extend(sources.iter().map(|source| Self {
            sources: Some(vec![source.name().to_owned()]),
            ..named(source.name())
        }));
        specs
    }

    fn wants(&self, tool: &str) -> bool {
        self.tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|name| name == tool))
    }
}

/// A selection of tools, kept true to the data.
pub struct Profile {
    spec: ProfileSpec,
    sources: Vec<Arc<dyn Source>>,
    making: Making,
    current: ArcSwap<ProfileState>,
    /// Held while a new state is made, so that one request makes it and the others go on with the old.
    renewing: Mutex<()>,
}

/// What a profile's tools are made with.
#[derive(Clone)]
pub(crate) struct Making {
    pub(crate) links: Links,
    pub(crate) source_timeout: Duration,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A profile's tools at one state of the data, with everything that can be rendered once.
pub struct ProfileState {
    revision: u64,
    pub registry: Registry,
    pub instructions: String,
    /// The result object of a modern-era `tools/list`.
    pub(crate) tools_list: Bytes,
    /// What somebody unknown is shown, where that is less.
    anyone: Option<Box<ProfileState>>,
}

/// For whom tools are described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    Users,
    /// Those who have not said who they are.
    Anyone,
}

impl Profile {
    pub(crate) fn new(
        spec: ProfileSpec,
        sources: Vec<Arc<dyn Source>>,
        making: Making,
    ) -> Result<Self, RegistrationError> {
        let state = ProfileState::new(&spec, &sources, &making)?;
        Ok(Self {
            spec,
            sources,
            making,
            current: ArcSwap::from_pointee(state),
            renewing: Mutex::new(()),
        })
    }

    pub fn name(&self) -> &str {
        &self.spec.name
    }

    pub fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    pub fn sources(&self) -> &[Arc<dyn Source>] {
        &self.sources
    }

    /// The tools as the data is now: made again when a source has changed.
    pub fn state(&self) -> Arc<ProfileState> {
        let current = self.current.load_full();
        if current.revision == revision(&self.sources) {
            return current;
        }
        let Ok(_renewing) = self.renewing.try_lock() else {
            return current;
        };
        match ProfileState::new(&self.spec, &self.sources, &self.making) {
            Ok(state) => {
                let state = Arc::new(state);
                self.current.store(state.clone());
                state
            }
            Err(error) => {
                tracing::error!(profile = self.spec.name, %error, "tools could not be described anew; the old descriptions stay");
                current
            }
        }
    }
}

fn revision(sources: &[Arc<dyn Source>]) -> u64 {
    sources.iter().map(|source| source.revision()).sum()
}

impl ProfileState {
    fn new(spec: &ProfileSpec, sources: &[Arc<dyn Source>], making: &Making) -> Result<Self, RegistrationError> {
        // Read before the facts: if the data changes in between, the next request sees it.
        let revision = revision(sources);
        let (mut registry, facts) = tools(spec, sources, making, Audience::Users)?;
        let (mut for_anyone, facts_for_anyone) = tools(spec, sources, making, Audience::Anyone)?;
        let is_less = for_anyone.names().ne(registry.names()) || facts_for_anyone.len() < facts.len();
        (registry.depends_on_caller, for_anyone.depends_on_caller) = (is_less, is_less);
        let state = |registry: Registry, facts: &[SourceFacts], anyone| Self {
            revision,
            instructions: instructions(facts),
            tools_list: render::tools_list(&registry),
            registry,
            anyone,
        };
        let anyone = is_less.then(|| Box::new(state(for_anyone, &facts_for_anyone, None)));
        Ok(state(registry, &facts, anyone))
    }

    /// What this caller is told of the tools. Calls go to `registry`, which knows why a tool is not for everybody.
    pub fn shown_to(&self, principal: &Principal) -> &Self {
        match (&self.anyone, principal) {
            (Some(anyone), Principal::Anonymous) => anyone,
            _ => self,
        }
    }
}

/// The tools of a profile, and the facts that they are described by.
fn tools(
    spec: &ProfileSpec,
    sources: &[Arc<dyn Source>],
    making: &Making,
    audience: Audience,
) -> Result<(Registry, Vec<SourceFacts>), RegistrationError> {
    let sources: Vec<Arc<dyn Source>> = sources
        .iter()
        .filter(|source| audience == Audience::Users || !source.is_personal())
        .cloned()
        .collect();
    let facts: Vec<SourceFacts> = sources.iter().map(|source| source.facts()).collect();
    let mut registry = Registry::default();
    if spec.wants("search") {
        registry.add(Arc::new(SearchTool::new(
            sources.clone(),
            &facts,
            making.links.clone(),
            making.source_timeout,
            making.clock.clone(),
        )))?;
    }
    if spec.wants("fetch") {
        registry.add(Arc::new(FetchTool::new(sources.clone(), &facts, making.links.clone())))?;
    }
    if spec.wants("find_related") && sources.iter().any(|source| source.relates()) {
        registry.add(Arc::new(RelatedTool::new(
            sources.clone(),
            &facts,
            making.links.clone(),
        )))?;
    }
    for source in &sources {
        let own = source.clone().tools().into_iter();
        let wanted = own.filter(|tool| spec.wants(&tool.spec().name));
        let admin = spec.admin.then(|| source.clone().admin_tools()).into_iter().flatten();
        for tool in wanted.chain(admin) {
            if audience == Audience::Users || !tool.needs_user() {
                registry.add(tool)?;
            }
        }
    }
    Ok((registry, facts))
}

/// Hosts show a model the first 512 characters at most.
fn instructions(facts: &[SourceFacts]) -> String {
    format!(
        "{} Answers come with a url: cite it. Search first, then fetch the id of a result for its full text. An answer that lists `missing` sources is incomplete: say so.",
        overview(facts)
    )
}

/// For callers that hold a poisoned lock and can go on all the same.
pub(crate) fn unpoisoned<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
