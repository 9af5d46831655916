//! `/mcp` and `/sse`, for the default profile, one that a host name selects, or one that the path names.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::{Request, StatusCode};

use super::message::read_body;
use super::{Sse, Streamable};
use crate::address::host_name;
use crate::identity::{Caller, Guard};
use crate::response::{Refusal, rpc};
use crate::service::{Profile, Service};

pub(crate) async fn mcp(
    State(service): State<Arc<Service>>,
    State(guard): State<Arc<Guard>>,
    State(streamable): State<Arc<Streamable>>,
    name: Option<Path<String>>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let profile = select_profile(&service, &guard, name, &request)?;
    Ok(streamable.handle(&profile, request).await)
}

pub(crate) async fn sse(
    State(service): State<Arc<Service>>,
    State(guard): State<Arc<Guard>>,
    State(sse): State<Arc<Sse>>,
    name: Option<Path<String>>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let profile = select_profile(&service, &guard, name, &request)?;
    // Messages arrive in separate requests, each of which would need the admin token again.
    if profile.spec().admin {
        let message = "The profile `admin` is not available over HTTP+SSE; use /mcp/admin.";
        return Err(rpc::error(StatusCode::FORBIDDEN, rpc::SERVER_ERROR, message).into());
    }
    Ok(sse.connect(&profile, &Caller::new(&request)))
}

pub(crate) async fn sse_message(
    State(service): State<Arc<Service>>,
    State(sse): State<Arc<Sse>>,
    Query(query): Query<HashMap<String, String>>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let id = query.get("sessionId").or_else(|| query.get("session_id"));
    let (parts, body) = request.into_parts();
    let body = read_body(body, &service.settings).await?;
    Ok(sse.message(id.map_or("", String::as_str), parts, &body).await)
}

/// The profile that the path or the host name selects, if the caller may use it.
fn select_profile(
    service: &Service,
    guard: &Guard,
    name: Option<Path<String>>,
    request: &Request<Body>,
) -> Result<Arc<Profile>, Refusal> {
    let caller = Caller::new(request);
    let Some(Path(name)) = name else {
        let host = host_name(request.headers(), request.uri());
        let profile = host.map_or_else(|| service.default_profile(), |host| service.profile_for_host(&host));
        let profile = if profile.is_hidden_from(&caller) { service.default_profile() } else { profile };
        admit_to(profile, request)?;
        return Ok(profile.clone());
    };
    let Some(profile) = service.profile_for(&name, &caller).cloned() else {
        let known: Vec<&str> = service.profiles_for(&caller).map(|profile| profile.name()).collect();
        let message = format!("Unknown profile `{name}`; available: {}", known.join(", "));
        return Err(rpc::error(StatusCode::NOT_FOUND, rpc::SERVER_ERROR, &message).into());
    };
    if profile.spec().admin {
        guard.callers().admit_admin(request)?;
    }
    admit_to(&profile, request)?;
    Ok(profile)
}

/// Refuses a token that opens only another profile.
fn admit_to(profile: &Profile, request: &Request<Body>) -> Result<(), Refusal> {
    let only = request.extensions().get::<Caller>().and_then(|caller| caller.profile.as_deref());
    match only.filter(|only| *only != profile.name()) {
        None => Ok(()),
        Some(only) => {
            let message = format!("This token opens only the profile `{only}`, at /mcp/{only}.");
            Err(rpc::error(StatusCode::FORBIDDEN, rpc::SERVER_ERROR, &message).into())
        }
    }
}
