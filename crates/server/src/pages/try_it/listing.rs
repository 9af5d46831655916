//! The profiles and their tools.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use tribune_core::wire::clip;
use tribune_core::{Principal, ToolSpec};

use super::{HintMeaning, address, hint_meanings, is_open, near, profile_page, tool_page};
use crate::identity::Caller;
use crate::response::{page, private, wants_json};
use crate::service::{Profile, Service};

const CLOSED: &str = "The profile `admin` needs the token of server.admin_token as `Authorization: Bearer TOKEN`. On this machine, `tribune stdio --profile admin` serves it.";
const SIGN_IN: &str = "Some tools need a user: sign in on the start page to see them.";

/// More tools than this need the whole width.
const MAX_IN_COLUMN: usize = 7;

#[derive(Serialize)]
struct ProfileCard {
    name: String,
    page: String,
    address: String,
    sources: String,
    /// Whether its card takes the whole width.
    is_wide: bool,
    instructions: String,
    tools: Vec<ToolCard>,
}

#[derive(Serialize)]
struct ToolCard {
    name: String,
    title: String,
    page: String,
    summary: String,
    hints: [HintMeaning; 4],
}

pub(crate) async fn all(State(service): State<Arc<Service>>, Extension(caller): Extension<Caller>) -> Response {
    profiles(&service, &caller.principal, StatusCode::OK, None)
}

pub(crate) async fn profile(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    match find(&service, &caller.principal, &name, &headers) {
        Ok(profile) => tools(&service, &caller.principal, profile, StatusCode::OK, None),
        Err(refusal) => *refusal,
    }
}

/// A profile that the caller may see, or a page that says why not.
pub(super) fn find<'a>(
    service: &'a Service,
    principal: &Principal,
    name: &str,
    headers: &HeaderMap,
) -> Result<&'a Arc<Profile>, Box<Response>> {
    let what = match service.profile(name) {
        Some(profile) if is_open(profile, principal) => return Ok(profile),
        Some(_) => {
            let response = profiles(
                service,
                principal,
                StatusCode::FORBIDDEN,
                Some((CLOSED.to_owned(), None)),
            );
            return Err(Box::new(response));
        }
        None => format!("Unknown profile “{name}”"),
    };
    if wants_json(headers) {
        return Err(Box::new(page::missing(
            headers,
            service.links.path_prefix(),
            &what,
            "/try lists the profiles.",
        )));
    }
    let known = service.profiles().filter(|profile| is_open(profile, principal));
    let meant = near(name, known.map(|profile| profile.name()));
    let meant = meant.map(|name| (name.to_owned(), profile_page(service.links.path_prefix(), name)));
    Err(Box::new(profiles(
        service,
        principal,
        StatusCode::NOT_FOUND,
        Some((what, meant)),
    )))
}

/// The page for an unknown tool.
pub(super) fn no_tool(
    service: &Service,
    principal: &Principal,
    profile: &Arc<Profile>,
    name: &str,
    headers: &HeaderMap,
) -> Response {
    let mut what = format!("Unknown tool “{name}” in the profile “{}”", profile.name());
    if *principal == Principal::Anonymous {
        what = format!("{what}. {SIGN_IN}");
    }
    if wants_json(headers) {
        return page::missing(headers, service.links.path_prefix(), &what, "/try lists the tools.");
    }
    let state = profile.state();
    let meant = near(name, state.visible_to(principal).registry.names());
    let base = service.links.path_prefix();
    let meant = meant.map(|tool| (tool.to_owned(), tool_page(base, profile.name(), tool)));
    tools(service, principal, profile, StatusCode::NOT_FOUND, Some((what, meant)))
}

/// What is wrong, and the name and page of what may have been meant.
type Problem = Option<(String, Option<(String, String)>)>;

fn profiles(service: &Service, principal: &Principal, status: StatusCode, problem: Problem) -> Response {
    let known = service.profiles().filter(|profile| is_open(profile, principal));
    let shown: Vec<ProfileCard> = known
        .map(|profile| ProfileCard::new(service, profile, principal))
        .collect();
    private(page::render(
        status,
        "try.html",
        context! {
            base => service.links.path_prefix(),
            section => "try",
            profiles => Serde(shown),
            problem => Serde(problem),
        },
    ))
}

fn tools(
    service: &Service,
    principal: &Principal,
    profile: &Arc<Profile>,
    status: StatusCode,
    problem: Problem,
) -> Response {
    private(page::render(
        status,
        "try_profile.html",
        context! {
            base => service.links.path_prefix(),
            section => "try",
            profile => Serde(ProfileCard::new(service, profile, principal)),
            problem => Serde(problem),
        },
    ))
}

impl ProfileCard {
    fn new(service: &Service, profile: &Arc<Profile>, principal: &Principal) -> Self {
        let state = profile.state();
        let state = state.visible_to(principal);
        let base = service.links.path_prefix();
        let sources = match &profile.spec().sources {
            None => "all sources".to_owned(),
            Some(names) => names.join(", "),
        };
        Self {
            name: profile.name().to_owned(),
            page: profile_page(base, profile.name()),
            address: address(service, profile),
            sources,
            is_wide: state.registry.names().count() > MAX_IN_COLUMN,
            instructions: state.instructions.clone(),
            tools: state
                .registry
                .specs()
                .map(|spec| ToolCard::new(spec, base, profile.name()))
                .collect(),
        }
    }
}

impl ToolCard {
    fn new(spec: &ToolSpec, base: &str, profile: &str) -> Self {
        Self {
            name: spec.name.clone(),
            title: spec.title.clone(),
            page: tool_page(base, profile, &spec.name),
            summary: first_sentence(&spec.description),
            hints: hint_meanings(spec.hints),
        }
    }
}

/// The first sentence of a description, which says the most.
pub(super) fn first_sentence(text: &str) -> String {
    const MAX_CHARS: usize = 220;
    let line = text.lines().next().unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |stop| stop + 1);
    let sentence = line[..end].trim();
    let clipped = clip(sentence, MAX_CHARS);
    // Not in the middle of a word.
    match clipped.strip_suffix('…').filter(|_| clipped.len() != sentence.len()) {
        Some(start) => format!("{}…", start.rsplit_once(' ').map_or(start, |(words, _)| words)),
        None => clipped.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn summary_is_one_sentence_or_its_beginning() {
        assert_eq!(first_sentence("Adds a task. Use it often."), "Adds a task.");
        assert_eq!(first_sentence("Adds a task\nand more. Yes."), "Adds a task");
        assert_eq!(first_sentence(""), "");
        let long = first_sentence(&"word ".repeat(100));
        assert!(long.ends_with(" word…") && long.chars().count() <= 221, "{long}");
        assert_eq!(first_sentence(&"é".repeat(300)).chars().count(), 221);
    }
}
