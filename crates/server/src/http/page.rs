//! Pages for people: rendered on the server, everything escaped; scripts are ours alone, and only add to what is there.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use minijinja::{Environment, Value};

use super::App;

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
            // Templates are compiled by the tests; a broken one cannot ship.
            tracing::error!(%error, name, "a page template is broken");
        }
    }
    environment
});

/// Pages show other people's text and what models wrote. Nothing in it may run, load or be framed: scripts come from us
/// alone, talk to us alone, and may not turn text into HTML, which browsers that know trusted types refuse as well.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

pub(super) fn render(status: StatusCode, template: &str, values: Value) -> Response {
    let rendered = TEMPLATES
        .get_template(template)
        .and_then(|template| template.render(values));
    let (status, html) = match rendered {
        Ok(html) => (status, html),
        Err(error) => {
            tracing::error!(%error, template, "a page could not be rendered");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "The page could not be made; the server's log says why.".to_owned(),
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
    // Nothing to others; to ourselves so that forms say where they come from.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// A moment, for people.
pub(super) fn moment(at: Timestamp) -> String {
    at.strftime("%-d %B %Y, %H:%M:%S.%3f UTC").to_string()
}

/// Whether the caller would rather have JSON than a page.
pub(super) fn wants_json(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    accept.contains("application/json") && !accept.contains("text/html")
}

pub(super) async fn not_found(State(app): State<App>, headers: HeaderMap) -> Response {
    missing(
        &headers,
        app.service.links.path_prefix(),
        "There is no such page here",
        "The start page says what is served and how to connect.",
    )
}

/// Somebody who is not let in.
pub(super) fn refused(headers: &HeaderMap, base: &str, back: &str, status: StatusCode, message: &str) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/html")) {
        let code = if status == StatusCode::UNAUTHORIZED {
            "unauthorized"
        } else {
            "unavailable"
        };
        return super::problem::answer(status, code, message);
    }
    if status == StatusCode::UNAUTHORIZED {
        return sign_in(base, back, None);
    }
    let (what, next) = ("Who you are cannot be told now", message);
    render(status, "missing.html", minijinja::context! { base, what, next })
}

/// Asks for a token, and leads back to what was asked for.
pub(super) fn sign_in(base: &str, back: &str, problem: Option<&str>) -> Response {
    let values = minijinja::context! { base, back, problem, closed => true };
    render(StatusCode::UNAUTHORIZED, "sign_in.html", values)
}

/// A 404 that helps.
pub(super) fn missing(headers: &HeaderMap, base: &str, what: &str, next: &str) -> Response {
    if wants_json(headers) {
        let body = serde_json::json!({"error": what, "next": next});
        return crate::mcp::rpc::json_response(StatusCode::NOT_FOUND, body.to_string());
    }
    render(
        StatusCode::NOT_FOUND,
        "missing.html",
        minijinja::context! { base, what, next },
    )
}
