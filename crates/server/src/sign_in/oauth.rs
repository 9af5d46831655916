//! The endpoints of the built-in issuer, and metadata for hosts that look for one.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use minijinja::context;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};
use tribune_core::{Principal, Scope, Scopes, UserId};
use tribune_oauth::{Authorization, AuthorizeError, Issuer, Refused};

use super::login::accounts;
use super::{record, record_about};
use crate::identity::{Caller, Guard, Need, SignIn, need};
use crate::request::{parse_form, read_limited};
use crate::response::{self, Refusal, page, private, problem};
use crate::sender;
use crate::service::Service;

const MAX_BODY_BYTES: usize = 64 * 1024;

/// What each scope means to the person who allows it.
const fn meaning(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "Search and read what you may read here",
        Scope::Tasks => "See, add, change and delete your tasks",
        Scope::Chat => "Use the chat as you, and read your conversations",
        Scope::Trade => "See the trading account and place orders with real money",
        Scope::Admin => "Change data as an administrator",
    }
}

fn issuer(guard: &Guard) -> Result<&Issuer, Refusal> {
    let issuer = guard.callers().accounts.as_ref().and_then(|accounts| accounts.issuer());
    issuer.ok_or_else(not_here)
}

fn not_here() -> Refusal {
    not_found("This server issues no tokens: [auth] issuer = \"builtin\" is not configured.")
}

fn not_found(message: &str) -> Refusal {
    problem::with_status(StatusCode::NOT_FOUND, "not_found", message).into()
}

/// What the path behind a well-known address names: nothing, or a part of this server. A proxy may hand on the path
/// below which it serves.
fn named(guard: &Guard, path: Option<Path<String>>) -> String {
    let path = path.map_or_else(String::new, |Path(path)| format!("/{}", path.trim_end_matches('/')));
    let base = &guard.callers().page.base;
    path.strip_prefix(base.as_str()).unwrap_or(&path).to_owned()
}

/// `/.well-known/oauth-protected-resource`, bare or with the path of an endpoint.
pub(crate) async fn resource(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    path: Option<Path<String>>,
) -> Result<Response, Refusal> {
    let accounts = accounts(&guard)?;
    let base = service.links.base();
    let issuer = match &accounts.sign_in {
        SignIn::None => return Err(not_here()),
        SignIn::BuiltIn(_) => base,
        SignIn::Elsewhere(issuer, _) => issuer,
    };
    let named = named(&guard, path);
    let resource = if named.is_empty() { "/mcp" } else { &named };
    let profile = resource.strip_prefix("/mcp").or_else(|| resource.strip_prefix("/sse"));
    let is_known = match profile.map(|profile| profile.strip_prefix('/').unwrap_or(profile)) {
        Some("") => true,
        // Who has to sign in first may find out only then which profiles there are.
        Some(_) if service.settings.auth_required => true,
        Some(profile) => service.profile_for(profile, &Caller::anonymous(Arc::from("-"))).is_some(),
        None => false,
    };
    if need(resource) != Need::Profile || !is_known {
        return Err(not_found(&format!("{resource} is not an MCP endpoint of this server.")));
    }
    let scopes: Vec<&str> = Scope::ALL.into_iter().map(Scope::as_str).collect();
    Ok(metadata(&json!({
        "resource": format!("{base}{resource}"),
        "authorization_servers": [issuer],
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
        "resource_name": "Tribune",
        "resource_documentation": format!("{base}/"),
    })))
}

/// `/.well-known/oauth-authorization-server` and `/.well-known/openid-configuration`.
pub(crate) async fn server(State(guard): State<Arc<Guard>>, path: Option<Path<String>>) -> Result<Response, Refusal> {
    let issuer = issuer(&guard)?;
    let named = named(&guard, path);
    if !named.is_empty() {
        let base = &guard.callers().public_url;
        return Err(not_found(&format!(
            "{base}{named} is no issuer. The issuer of this server is {base}, without a path."
        )));
    }
    Ok(metadata(&issuer.metadata()))
}

