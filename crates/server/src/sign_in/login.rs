//! `/login`: people sign in with a password, at a provider, or with an API token (`/session`).

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use data_encoding::BASE64URL_NOPAD;
use http::{HeaderMap, Request, StatusCode, header};
use serde::Deserialize;
use tribune_core::{Error, ErrorKind, UserId};
use tribune_oauth::login::Pending;
use tribune_storage::User;

use super::record;
use crate::identity::{Accounts, Caller, Guard, NewSession, own_path};
use crate::request::{parse_form, read_limited};
use crate::response::{Refusal, page, private, problem};
use crate::sender;
use crate::service::Service;

const MAX_BODY_BYTES: usize = 16 * 1024;
/// How long a sign-in at a provider may take.
const PENDING_SECS: u64 = 600;
const INVALID: &str = "Invalid token: it is mistyped, expired or revoked.";

#[derive(Deserialize)]
struct Password {
    username: String,
    password: String,
    #[serde(default)]
    back: String,
}

#[derive(Deserialize)]
struct ApiToken {
    token: String,
    /// Where a form redirects to.
    #[serde(default)]
    back: String,
}

type Parameters = Query<HashMap<String, String>>;

pub(crate) async fn form(State(guard): State<Arc<Guard>>, Query(parameters): Parameters) -> Response {
    let back = parameters.get("back").map_or("/", |back| own_path(back));
    private(page::sign_in(&guard.callers().page, StatusCode::OK, back, None))
}

/// Takes a name and a password.
pub(crate) async fn sign_in(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let accounts = accounts(&guard)?;
    let (headers, body, _) = read(&guard, request).await?;
    let sent: Password = parse_form(&body).ok_or_else(|| invalid("send the fields username and password"))?;
    let back = own_path(&sent.back);
    let refused = |error: &Error| {
        let status = match error.kind() {
            ErrorKind::Forbidden => StatusCode::UNAUTHORIZED,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        private(page::sign_in(&guard.callers().page, status, back, Some(error.message())))
    };
    let name = sent.username.trim();
    let checked = accounts.check_password(name, sent.password, caller.peer).await;
    record(&service, &caller, "sign in", name, &checked);
    match checked {
        Ok(user) => signed_in(&guard, accounts, &user, back, &headers).await,
        Err(error) if matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::RateLimited) => Ok(refused(&error)),
        Err(error) => Err(error.into()),
    }
}

/// Signs in the person at this machine, who has the link that `tribune serve` printed.
pub(crate) async fn local(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let callers = guard.callers();
    let key = parameters.get("key").map_or("", String::as_str);
    let is_valid = callers.local.as_ref().is_some_and(|local| local.is_key(key));
    let checked = is_valid.then_some(()).ok_or_else(|| {
        Error::forbidden("This link is no longer valid: each start of `tribune serve` prints a new one.")
    });
    let local = UserId::local();
    record(&service, &caller, "sign in", local.as_str(), &checked);
    if let Err(error) = checked {
        return Ok(private(page::sign_in(&callers.page, StatusCode::UNAUTHORIZED, "/", Some(error.message()))));
    }
    let mut response = Redirect::to(&format!("{}/", callers.page.base)).into_response();
    let session = NewSession::local(&local);
    callers.cookie.begin(&mut response, &headers, accounts(&guard)?, session).await?;
    Ok(private(response))
}

/// Sends the browser to the provider.
pub(crate) async fn begin(State(guard): State<Arc<Guard>>, Query(parameters): Parameters) -> Result<Response, Refusal> {
    let accounts = accounts(&guard)?;
    let provider = accounts.provider.as_ref().ok_or_else(no_provider)?;
    let back = parameters.get("back").map_or("/", |back| own_path(back));
    let (address, pending) = provider.begin(&guard.callers().callback(), back).await?;
    let mut response = Redirect::to(&address).into_response();
    let kept = serde_json::to_vec(&pending).unwrap_or_default();
    let cookie = &guard.callers().pending;
    cookie.set(&mut response, &BASE64URL_NOPAD.encode(&kept), PENDING_SECS);
    Ok(private(response))
}

/// Where the provider sends the browser back to.
pub(crate) async fn finish(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let callers = guard.callers();
    let kept = callers.pending.read(&headers);
    let kept = kept.and_then(|kept| BASE64URL_NOPAD.decode(kept.as_bytes()).ok());
    let pending: Option<Pending> = kept.and_then(|kept| serde_json::from_slice(&kept).ok());
    let back = pending.as_ref().map_or("/", |pending| own_path(&pending.back)).to_owned();
    let finished = at_provider(&guard, &parameters, pending).await;
    let who = finished.as_ref().map_or("?", |user| user.name.as_str());
    record(&service, &caller, "sign in at the provider", who, &finished);
    let mut response = match finished {
        Ok(user) => signed_in(&guard, accounts(&guard)?, &user, &back, &headers).await?,
        Err(error) => {
            let why = Some(error.message());
            private(page::sign_in(&callers.page, StatusCode::UNAUTHORIZED, &back, why))
        }
    };
    callers.pending.forget(&mut response);
    Ok(response)
}

