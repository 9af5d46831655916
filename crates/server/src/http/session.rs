//! `/session`: a browser says who it is by a token, once, and keeps it in a cookie that no script can read.

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;

use super::App;
use super::problem::problem;
use tribune_core::ErrorKind;

const COOKIE: &str = "tribune_session";
const KEPT_SECS: u32 = 30 * 24 * 3600;

/// The token of a browser that has signed in.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
        .filter(|token| !token.is_empty())
}

#[derive(Deserialize)]
struct SignIn {
    token: String,
}

/// Takes a token and answers with the cookie.
pub(super) async fn sign_in(State(app): State<App>, body: Bytes) -> Response {
    let Ok(SignIn { token }) = serde_json::from_slice(&body) else {
        return problem(ErrorKind::InvalidArgument, "send {\"token\": \"…\"}");
    };
    let token = token.trim();
    let known = match &app.service.authenticator {
        Some(authenticator) => authenticator.authenticate(token).await,
        None => Ok(None),
    };
    match known {
        Ok(Some(_)) => set_cookie(&app, token, KEPT_SECS),
        Ok(None) => {
            super::problem::unauthorized("that token is not valid here: it may be mistyped, expired or revoked")
        }
        Err(error) => problem(error.kind(), error.message()),
    }
}

pub(super) async fn sign_out(State(app): State<App>) -> Response {
    set_cookie(&app, "", 0)
}

fn set_cookie(app: &App, token: &str, seconds: u32) -> Response {
    let links = &app.service.links;
    // Lax: a citation opened from another site shows the reader's own task; a form there changes nothing here.
    let secure = if links.base().starts_with("https://") {
        "; Secure"
    } else {
        ""
    };
    let path = format!("{}/", links.path_prefix());
    let cookie = format!("{COOKIE}={token}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    let mut response = Response::new(axum::body::Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Lets a browser drop a token that is no longer valid.
pub(super) fn forget(response: &mut Response) {
    let gone = HeaderValue::from_static("tribune_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    response.headers_mut().append(header::SET_COOKIE, gone);
}
