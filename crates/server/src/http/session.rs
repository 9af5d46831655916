//! `/session`: a browser says who it is by a token, once, and keeps it in a cookie that no script can read.

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use serde::Deserialize;
use tribune_core::ErrorKind;

use super::problem::{self, problem};
use super::{App, page, read_limited};
use crate::service::Service;

const KEPT_SECS: u32 = 30 * 24 * 3600;
const MAX_BODY_BYTES: usize = 16 * 1024;
const NOT_VALID: &str = "that token is not valid here: it may be mistyped, expired or revoked";

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
    /// Where a form leads to.
    #[serde(default)]
    back: String,
}

/// Takes a token and answers with the cookie: to scripts with nothing else, to forms with the page that was asked for.
pub(super) async fn sign_in(State(app): State<App>, request: Request<Body>) -> Response {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let is_form = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    let body = match read_limited(request.into_body(), MAX_BODY_BYTES, &app).await {
        Ok(body) => body,
        Err(refusal) => return *refusal,
    };
    let sent = if is_form {
        of_form(&body)
    } else {
        serde_json::from_slice(&body).ok()
    };
    let Some(SignIn { token, back }) = sent else {
        return problem(ErrorKind::InvalidArgument, "send {\"token\": \"…\"}");
    };
    let base = app.service.links.path_prefix();
    let back = if is_here(&back) { back } else { "/".to_owned() };
    let token = token.trim();
    let known = match &app.service.authenticator {
        Some(authenticator) => authenticator.authenticate(token).await,
        None => Ok(None),
    };
    let mut response = if is_form {
        Redirect::to(&format!("{base}{back}")).into_response()
    } else {
        StatusCode::NO_CONTENT.into_response()
    };
    match known {
        Ok(Some(_)) => app.guard.callers.cookie().set(&mut response, token, KEPT_SECS),
        Ok(None) if is_form => return page::sign_in(base, &back, Some(NOT_VALID)),
        Ok(None) => return problem::unauthorized(NOT_VALID),
        Err(error) => return problem::of(&error),
    }
    response
}

fn of_form(body: &[u8]) -> Option<SignIn> {
    let uri: Uri = format!("/?{}", std::str::from_utf8(body).ok()?).parse().ok()?;
    Query::try_from_uri(&uri).ok().map(|Query(sent)| sent)
}

/// Whether a path is of this server: nobody is sent elsewhere.
fn is_here(back: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\\';
    back.starts_with('/') && !back.starts_with("//") && back.chars().all(is_plain)
}

pub(super) async fn sign_out(State(app): State<App>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    app.guard.callers.cookie().forget(&mut response);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_back_here_and_nowhere_else() {
        let sent = of_form(b"token=a%2Bb&back=%2Fdata%2Fnotes%3Ax.md%3Fpassage%3D2").expect("a form");
        assert_eq!((&*sent.token, &*sent.back), ("a+b", "/data/notes:x.md?passage=2"));
        assert!(is_here(&sent.back));
        for elsewhere in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "/a\r\nb: c",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }
}
