//! Files that pages need, embedded in the binary.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let (kind, content) = match name.as_str() {
        "tribune.css" => ("text/css; charset=utf-8", include_str!("../../assets/tribune.css")),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    (
        [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, "public, max-age=3600"),
        ],
        content,
    )
        .into_response()
}
