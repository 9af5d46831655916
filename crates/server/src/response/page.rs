//! HTML pages, rendered on the server with everything escaped; scripts only add to them.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use minijinja::{Environment, Value, context};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{accepts, wants_json};

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    for (name, source) in [
        ("board.html", include_str!("../../templates/board.html")),
        ("base.html", include_str!("../../templates/base.html")),
        ("consent.html", include_str!("../../templates/consent.html")),
        ("chat.html", include_str!("../../templates/chat.html")),
        ("design.html", include_str!("../../templates/design.html")),
        ("home.html", include_str!("../../templates/home.html")),
        ("sign_in.html", include_str!("../../templates/sign_in.html")),
        ("results.html", include_str!("../../templates/results.html")),
        ("missing.html", include_str!("../../templates/missing.html")),
        ("try.html", include_str!("../../templates/try.html")),
        ("try_profile.html", include_str!("../../templates/try_profile.html")),
        ("try_tool.html", include_str!("../../templates/try_tool.html")),
        ("reading.html", include_str!("../../templates/reading.html")),
    ] {
        if let Err(error) = environment.add_template(name, source) {
            // The tests render every template: a broken one cannot ship.
            tracing::error!(%error, name, "invalid page template");
        }
    }
    environment
});

/// Pages quote documents and models. Nothing in those may run, load or be framed: scripts come only from this server,
/// talk only to it, and cannot turn text into HTML (trusted types).
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

pub(crate) fn render(status: StatusCode, template: &str, values: Value) -> Response {
    let rendered = TEMPLATES.get_template(template).and_then(|template| template.render(values));
    let (status, html) = match rendered {
        Ok(html) => (status, html),
        Err(error) => {
            tracing::error!(%error, template, "could not render a page");
            (StatusCode::INTERNAL_SERVER_ERROR, "Tribune could not render this page; its log says why.".to_owned())
        }
    };
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Other sites learn nothing; our own forms say where they come from.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// A time, for people.
pub(crate) fn moment(at: Timestamp) -> String {
    at.strftime("%-d %B %Y, %H:%M:%S.%3f UTC").to_string()
}

/// What the page for signing in offers, below the path of all pages.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignInPage {
    pub(crate) base: String,
    /// Whether the person at this machine signs in with a link.
    pub(crate) local: bool,
    pub(crate) passwords: bool,
    /// The host of a provider.
    pub(crate) provider: Option<String>,
}

/// For a caller who is not let in: a page to sign in, or JSON.
pub(crate) fn refused(
    headers: &HeaderMap,
    page: &SignInPage,
    back: &str,
    status: StatusCode,
    message: &str,
) -> Response {
    if !accepts(headers, "text/html") {
        let code = match status {
            StatusCode::UNAUTHORIZED => "unauthorized",
            StatusCode::FORBIDDEN => "forbidden",
            _ => "unavailable",
        };
        return super::problem::with_status(status, code, message);
    }
    let what = match status {
        StatusCode::UNAUTHORIZED => return sign_in(page, status, back, None),
        StatusCode::FORBIDDEN => "You may not open this",
        _ => "Your token cannot be checked right now",
    };
    let base = &page.base;
    render(status, "missing.html", context! { base, what, next => message })
}

/// Asks somebody to sign in, and leads back to the page that was requested.
pub(crate) fn sign_in(page: &SignInPage, status: StatusCode, back: &str, problem: Option<&str>) -> Response {
    let SignInPage { base, local, passwords, provider } = page;
    let encoded_back = utf8_percent_encode(back, NON_ALPHANUMERIC).to_string();
    let values = context! { base, local, passwords, provider, back, encoded_back, problem, closed => true };
    render(status, "sign_in.html", values)
}

/// Lets the forms of a page lead to another origin or scheme.
pub(crate) fn allow_form_target(response: &mut Response, source: &str) {
    // Semicolons and commas separate directives and policies.
    if source.contains([';', ',']) {
        return;
    }
    let policy = POLICY.replace("form-action 'self'", &format!("form-action 'self' {source}"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
}

/// A 404 that says what to do next.
pub(crate) fn missing(headers: &HeaderMap, base: &str, what: &str, next: &str) -> Response {
    if wants_json(headers) {
        let body = serde_json::json!({"error": what, "next": next});
        return super::json(StatusCode::NOT_FOUND, body.to_string());
    }
    render(StatusCode::NOT_FOUND, "missing.html", context! { base, what, next })
}
