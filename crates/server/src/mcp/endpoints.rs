//! `/mcp` and `/sse`, for the default profile, one that a host name selects, or one that the path names.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::Response;
use http::{Request, StatusCode};

use super::message::read_body;
use super::{Sse, Streamable};
use crate::address::host_name;
use crate::identity::{Caller, Guard};
use crate::request::path_after;
use crate::response::rpc;
use crate::service::{Profile, Service};

pub(crate) async fn mcp(
    State(service): State<Arc<Service>>,
    State(streamable): State<Arc<Streamable>>,
    request: Request<Body>,
) -> Response {
    let profile = profile_for_host(&service, &request);
    streamable.handle(profile, request).await
}

pub(crate) async fn mcp_profile(
    State(service): State<Arc<Service>>,
    State(guard): State<Arc<Guard>>,
    State(streamable): State<Arc<Streamable>>,
    mut request: Request<Body>,
) -> Response {
    match profile_in_path(&service, &guard, "/mcp/", &mut request) {
        Ok(profile) => streamable.handle(&profile, request).await,
        Err(refusal) => *refusal,
    }
}

pub(crate) async fn sse(
    State(service): State<Arc<Service>>,
    State(sse): State<Arc<Sse>>,
    request: Request<Body>,
) -> Response {
    let profile = profile_for_host(&service, &request);
    sse.connect(profile, Caller::principal(&request))
}

pub(crate) async fn sse_profile(
    State(service): State<Arc<Service>>,
    State(guard): State<Arc<Guard>>,
    State(sse): State<Arc<Sse>>,
    mut request: Request<Body>,
) -> Response {
    match profile_in_path(&service, &guard, "/sse/", &mut request) {
        // Messages arrive in separate requests, each of which would need the admin token again.
        Ok(profile) if profile.spec().admin => rpc::error(
            StatusCode::FORBIDDEN,
            rpc::SERVER_ERROR,
            "The profile `admin` is not available over HTTP+SSE; use /mcp/admin.",
        ),
        Ok(profile) => sse.connect(&profile, Caller::principal(&request)),
        Err(refusal) => *refusal,
    }
}

pub(crate) async fn sse_message(
    State(service): State<Arc<Service>>,
    State(sse): State<Arc<Sse>>,
    Query(query): Query<HashMap<String, String>>,
    request: Request<Body>,
) -> Response {
    let id = query.get("sessionId").or_else(|| query.get("session_id"));
    let (parts, body) = request.into_parts();
    match read_body(body, &service.settings).await {
        Ok(body) => sse.message(id.map_or("", String::as_str), parts, &body).await,
        Err(refusal) => *refusal,
    }
}

fn profile_for_host<'s>(service: &'s Service, request: &Request<Body>) -> &'s Arc<Profile> {
    match host_name(request.headers(), request.uri()) {
        Some(host) => service.profile_for_host(&host),
        None => service.default_profile(),
    }
}

/// The profile that the path names, if the caller may use it.
fn profile_in_path(
    service: &Service,
    guard: &Guard,
    before: &str,
    request: &mut Request<Body>,
) -> Result<Arc<Profile>, Box<Response>> {
    let name = path_after(request.uri(), before);
    let Some(profile) = service.profile(&name).cloned() else {
        let known: Vec<&str> = service.profiles().map(|profile| profile.name()).collect();
        let message = format!("Unknown profile `{name}`; available: {}", known.join(", "));
        return Err(Box::new(rpc::error(StatusCode::NOT_FOUND, rpc::SERVER_ERROR, &message)));
    };
    if profile.spec().admin {
        guard.callers().admit_admin(request)?;
    }
    Ok(profile)
}
