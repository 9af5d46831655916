//! `/session`: a browser says who it is by a token, once, and keeps it in a cookie that no script can read.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use serde::Deserialize;
use tribune_core::ErrorKind;

use super::problem::{self, problem};
use super::{App, read_limited};
use crate::service::Service;

const KEPT_SECS: u32 = 30 * 24 * 3600;
const MAX_BODY_BYTES: usize = 4096;

/// The cookie in which a browser keeps its token.
pub(super) struct Cookie {
    name: String,
    attributes: String,
}

impl Cookie {
    pub(super) fn of(service: &Service) -> Self {
        let links = &service.links;
        // Lax: a citation opened from another site shows the reader's own task; a form there changes nothing here.
        let secure = if links.base().starts_with("https://") {
            "; Secure"
        } else {
            ""
        };
        Self {
            // Cookies know no ports: two servers on one machine would take each other's.
            name: format!("tribune_session_{}", service.settings.listen.port()),
            attributes: format!("Path={}/; HttpOnly; SameSite=Lax{secure}", links.path_prefix()),
        }
    }

    /// The token of a browser that has signed in.
    pub(super) fn read<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let lines = headers.get_all(header::COOKIE).iter();
        let lines = lines.filter_map(|value| value.to_str().ok());
        lines
            .flat_map(|line| line.split(';'))
            .find_map(|pair| pair.trim().strip_prefix(&self.name)?.strip_prefix('='))
            .filter(|token| !token.is_empty())
    }

    /// Lets a browser drop it.
    pub(super) fn forget(&self, response: &mut Response) {
        self.set(response, "", 0);
    }

    fn set(&self, response: &mut Response, token: &str, seconds: u32) {
        let cookie = format!("{}={token}; Max-Age={seconds}; {}", self.name, self.attributes);
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
}

#[derive(Deserialize)]
struct SignIn {
    token: String,
}

/// Takes a token and answers with the cookie.
pub(super) async fn sign_in(State(app): State<App>, request: Request<Body>) -> Response {
    let body = match read_limited(request.into_body(), MAX_BODY_BYTES, &app).await {
        Ok(body) => body,
        Err(refusal) => return *refusal,
    };
    let Ok(SignIn { token }) = serde_json::from_slice(&body) else {
        return problem(ErrorKind::InvalidArgument, "send {\"token\": \"…\"}");
    };
    let token = token.trim();
    let known = match &app.service.authenticator {
        Some(authenticator) => authenticator.authenticate(token).await,
        None => Ok(None),
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    match known {
        Ok(Some(_)) => app.guard.callers.cookie().set(&mut response, token, KEPT_SECS),
        Ok(None) => {
            return problem::unauthorized("that token is not valid here: it may be mistyped, expired or revoked");
        }
        Err(error) => return problem::of(&error),
    }
    response
}

pub(super) async fn sign_out(State(app): State<App>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    app.guard.callers.cookie().forget(&mut response);
    response
}
