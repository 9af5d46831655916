//! HTML pages, rendered on the server with everything escaped; scripts only add to them.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use minijinja::{Environment, Value, context};

use super::{accepts, wants_json};

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    for (name, source) in [
        ("board.html", include_str!("../../templates/board.html")),
        ("base.html", include_str!("../../templates/base.html")),
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
    let rendered = TEMPLATES
        .get_template(template)
        .and_then(|template| template.render(values));
    let (status, html) = match rendered {
        Ok(html) => (status, html),
        Err(error) => {
            tracing::error!(%error, template, "could not render a page");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Tribune could not render this page; its log says why.".to_owned(),
            )
        }
    };
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Other sites learn nothing; our own forms say where they come from.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// A time, for people.
pub(crate) fn moment(at: Timestamp) -> String {
    at.strftime("%-d %B %Y, %H:%M:%S.%3f UTC").to_string()
}

/// For a caller who is not let in: a page that asks for a token, or JSON.
pub(crate) fn refused(headers: &HeaderMap, base: &str, back: &str, status: StatusCode, message: &str) -> Response {
    let is_unauthorized = status == StatusCode::UNAUTHORIZED;
    if !accepts(headers, "text/html") {
        let code = if is_unauthorized { "unauthorized" } else { "unavailable" };
        return super::problem::with_status(status, code, message);
    }
    if is_unauthorized {
        return sign_in(base, back, None);
    }
    let what = "Your token cannot be checked right now";
    render(status, "missing.html", context! { base, what, next => message })
}

/// Asks for a token, and leads back to the page that was requested.
pub(crate) fn sign_in(base: &str, back: &str, problem: Option<&str>) -> Response {
    let values = context! { base, back, problem, closed => true };
    render(StatusCode::UNAUTHORIZED, "sign_in.html", values)
}

/// A 404 that says what to do next.
pub(crate) fn missing(headers: &HeaderMap, base: &str, what: &str, next: &str) -> Response {
    if wants_json(headers) {
        let body = serde_json::json!({"error": what, "next": next});
        return super::json(StatusCode::NOT_FOUND, body.to_string());
    }
    render(StatusCode::NOT_FOUND, "missing.html", context! { base, what, next })
}
