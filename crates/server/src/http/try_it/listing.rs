//! Which profiles there are, and which tools each has.

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

use super::{Said, address, is_open, near, private, profile_page, said, tool_page};
use crate::http::callers::Caller;
use crate::http::{App, page};
use crate::profile::Profile;
use crate::service::Service;

const CLOSED: &str = "The profile `admin` is for whoever sends the token of server.admin_token as `Authorization: Bearer TOKEN`. On this machine, `tribune stdio --profile admin` has its tools.";
const SIGN_IN: &str = "Some tools act for a user: sign in with your token on the start page to see them.";

/// More tools than fit well beside another profile.
const MOST_IN_A_COLUMN: usize = 7;

#[derive(Serialize)]
struct ShownProfile {
    name: String,
    page: String,
    address: String,
    of: String,
    /// Whether its card takes the whole width.
    is_wide: bool,
    instructions: String,
    tools: Vec<ShownTool>,
}

#[derive(Serialize)]
struct ShownTool {
    name: String,
    title: String,
    page: String,
    summary: String,
    hints: [Said; 4],
}

pub(in crate::http) async fn all(State(app): State<App>, Extension(caller): Extension<Caller>) -> Response {
    profiles(&app, &caller.principal, StatusCode::OK, None)
}

pub(in crate::http) async fn profile(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    match find(&app, &caller.principal, &name, &headers) {
        Ok(profile) => tools(&app, &caller.principal, profile, StatusCode::OK, None),
        Err(refusal) => *refusal,
    }
}

/// A profile that the caller may see, or a page that says why there is none.
pub(super) fn find<'a>(
    app: &'a App,
    principal: &Principal,
    name: &str,
    headers: &HeaderMap,
) -> Result<&'a Arc<Profile>, Box<Response>> {
    let what = match app.service.profile(name) {
        Some(profile) if is_open(profile, principal) => return Ok(profile),
        Some(_) => {
            let response = profiles(app, principal, StatusCode::FORBIDDEN, Some((CLOSED.to_owned(), None)));
            return Err(Box::new(response));
        }
        None => format!("There is no profile “{name}” here"),
    };
    if page::wants_json(headers) {
        return Err(Box::new(page::missing(
            headers,
            app.service.links.path_prefix(),
            &what,
            "/try lists the profiles.",
        )));
    }
    let known = app.service.profiles().filter(|profile| is_open(profile, principal));
    let meant = near(name, known.map(|profile| profile.name()));
    let meant = meant.map(|name| (name.to_owned(), profile_page(app.service.links.path_prefix(), name)));
    Err(Box::new(profiles(
        app,
        principal,
        StatusCode::NOT_FOUND,
        Some((what, meant)),
    )))
}

/// The page for a tool that is not there.
pub(super) fn no_tool(
    app: &App,
    principal: &Principal,
    profile: &Arc<Profile>,
    name: &str,
    headers: &HeaderMap,
) -> Response {
    let mut what = format!("There is no tool “{name}” in the profile “{}”", profile.name());
    if *principal == Principal::Anonymous {
        what = format!("{what}. {SIGN_IN}");
    }
    if page::wants_json(headers) {
        return page::missing(headers, app.service.links.path_prefix(), &what, "/try lists the tools.");
    }
    let state = profile.state();
    let meant = near(name, state.shown_to(principal).registry.names());
    let base = app.service.links.path_prefix();
    let meant = meant.map(|tool| (tool.to_owned(), tool_page(base, profile.name(), tool)));
    tools(app, principal, profile, StatusCode::NOT_FOUND, Some((what, meant)))
}

/// What is wrong, and what may have been meant: its name and its page.
type Problem = Option<(String, Option<(String, String)>)>;

fn profiles(app: &App, principal: &Principal, status: StatusCode, problem: Problem) -> Response {
    let known = app.service.profiles().filter(|profile| is_open(profile, principal));
    let shown: Vec<ShownProfile> = known
        .map(|profile| ShownProfile::of(&app.service, profile, principal))
        .collect();
    private(page::render(
        status,
        "try.html",
        context! {
            base => app.service.links.path_prefix(),
            section => "try",
            profiles => Serde(shown),
            problem => Serde(problem),
        },
    ))
}

fn tools(app: &App, principal: &Principal, profile: &Arc<Profile>, status: StatusCode, problem: Problem) -> Response {
    private(page::render(
        status,
        "try_profile.html",
        context! {
            base => app.service.links.path_prefix(),
            section => "try",
            profile => Serde(ShownProfile::of(&app.service, profile, principal)),
            problem => Serde(problem),
        },
    ))
}

impl ShownProfile {
    fn of(service: &Service, profile: &Arc<Profile>, principal: &Principal) -> Self {
        let state = profile.state();
        let state = state.shown_to(principal);
        let base = service.links.path_prefix();
        let of = match &profile.spec().sources {
            None => "all sources".to_owned(),
            Some(names) => names.join(", "),
        };
        Self {
            name: profile.name().to_owned(),
            page: profile_page(base, profile.name()),
            address: address(service, profile),
            of,
            is_wide: state.registry.names().count() > MOST_IN_A_COLUMN,
            instructions: state.instructions.clone(),
            tools: state
                .registry
                .specs()
                .map(|spec| ShownTool::of(spec, base, profile.name()))
                .collect(),
        }
    }
}

impl ShownTool {
    fn of(spec: &ToolSpec, base: &str, profile: &str) -> Self {
        Self {
            name: spec.name.clone(),
            title: spec.title.clone(),
            page: tool_page(base, profile, &spec.name),
            summary: first_sentence(&spec.description),
            hints: said(spec.hints),
        }
    }
}

/// The decisive part of a description comes first.
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
    fn a_summary_is_one_sentence_or_its_beginning() {
        assert_eq!(first_sentence("Adds a task. Use it often."), "Adds a task.");
        assert_eq!(first_sentence("Adds a task\nand more. Yes."), "Adds a task");
        assert_eq!(first_sentence(""), "");
        let long = first_sentence(&"word ".repeat(100));
        assert!(long.ends_with(" word…") && long.chars().count() <= 221, "{long}");
        assert_eq!(first_sentence(&"é".repeat(300)).chars().count(), 221);
    }
}
