//! `/`: what is served, how to connect, a search over everything, and the chat.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use minijinja::{Value as Page, context};
use serde_json::Value;
use tribune_core::{CallContext, JsonObject, Links, Principal, Result, Source, UserId};

use tribune_draw::Element;

use super::callers::Caller;
use super::{App, chat, page, problem, sources};
use crate::call;
use crate::connect::{Host, Reach};
use crate::mcp::rpc;
use crate::service::{NoChat, Service};

/// A selection of so few is told by name.
const FEW_TOOLS: usize = 5;

pub(super) async fn home(
    State(app): State<App>,
    Query(asked): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let service = &app.service;
    let is_known = caller.principal != Principal::Anonymous;
    // Nobody is told more than how to say who they are.
    let closed = service.settings.auth_required && !is_known;
    let query = asked.get("q").map_or("", |query| query.trim());
    let mut response = if query.is_empty() || closed {
        overview(service, &caller.principal, closed)
    } else {
        results(service, query, caller, &headers).await
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Cookie"));
    if is_known {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
    response
}

fn overview(service: &Service, principal: &Principal, closed: bool) -> Response {
    let user = principal.user();
    let base = service.links.base();
    let (model, missing_model) = chat::state(&service.chat);
    let guides: Vec<_> = Host::ALL
        .map(|host| guide(host, base, service.settings.auth_required))
        .into();
    let sources = (!closed).then(|| sources::region(service, *principal != Principal::Anonymous));
    page::render(
        StatusCode::OK,
        "home.html",
        context! {
            base => service.links.path_prefix(),
            version => env!("CARGO_PKG_VERSION"),
            user => user.as_ref().map(UserId::as_str),
            local => *principal == Principal::Local,
            closed,
            model => &model,
            missing_model,
            unusable => matches!(service.chat, Err(NoChat::Unusable(_))),
            // Whoever can chat came to chat; others want to know first where they are.
            chat_first => closed || (model.is_some() && user.is_some()),
            // There is something to sign in for.
            talk => closed || model.is_some() || service.sources().iter().any(|source| source.is_personal()),
            titles => titles(service.sources()),
            sources => sources.map(|region| Page::from_safe_string(region.element.to_string())),
            profiles => if closed { Vec::new() } else { profiles(service, principal) },
            guides,
            warning => Reach::of(base).warning(base),
        },
    )
}

/// What the chat may be asked about.
fn titles(sources: &[Arc<dyn Source>]) -> Vec<String> {
    let shared = sources.iter().filter(|source| !source.is_personal());
    shared.map(|source| source.facts().title).collect()
}

fn guide(host: Host, base: &str, needs_token: bool) -> Page {
    let guide = host.guide(base, needs_token);
    context! {
        name => guide.name,
        key => guide.name.to_lowercase().replace(' ', "-"),
        steps => guide.steps,
        paste => guide.paste,
        note => guide.note.map(|note| Page::from_safe_string(ticked(&note).to_string())),
        needs_public => guide.needs_public,
    }
}

/// Text in which backticks set off what is exact.
fn ticked(text: &str) -> Element {
    let mut whole = Element::new("span");
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 0 {
            whole.push(part.to_owned());
        } else {
            whole.push(Element::new("code").text(part.to_owned()));
        }
    }
    whole
}

fn profiles(service: &Service, principal: &Principal) -> Vec<Page> {
    let base = service.links.base();
    let profile = |profile: &Arc<crate::Profile>| {
        let state = profile.state();
        let names: Vec<&str> = state.shown_to(principal).registry.names().collect();
        let tools = match names.len() {
            0..=FEW_TOOLS => names.join(", "),
            many => format!("{many} tools"),
        };
        context! {
            name => profile.name(),
            address => match profile.name() {
                "default" => format!("{base}/mcp"),
                name => format!("{base}/mcp/{name}"),
            },
            tools,
        }
    };
    service.profiles().map(profile).collect()
}

/// What was found, as a page or, for the page that asks while somebody types, as JSON.
async fn results(service: &Service, query: &str, caller: Caller, headers: &HeaderMap) -> Response {
    let found = search(service, query, caller).await;
    if page::wants_json(headers) {
        return match found {
            Ok(found) => rpc::json_response(StatusCode::OK, found.to_string()),
            Err(error) => problem::of(&error),
        };
    }
    let (found, problem) = match found {
        Ok(found) => (Some(found), None),
        Err(error) => (None, Some(error.message().to_owned())),
    };
    page::render(
        StatusCode::OK,
        "results.html",
        context! {
            base => service.links.path_prefix(),
            query,
            found => minijinja::value::Serde(&found),
            problem,
        },
    )
}

/// Runs the very tool that hosts call; `href` of each result is its page on the address that the reader came by.
async fn search(service: &Service, query: &str, caller: Caller) -> Result<Value> {
    let state = service.default_profile().state();
    let tool = state.registry.lookup("search");
    let tool = tool.ok_or_else(|| tribune_core::Error::not_found("this server has no search"))?;
    let mut cx = CallContext::new(
        caller.principal,
        service.clock.monotonic() + service.settings.call_timeout,
    );
    cx.correlation_id = caller.correlation_id;
    let cx = cx.uncited();
    let args = JsonObject::from_iter([("query".to_owned(), Value::from(query))]);
    let output = call::run(service, &tool, args, &cx).await?;
    let mut found: Value = serde_json::from_str(output.json())
        .map_err(|error| tribune_core::Error::internal("the results are not JSON").caused_by(error))?;
    for hit in found["results"].as_array_mut().into_iter().flatten() {
        hit["href"] = href(service, hit).into();
        hit["source"] = source_of(service, hit).into();
    }
    Ok(found)
}

/// What the owner calls the source of a result.
fn source_of(service: &Service, hit: &Value) -> Option<String> {
    let scheme = hit["id"].as_str()?.split(':').next()?;
    let source = service.sources().iter().find(|source| source.owns(scheme))?;
    Some(source.facts().title)
}

/// A person wants the present, not a record of it, and the page here, not the original.
fn href(service: &Service, hit: &Value) -> String {
    let url = hit["url"].as_str().unwrap_or_default();
    let passage = url.split_once("?passage=").map(|(_, rest)| rest.split('#').next());
    let passage = passage.flatten().and_then(|number| number.parse().ok());
    let id = hit["id"].as_str().unwrap_or_default();
    match tribune_core::DocumentId::parse(id) {
        Ok(id) => Links::new(service.links.path_prefix()).citation(&id, passage),
        Err(_) => url.to_owned(),
    }
}
