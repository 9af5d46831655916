//! `/`: what is served, how to connect, and a search to try.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use minijinja::context;
use serde_json::Value;
use tribune_core::{CallContext, JsonObject, Principal, Source, SourceStatus, UserId};

use super::callers::Caller;
use super::{App, chat, page};
use crate::call;
use crate::service::NoChat;

pub(super) async fn home(
    State(app): State<App>,
    Query(asked): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let service = &app.service;
    let is_known = caller.principal != Principal::Anonymous;
    // Nobody is told more than how to say who they are.
    let closed = service.settings.auth_required && !is_known;
    let shown = |source: &&Arc<dyn Source>| !closed && (is_known || !source.is_personal());
    let sources: Vec<_> = service
        .sources()
        .iter()
        .filter(shown)
        .map(|source| {
            let facts = source.facts();
            let (status, reason) = match source.status() {
                SourceStatus::Ready => ("ready", None),
                SourceStatus::Degraded(reason) => ("degraded", Some(reason)),
                SourceStatus::Unready(reason) => ("not ready", Some(reason)),
            };
            context! {
                count => facts.counted(),
                ids => facts.ids(),
                name => facts.name,
                title => facts.title,
                description => facts.description,
                dates => facts.dates.map(|(first, last)| {
                    if first == last { first.to_string() } else { format!("{first} to {last}") }
                }),
                status,
                reason,
            }
        })
        .collect();
    let profiles: Vec<_> = service
        .profiles()
        .filter(|_| !closed)
        .map(|profile| {
            let state = profile.state();
            let state = state.shown_to(&caller.principal);
            context! {
                name => profile.name(),
                address => match profile.name() {
                    "default" => format!("{}/mcp", service.links.base()),
                    name => format!("{}/mcp/{name}", service.links.base()),
                },
                tools => state.registry.names().collect::<Vec<_>>().join(", "),
            }
        })
        .collect();
    let query = asked.get("q").map_or("", |query| query.trim());
    let user = caller.principal.user();
    let local = caller.principal == Principal::Local;
    let (model, missing_model) = chat::state(&service.chat);
    let unusable = matches!(service.chat, Err(NoChat::Unusable(_)));
    let talk = query.is_empty() && (closed || model.is_some() || any_personal(service.sources()));
    let (results, problem) = if query.is_empty() || closed {
        (None, None)
    } else {
        search(&app, query, caller).await
    };
    let base = service.links.base();
    let mut response = page::render(
        StatusCode::OK,
        "home.html",
        context! {
            base => service.links.path_prefix(),
            address => format!("{base}/mcp"),
            sse => format!("{base}/sse"),
            public => base.starts_with("https://"),
            version => env!("CARGO_PKG_VERSION"),
            user => user.as_ref().map(UserId::as_str),
            local,
            closed,
            model,
            missing_model,
            unusable,
            talk,
            sources,
            profiles,
            query,
            results => minijinja::value::Serde(&results),
            problem,
        },
    );
    if is_known {
        let nowhere = HeaderValue::from_static("private, no-store");
        response.headers_mut().insert(header::CACHE_CONTROL, nowhere);
    }
    response
}

/// Whether there is something to sign in for.
fn any_personal(sources: &[Arc<dyn Source>]) -> bool {
    sources.iter().any(|source| source.is_personal())
}

/// Runs the very tool that hosts call.
async fn search(app: &App, query: &str, caller: Caller) -> (Option<Value>, Option<String>) {
    let service = &app.service;
    let state = service.default_profile().state();
    let Some(tool) = state.registry.lookup("search") else {
        return (None, Some("this server has no search".to_owned()));
    };
    let mut cx = CallContext::new(
        caller.principal,
        service.clock.monotonic() + service.settings.call_timeout,
    );
    cx.correlation_id = caller.correlation_id;
    let args = JsonObject::from_iter([("query".to_owned(), Value::from(query))]);
    match call::run(service, &tool, args, &cx).await {
        Ok(output) => (serde_json::from_str(output.json()).ok(), None),
        Err(error) => (None, Some(error.message().to_owned())),
    }
}
