//! `/session`: a browser exchanges a token for a cookie that no script can read.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use serde::Deserialize;
use tribune_core::{ErrorKind, Links};

use super::Guard;
use crate::request::read_limited;
use crate::response::{Refusal, page, problem};

const MAX_AGE_SECS: u32 = 30 * 24 * 3600;
const MAX_BODY_BYTES: usize = 16 * 1024;
const INVALID: &str = "Invalid token: it is mistyped, expired or revoked.";

/// The cookie that holds a browser's token.
pub(super) struct Cookie {
    name: String,
    attributes: String,
}

impl Cookie {
    pub(super) fn new(port: u16, links: &Links) -> Self {
        // Lax: a link from another site opens as the signed-in user; a form there cannot act as them.
        let secure = if links.base().starts_with("https://") {
            "; Secure"
        } else {
            ""
        };
        Self {
            // Cookies ignore ports: two servers on one machine would share one name.
            name: format!("tribune_session_{port}"),
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

    /// Tells the browser to delete it.
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
    /// Where a form redirects to.
    #[serde(default)]
    back: String,
}

/// Takes a token as JSON or from a form, and sets the cookie.
pub(crate) async fn sign_in(State(guard): State<Arc<Guard>>, request: Request<Body>) -> Result<Response, Refusal> {
    let callers = guard.callers();
    let kind = request.headers().get(header::CONTENT_TYPE);
    let is_form = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    let body = read_limited(request.into_body(), MAX_BODY_BYTES, callers.timeout).await;
    let body = body.map_err(problem::unreadable)?;
    let sent = if is_form {
        parse_form(&body)
    } else {
        serde_json::from_slice(&body).ok()
    };
    let invalid = || {
        problem::new(
            ErrorKind::InvalidArgument,
            "Invalid request body: send {\"token\": \"…\"}",
        )
    };
    let SignIn { token, back } = sent.ok_or_else(invalid)?;
    let base = &callers.base;
    let back = if is_own_path(&back) { back } else { "/".to_owned() };
    let token = token.trim();
    if callers.user(token).await?.is_none() {
        return Ok(if is_form {
            page::sign_in(base, &back, Some(INVALID))
        } else {
            problem::unauthorized(INVALID)
        });
    }
    let mut response = if is_form {
        Redirect::to(&format!("{base}{back}")).into_response()
    } else {
        StatusCode::NO_CONTENT.into_response()
    };
    callers.cookie.set(&mut response, token, MAX_AGE_SECS);
    Ok(response)
}

fn parse_form(body: &[u8]) -> Option<SignIn> {
    let uri: Uri = format!("/?{}", std::str::from_utf8(body).ok()?).parse().ok()?;
    Query::try_from_uri(&uri).ok().map(|Query(sent)| sent)
}

/// Whether a redirect stays on this server.
fn is_own_path(back: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\\';
    back.starts_with('/') && !back.starts_with("//") && back.chars().all(is_plain)
}

pub(crate) async fn sign_out(State(guard): State<Arc<Guard>>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    guard.callers().cookie.forget(&mut response);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_redirects_only_to_own_paths() {
        let sent = parse_form(b"token=a%2Bb&back=%2Fdata%2Fnotes%3Ax.md%3Fpassage%3D2").expect("a form");
        assert_eq!((&*sent.token, &*sent.back), ("a+b", "/data/notes:x.md?passage=2"));
        assert!(is_own_path(&sent.back));
        for elsewhere in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "/a\r\nb: c",
        ] {
            assert!(!is_own_path(elsewhere), "{elsewhere}");
        }
    }
}
