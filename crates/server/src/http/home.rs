//! `/`: what is served, how to connect, and a search to try.

use std::collections::HashMap;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use http::StatusCode;
use minijinja::context;
use serde_json::Value;
use tribune_core::{CallContext, JsonObject, SourceStatus};

use super::guard::Caller;
use super::{App, page};
use crate::call;

pub(super) async fn home(
    State(app): State<App>,
    Query(asked): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let service = &app.service;
    let sources: Vec<_> = service
        .sources()
        .iter()
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
        .map(|profile| {
            let state = profile.state();
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
    let (results, problem) = if query.is_empty() {
        (None, None)
    } else {
        search(&app, query, caller).await
    };
    let base = service.links.base();
    page::render(
        StatusCode::OK,
        "home.html",
        context! {
            base => service.links.path_prefix(),
            address => format!("{base}/mcp"),
            sse => format!("{base}/sse"),
            public => base.starts_with("https://"),
            version => env!("CARGO_PKG_VERSION"),
            sources,
            profiles,
            query,
            results => minijinja::value::Serde(&results),
            problem,
        },
    )
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