/// The user who has signed in at the provider.
async fn at_provider(
    guard: &Guard,
    parameters: &HashMap<String, String>,
    pending: Option<Pending>,
) -> Result<User, Error> {
    let accounts = accounts(guard)?;
    let provider = accounts.provider.as_ref().ok_or_else(no_provider)?;
    let state = parameters.get("state");
    let pending = pending.filter(|pending| Some(&pending.state) == state).ok_or_else(|| {
        Error::forbidden("This sign-in was not begun in this browser, or too long ago. Sign in again.")
    })?;
    // A provider that says who it is must be the one that was asked (RFC 9207).
    if parameters.get("iss").is_some_and(|issuer| issuer != provider.issuer()) {
        return Err(Error::forbidden(format!("Another provider than {} answered. Sign in again.", provider.host())));
    }
    let code = parameters.get("code").ok_or_else(|| {
        let why = parameters.get("error").map_or("", String::as_str);
        Error::forbidden(format!("{} did not let you sign in: {why}", provider.host()))
    })?;
    let callback = guard.callers().callback();
    let name = provider.finish(code, &pending, &callback, &accounts.users).await?;
    let user = accounts.users.find(&name).await?;
    user.ok_or_else(|| Error::unavailable("The user was just removed."))
}

async fn signed_in(
    guard: &Guard,
    accounts: &Accounts,
    user: &User,
    back: &str,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let callers = guard.callers();
    let mut response = Redirect::to(&format!("{}{back}", callers.page.base)).into_response();
    callers.cookie.begin(&mut response, headers, accounts, NewSession::of(user)).await?;
    Ok(private(response))
}

/// Takes an API token as JSON or from a form.
pub(crate) async fn use_token(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let accounts = accounts(&guard)?;
    let (headers, body, is_form) = read(&guard, request).await?;
    let sent: Option<ApiToken> = match is_form {
        true => parse_form(&body),
        false => serde_json::from_slice(&body).ok(),
    };
    let ApiToken { token, back } = sent.ok_or_else(|| invalid("send {\"token\": \"…\"}"))?;
    let (callers, back) = (guard.callers(), own_path(&back));
    let found = accounts.api_token(token.trim()).await?;
    let checked = found.as_ref().ok_or_else(|| Error::forbidden(INVALID));
    let who = checked.as_ref().map_or("?", |token| token.user.as_str());
    record(&service, &caller, "sign in with a token", who, &checked);
    let Some(token) = found else {
        return Ok(if is_form {
            page::sign_in(&callers.page, StatusCode::UNAUTHORIZED, back, Some(INVALID))
        } else {
            problem::unauthorized(INVALID, callers.challenge_for("/mcp", Some("invalid_token")))
        });
    };
    if let Some(profile) = &token.profile {
        return Err(invalid(&format!("this token is for the profile `{profile}` alone, and opens no pages")).into());
    }
    let mut response = match is_form {
        true => Redirect::to(&format!("{}{back}", callers.page.base)).into_response(),
        false => StatusCode::NO_CONTENT.into_response(),
    };
    callers.cookie.begin(&mut response, &headers, accounts, NewSession::of_token(&token)).await?;
    Ok(response)
}

/// Ends the session of this browser.
pub(crate) async fn sign_out(
    State(guard): State<Arc<Guard>>,
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let cookie = &guard.callers().cookie;
    if let Some(secret) = cookie.read(&headers) {
        accounts(&guard)?.end_session(secret).await?;
    }
    if let Some(user) = caller.principal.user() {
        record(&service, &caller, "sign out", user.as_str(), &Ok(()));
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    cookie.forget(&mut response);
    Ok(response)
}

pub(crate) fn accounts(guard: &Guard) -> Result<&Accounts, Error> {
    let accounts = guard.callers().accounts.as_deref();
    accounts.ok_or_else(|| Error::unavailable("This server has no users."))
}

fn no_provider() -> Error {
    Error::not_found("People cannot sign in elsewhere: [auth.login] oidc is not configured.")
}

fn invalid(why: &str) -> Response {
    problem::new(ErrorKind::InvalidArgument, &format!("Invalid request: {why}"))
}

/// The headers and the body of a sign-in from a page of this server or a program, and whether it is a form.
async fn read(guard: &Guard, request: Request<Body>) -> Result<(HeaderMap, Bytes, bool), Refusal> {
    let (head, body) = request.into_parts();
    sender::refuse_foreign(&head.headers, &guard.callers().public_url)?;
    let kind = head.headers.get(header::CONTENT_TYPE);
    let is_form = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    let body = read_limited(body, MAX_BODY_BYTES, guard.callers().timeout).await;
    Ok((head.headers, body.map_err(problem::unreadable)?, is_form))
}