fn metadata(document: &Value) -> Response {
    let mut response = response::json(StatusCode::OK, document.to_string());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// Tokens are looked up, not signed, so there are no keys.
pub(crate) async fn keys(State(guard): State<Arc<Guard>>) -> Result<Response, Refusal> {
    issuer(&guard)?;
    Ok(metadata(&json!({"keys": []})))
}

pub(crate) async fn register(
    State(guard): State<Arc<Guard>>,
    Extension(caller): Extension<Caller>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let issuer = issuer(&guard)?;
    accounts(&guard)?.count_registration(caller.peer)?;
    let body = body(&guard, request).await?;
    Ok(answer(StatusCode::CREATED, issuer.register(body.as_bytes()).await))
}

pub(crate) async fn token(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let issuer = issuer(&guard)?;
    let client = basic_client(request.headers());
    let body = body(&guard, request).await?;
    let given = issuer.token(&body, client.as_deref()).await;
    let access = given.as_ref().ok().and_then(|given| given["access_token"].as_str());
    if let Some(access) = access
        && let Some((user, scopes, _)) = issuer.authenticate(access).await?
    {
        record_about(&service, &caller, "give a token", user.as_str(), &[&scopes.to_string()], &Ok(()));
    }
    Ok(answer(StatusCode::OK, given))
}

pub(crate) async fn revoke(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let issuer = issuer(&guard)?;
    let body = body(&guard, request).await?;
    let revoked = issuer.revoke(&body).await;
    if let Ok(Some(user)) = &revoked {
        record(&service, &caller, "revoke a token", user.as_str(), &Ok(()));
    }
    Ok(answer(StatusCode::OK, revoked.map(|_| json!({}))))
}

async fn body(guard: &Guard, request: Request<Body>) -> Result<String, Refusal> {
    let read = read_limited(request.into_body(), MAX_BODY_BYTES, guard.callers().timeout).await;
    let read = read.map_err(|(_, why)| answer(StatusCode::OK, Err(Refused::new("invalid_request", why))))?;
    Ok(String::from_utf8_lossy(&read).into_owned())
}

/// A response that must not be cached.
fn answer(status: StatusCode, answer: Result<Value, Refused>) -> Response {
    let (status, body) = match answer {
        Ok(body) => (status, body),
        Err(refused) => {
            let status = StatusCode::from_u16(refused.status()).unwrap_or(StatusCode::BAD_REQUEST);
            (status, refused.json())
        }
    };
    let mut response = response::json(status, body.to_string());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// The program's id, where it comes as the user name of HTTP Basic.
fn basic_client(headers: &HeaderMap) -> Option<String> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let encoded = given.strip_prefix("Basic ")?.trim();
    let decoded = data_encoding::BASE64.decode(encoded.as_bytes()).ok()?;
    let decoded = String::from_utf8(decoded).ok()?;
    let (client, _) = decoded.split_once(':')?;
    let client = percent_encoding::percent_decode_str(client).decode_utf8().ok()?;
    Some(client.into_owned())
}

#[derive(Deserialize)]
struct Decision {
    decision: String,
}

/// Asks the person whether a program may have access, after they have signed in.
pub(crate) async fn authorize(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let query = query.unwrap_or_default();
    let issuer = issuer(&guard)?;
    // Before anything else: strangers could have addresses fetched, and would be sent on to wherever a program says.
    let Some(user) = person(&caller) else {
        return Ok(to_sign_in(&guard, &query));
    };
    let asked = match issuer.authorization(&query, |profile| service.profile_for(profile, &caller).is_some()).await {
        Ok(asked) => asked,
        Err(error) => return Ok(refused(&guard, error)),
    };
    Ok(consent(&guard, &asked, user, caller.scopes, &query))
}

/// The user who has signed in in this browser. A token is no person, nor is a session that was opened with one: a program
/// could give itself more with it, and for longer.
fn person(caller: &Caller) -> Option<&UserId> {
    match &caller.principal {
        Principal::User(user) if caller.has_signed_in => Some(user),
        _ => None,
    }
}

/// The person's decision.
pub(crate) async fn decide(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let query = query.unwrap_or_default();
    let issuer = issuer(&guard)?;
    // Every browser says with a form which page sent it.
    sender::require_own_page(request.headers(), &guard.callers().public_url)?;
    let Some(user) = person(&caller) else {
        return Ok(to_sign_in(&guard, &query));
    };
    let sent: Option<Decision> = parse_form(body(&guard, request).await?.as_bytes());
    let asked = match issuer.authorization(&query, |profile| service.profile_for(profile, &caller).is_some()).await {
        Ok(asked) => asked,
        Err(error) => return Ok(refused(&guard, error)),
    };
    let allows = sent.is_some_and(|sent| sent.decision == "allow");
    let action = if allows { "allow a program" } else { "deny a program" };
    let scopes = asked.scopes.and(caller.scopes).to_string();
    record_about(&service, &caller, action, user.as_str(), &[&asked.client.id, &scopes], &Ok(()));
    let back = match allows {
        true => issuer.allow(&asked, user, caller.scopes).await?,
        false => issuer.deny(&asked),
    };
    tracing::info!(user = user.as_str(), client = asked.client.id, allows, "a program asked for access");
    Ok(private(Redirect::to(&back).into_response()))
}

fn refused(guard: &Guard, error: AuthorizeError) -> Response {
    match error {
        AuthorizeError::Redirect(back) => private(Redirect::to(&back).into_response()),
        AuthorizeError::Shown(next) => {
            let base = &guard.callers().page.base;
            let what = "This program cannot be given access";
            private(page::render(StatusCode::BAD_REQUEST, "missing.html", context! { base, what, next }))
        }
    }
}

fn to_sign_in(guard: &Guard, query: &str) -> Response {
    let base = &guard.callers().page.base;
    let back = format!("/oauth/authorize?{query}");
    let back = utf8_percent_encode(&back, NON_ALPHANUMERIC);
    private(Redirect::to(&format!("{base}/login?back={back}")).into_response())
}

/// `allowed` is what the user may allow.
fn consent(guard: &Guard, asked: &Authorization, user: &UserId, allowed: Scopes, query: &str) -> Response {
    let scopes: Vec<_> = asked.scopes.and(allowed).iter().map(|scope| (scope.as_str(), meaning(scope))).collect();
    let values = context! {
        base => &guard.callers().page.base,
        query,
        name => &asked.client.name,
        client => &asked.client.id,
        host => asked.destination(),
        user => user.as_str(),
        scopes,
        closed => true,
    };
    let mut response = page::render(StatusCode::OK, "consent.html", values);
    // The answer to this form leads to the program.
    page::allow_form_target(&mut response, &asked.form_target());
    private(response)
}
