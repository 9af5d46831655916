//! A selection of tools behind one endpoint, with descriptions that follow the data.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use tribune_core::{Clock, Links, Principal, Source, SourceFacts, Tool};
use tribune_registry::{RegistrationError, Registry};

use crate::contract::{FetchTool, RelatedTool, SearchTool, overview};
use crate::identity::Caller;

/// The most different selections of sources whose tools are kept. Each is what some callers may see.
const MAX_SELECTIONS: usize = 256;

/// Which tools of which sources a profile has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileSpec {
    pub name: String,
    /// Names of sources; `None` for all.
    pub sources: Option<Vec<String>>,
    /// Names of tools; `None` for all that the sources have.
    pub tools: Option<Vec<String>>,
    /// Host names that select this profile at `/mcp`.
    pub hosts: Vec<String>,
    /// Whether it has the sources' admin tools, which change their data. Only the built-in profile `admin` does.
    pub admin: bool,
}

impl ProfileSpec {
    /// The profiles of every server: `default`, `research`, `full`, one for each source, and `admin` if a source has
    /// admin tools.
    pub fn built_in(sources: &[Arc<dyn Source>]) -> Vec<Self> {
        let named = |name: &str| Self { name: name.to_owned(), ..Self::default() };
        let mut specs = vec![
            named("default"),
            Self { tools: Some(vec!["search".to_owned(), "fetch".to_owned()]), ..named("research") },
            named("full"),
        ];
        if sources.iter().any(|source| !source.clone().admin_tools().is_empty()) {
            specs.push(Self { admin: true, ..named("admin") });
        }
        specs.extend(
            sources.iter().map(|source| Self { sources: Some(vec![source.name().to_owned()]), ..named(source.name()) }),
        );
        specs
    }

    fn selects(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool))
    }
}

/// A selection of tools, rebuilt when the data changes.
pub struct Profile {
    spec: ProfileSpec,
    tools: ToolContext,
    /// All sources of the profile.
    all: Selection,
    /// Whether some callers may not use some of the sources.
    depends_on_readers: bool,
    /// What such callers see, by which of the sources they may use.
    narrowed: Mutex<HashMap<Vec<bool>, Arc<Selection>>>,
}

/// Sources that some callers may use, and the tools for them.
struct Selection {
    sources: Vec<Arc<dyn Source>>,
    current: ArcSwap<ProfileState>,
    /// Held while the tools are rebuilt, so that one request rebuilds and the others use the old state. Has the revision
    /// whose rebuild failed: trying again before the data changes would fail again.
    rebuilding: Mutex<Option<u64>>,
}

/// What tools need besides their sources.
#[derive(Clone)]
pub(crate) struct ToolContext {
    pub(crate) links: Links,
    pub(crate) source_timeout: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether a call without a token can start a sign-in: then everybody sees which tools there are.
    pub(crate) offers_oauth: bool,
}

/// A profile's tools at one revision of the data.
pub struct ProfileState {
    revision: u64,
    pub registry: Registry,
    pub instructions: String,
    /// The result of a modern-era `tools/list`, written when it is first asked for.
    pub(crate) tools_list: OnceLock<Bytes>,
    /// What anonymous callers see, if that is less.
    anonymous: Option<Box<ProfileState>>,
}

impl Profile {
    pub(crate) fn new(
        spec: ProfileSpec,
        sources: Vec<Arc<dyn Source>>,
        tools: ToolContext,
    ) -> Result<Self, RegistrationError> {
        let depends_on_readers = sources.iter().any(|source| !source.readers().is_everybody());
        let state = ProfileState::new(&spec, &sources, &tools, revision(&sources), depends_on_readers)?;
        let all = Selection::new(sources, state);
        Ok(Self { spec, tools, all, depends_on_readers, narrowed: Mutex::default() })
    }

    pub fn name(&self) -> &str {
        &self.spec.name
    }

    pub fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    pub fn sources(&self) -> &[Arc<dyn Source>] {
        &self.all.sources
    }

    /// The sources that a caller may use.
    pub(crate) fn sources_for<'a>(&'a self, caller: &'a Caller) -> impl Iterator<Item = &'a Arc<dyn Source>> {
        self.all.sources.iter().filter(|source| caller.may_use(&***source))
    }

    /// Whether there is no such profile for a caller: it is about sources that they may not use.
    pub(crate) fn is_hidden_from(&self, caller: &Caller) -> bool {
        self.depends_on_readers && self.spec.sources.is_some() && self.sources_for(caller).next().is_none()
    }

    /// All tools, as the operator sees them.
    pub fn state(&self) -> Arc<ProfileState> {
        self.state_of(&self.all)
    }

    /// The tools of the sources that a caller may use.
    pub(crate) fn state_for(&self, caller: &Caller) -> Arc<ProfileState> {
        if !self.depends_on_readers {
            return self.state();
        }
        let used: Vec<bool> = self.all.sources.iter().map(|source| caller.may_use(&**source)).collect();
        if !used.contains(&false) {
            return self.state();
        }
        let known = self.narrowed.lock().get(&used).cloned();
        let selection = known.unwrap_or_else(|| {
            let selection = Arc::new(self.narrowed(self.sources_for(caller).cloned().collect()));
            let mut narrowed = self.narrowed.lock();
            if narrowed.len() >= MAX_SELECTIONS {
                narrowed.clear();
            }
            narrowed.insert(used, selection.clone());
            selection
        });
        self.state_of(&selection)
    }

