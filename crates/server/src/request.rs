//! Reading requests: bodies with a limit, parts of a path.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Query;
use http::{StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

/// Reads a body with a limit; the error is a status and what to do next.
pub(crate) async fn read_limited(
    body: Body,
    max_bytes: usize,
    within: Duration,
) -> Result<Bytes, (StatusCode, String)> {
    match tokio::time::timeout(within, Limited::new(body, max_bytes).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The request body is larger than {max_bytes} bytes; send less."),
        )),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "The request body is incomplete; send it again.".to_owned())),
        Err(_) => {
            Err((StatusCode::REQUEST_TIMEOUT, "The request body did not arrive in time; send it again.".to_owned()))
        }
    }
}

/// The fields of a form.
pub(crate) fn parse_form<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let uri: Uri = format!("/?{}", std::str::from_utf8(body).ok()?).parse().ok()?;
    Query::try_from_uri(&uri).ok().map(|Query(sent)| sent)
}

/// What follows `before` in a path, decoded.
pub(crate) fn path_after(uri: &Uri, before: &str) -> String {
    let raw = uri.path().split_once(before).map_or("", |(_, rest)| rest);
    percent_encoding::percent_decode_str(raw).decode_utf8_lossy().into_owned()
}
