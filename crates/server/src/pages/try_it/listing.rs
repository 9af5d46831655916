//! The profiles and their tools.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use minijinja::{Value, context};
use tribune_core::{Principal, UserId};

use super::{profile_page, shown, tool_page};
use crate::identity::Caller;
use crate::response::{Refusal, page, private, wants_json};
use crate::service::{Profile, Service};

const CLOSED: &str = "The profile `admin` needs the token of server.admin_token as `Authorization: Bearer TOKEN`. On this machine, `tribune stdio --profile admin` serves it.";
const SIGN_IN: &str = "Some tools need a user: sign in on the start page to see them.";

pub(crate) async fn all(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    Visit::new(&service, &caller, &headers).profiles(StatusCode::OK, None)
}

pub(crate) async fn profile(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let visit = Visit::new(&service, &caller, &headers);
    Ok(visit.tools(visit.find(&name)?, StatusCode::OK, None))
}

/// Who looks at the profiles.
pub(super) struct Visit<'a> {
    service: &'a Service,
    caller: &'a Caller,
    headers: &'a HeaderMap,
    base: &'a str,
}

/// What is wrong, and the name and page of what may have been meant.
struct Problem {
    what: String,
    meant: Option<(String, String)>,
}

impl<'a> Visit<'a> {
    pub(super) fn new(service: &'a Service, caller: &'a Caller, headers: &'a HeaderMap) -> Self {
        Self { service, caller, headers, base: service.links.path_prefix() }
    }

    /// A profile that the caller may see, or a page that says why not.
    pub(super) fn find(&self, name: &str) -> Result<&'a Arc<Profile>, Refusal> {
        let (status, what, meant) = match self.service.profile_for(name, self.caller) {
            Some(profile) if self.may_see(profile) => return Ok(profile),
            Some(_) => (StatusCode::FORBIDDEN, CLOSED.to_owned(), None),
            None => {
                let what = format!("Unknown profile “{name}”");
                if wants_json(self.headers) {
                    let next = "/try lists the profiles.";
                    return Err(page::missing(self.headers, self.base, &what, next).into());
                }
                let meant = nearest(name, self.open_profiles().map(|profile| profile.name()));
                let link = |name: &str| (name.to_owned(), profile_page(self.base, name));
                (StatusCode::NOT_FOUND, what, meant.map(link))
            }
        };
        Err(self.profiles(status, Some(Problem { what, meant })).into())
    }

    /// The page for an unknown tool.
    pub(super) fn no_tool(&self, profile: &Arc<Profile>, name: &str) -> Response {
        let mut what = format!("Unknown tool “{name}” in the profile “{}”", profile.name());
        if self.caller.principal == Principal::Anonymous {
            what = format!("{what}. {SIGN_IN}");
        }
        if wants_json(self.headers) {
            return page::missing(self.headers, self.base, &what, "/try lists the tools.");
        }
        let state = profile.state_for(self.caller);
        let meant = nearest(name, state.visible_to(&self.caller.principal).registry.names());
        let meant = meant.map(|tool| (tool.to_owned(), tool_page(self.base, profile.name(), tool)));
        self.tools(profile, StatusCode::NOT_FOUND, Some(Problem { what, meant }))
    }

    /// `admin` needs the admin token.
    fn may_see(&self, profile: &Profile) -> bool {
        !profile.spec().admin || self.caller.principal == Principal::User(UserId::admin())
    }

    fn open_profiles(&self) -> impl Iterator<Item = &'a Arc<Profile>> {
        self.service.profiles_for(self.caller).filter(|profile| self.may_see(profile))
    }

    fn profiles(&self, status: StatusCode, problem: Option<Problem>) -> Response {
        let profiles: Vec<Value> = self.open_profiles().map(|profile| self.card(profile)).collect();
        self.page(status, "try.html", problem, context! { profiles })
    }

    fn tools(&self, profile: &Arc<Profile>, status: StatusCode, problem: Option<Problem>) -> Response {
        let profile = self.card(profile);
        self.page(status, "try_profile.html", problem, context! { profile })
    }

    fn card(&self, profile: &Arc<Profile>) -> Value {
        let state = profile.state_for(self.caller);
        let state = state.visible_to(&self.caller.principal);
        let tools = state.registry.specs();
        let named = |_: &Vec<String>| profile.sources_for(self.caller).map(|source| source.name()).collect::<Vec<_>>();
        let sources = profile.spec().sources.as_ref().map(named);
        context! {
            name => profile.name(),
            page => profile_page(self.base, profile.name()),
            address => self.service.mcp_address(profile),
            sources => sources.map_or_else(|| "all sources".to_owned(), |names| names.join(", ")),
            instructions => &state.instructions,
            tools => tools.map(|spec| shown(spec, self.base, profile.name())).collect::<Vec<_>>(),
        }
    }

    fn page(&self, status: StatusCode, template: &str, problem: Option<Problem>, values: Value) -> Response {
        let problem = problem.map(|Problem { what, meant }| context! { what, meant });
        let values = context! { base => self.base, section => "try", problem, ..values };
        private(page::render(status, template, values))
    }
}

/// The most similar name, if one is similar enough.
fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const NEAR_ENOUGH: f64 = 0.75;
    let measured = names.map(|name| (strsim::jaro_winkler(wanted, name), name));
    let nearest = measured.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (nearest.0 >= NEAR_ENOUGH).then_some(nearest.1)
}