    fn narrowed(&self, sources: Vec<Arc<dyn Source>>) -> Selection {
        let state = ProfileState::new(&self.spec, &sources, &self.tools, revision(&sources), true);
        let state = state.unwrap_or_else(|error| {
            tracing::error!(profile = self.spec.name, %error, "could not make the tools of some of the sources");
            ProfileState::empty()
        });
        Selection::new(sources, state)
    }

    /// The tools for the current data, rebuilt when a source has changed. If a rebuild fails, the last good state
    /// serves until the data changes again.
    fn state_of(&self, selection: &Selection) -> Arc<ProfileState> {
        let Selection { sources, current: state, rebuilding } = selection;
        let current = state.load_full();
        let revision = revision(sources);
        if current.revision == revision {
            return current;
        }
        let Some(mut failed_revision) = rebuilding.try_lock() else {
            return current;
        };
        if *failed_revision == Some(revision) {
            return current;
        }
        match ProfileState::new(&self.spec, sources, &self.tools, revision, self.depends_on_readers) {
            Ok(new) => {
                let new = Arc::new(new);
                state.store(new.clone());
                *failed_revision = None;
                new
            }
            Err(error) => {
                *failed_revision = Some(revision);
                tracing::error!(
                    profile = self.spec.name,
                    revision,
                    %error,
                    "could not rebuild the tools after a source changed; serving the previous tools"
                );
                current
            }
        }
    }
}

impl Selection {
    fn new(sources: Vec<Arc<dyn Source>>, state: ProfileState) -> Self {
        Self { sources, current: ArcSwap::from_pointee(state), rebuilding: Mutex::default() }
    }
}

fn revision(sources: &[Arc<dyn Source>]) -> u64 {
    sources.iter().map(|source| source.revision()).sum()
}

impl ProfileState {
    /// `revision` was read before the facts: if the data changes in between, the next request rebuilds.
    fn new(
        spec: &ProfileSpec,
        sources: &[Arc<dyn Source>],
        tools: &ToolContext,
        revision: u64,
        depends_on_readers: bool,
    ) -> Result<Self, RegistrationError> {
        let (mut registry, facts) = register(spec, sources, tools, false)?;
        let (mut anonymous, anonymous_facts) = register(spec, sources, tools, true)?;
        let is_less = anonymous.names().ne(registry.names()) || anonymous_facts.len() < facts.len();
        let depends_on_caller = is_less || depends_on_readers;
        (registry.depends_on_caller, anonymous.depends_on_caller) = (depends_on_caller, depends_on_caller);
        let state = |registry: Registry, facts: &[SourceFacts], anonymous| Self {
            revision,
            instructions: instructions(facts),
            tools_list: OnceLock::new(),
            registry,
            anonymous,
        };
        let anonymous = is_less.then(|| Box::new(state(anonymous, &anonymous_facts, None)));
        Ok(state(registry, &facts, anonymous))
    }

    /// Without tools.
    fn empty() -> Self {
        Self {
            revision: 0,
            registry: Registry::default(),
            instructions: String::new(),
            tools_list: OnceLock::new(),
            anonymous: None,
        }
    }

    /// What this caller may see. Calls go to `registry`, which says why a tool is refused.
    pub fn visible_to(&self, principal: &Principal) -> &Self {
        match (&self.anonymous, principal) {
            (Some(anonymous), Principal::Anonymous) => anonymous,
            _ => self,
        }
    }
}

/// The tools of a profile as users or anonymous callers see it, and the facts in their descriptions.
fn register(
    spec: &ProfileSpec,
    sources: &[Arc<dyn Source>],
    tools: &ToolContext,
    is_anonymous: bool,
) -> Result<(Registry, Vec<SourceFacts>), RegistrationError> {
    let shows_all = !is_anonymous || tools.offers_oauth;
    let all = sources;
    let sources: Vec<Arc<dyn Source>> =
        sources.iter().filter(|source| !is_anonymous || !source.is_personal()).cloned().collect();
    let facts: Vec<SourceFacts> = sources.iter().map(|source| source.facts()).collect();
    let links = &tools.links;
    let search = SearchTool::new(sources.clone(), &facts, links.clone(), tools.source_timeout, tools.clock.clone());
    let fetch = FetchTool::new(sources.clone(), &facts, links.clone());
    let mut offered: Vec<Arc<dyn Tool>> = vec![Arc::new(search), Arc::new(fetch)];
    if sources.iter().any(|source| source.relates()) {
        offered.push(Arc::new(RelatedTool::new(sources.clone(), &facts, links.clone())));
    }
    let with_tools = if shows_all { all } else { &sources };
    offered.extend(with_tools.iter().flat_map(|source| source.clone().tools()));
    offered.retain(|tool| spec.selects(&tool.spec().name));
    if spec.admin {
        offered.extend(sources.iter().flat_map(|source| source.clone().admin_tools()));
    }
    let mut registry = Registry::default();
    for tool in offered {
        if shows_all || !tool.needs_user() {
            registry.add(tool)?;
        }
    }
    Ok((registry, facts))
}

/// Hosts show a model at most the first 512 characters.
fn instructions(facts: &[SourceFacts]) -> String {
    format!(
        "{} Answers come with a url: cite it. Search first, then fetch the id of a result for its full text. An answer that lists `missing` sources is incomplete: say so.",
        overview(facts)
    )
}
