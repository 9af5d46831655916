//! Which profiles there are, and which tools each has.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use tribune_core::{Principal, ToolSpec};

use super::{Said, address, is_open, near, private, profile_page, said, tool_page};
use crate::http::callers::Caller;
use crate::http::{App, page};
use crate::profile::Profile;
use crate::service::Service;

const CLOSED: &str = "The profile `admin` is for whoever sends the token of server.admin_token as `Authorization: Bearer TOKEN`. On this machine, `tribune stdio --profile admin` has its tools.";
const SIGN_IN: &str = "Some tools act for a user: sign in with your token on the start page to see them.";

#[derive(Serialize)]
struct ShownProfile {
    name: String,
    page: String,
    address: String,
    of: String,
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
        return Err(Box::new(page::missing(headers, &what, "/try lists the profiles.")));
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
        return page::missing(headers, &what, "/try lists the tools.");
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
            summary: first_sentence(&spec.description).to_owned(),
            hints: said(spec.hints),
        }
    }
}

/// The decisive part of a description comes first.
pub(super) fn first_sentence(text: &str) -> &str {
    const MAX_BYTES: usize = 240;
    let end = text.find(". ").map_or(text.len(), |stop| stop + 1);
    let end = text.find('\n').map_or(end, |line| line.min(end));
    text[..text.floor_char_boundary(end.min(MAX_BYTES))].trim()
}
