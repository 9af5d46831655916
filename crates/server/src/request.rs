//! Reading requests: bodies with a limit, parts of a path.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{StatusCode, Uri};
use tribune_core::ErrorKind;

use crate::response::problem;

/// A small body, whole and in time.
pub(crate) async fn read_limited(body: Body, max_bytes: usize, within: Duration) -> Result<Bytes, Box<Response>> {
    let refuse = |status, message: &str| {
        let code = ErrorKind::InvalidArgument.as_str();
        Box::new(problem::with_status(status, code, message))
    };
    match tokio::time::timeout(within, axum::body::to_bytes(body, max_bytes)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("The request body is incomplete or larger than {max_bytes} bytes; send less"),
        )),
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            "The request body did not arrive in time; send it again",
        )),
    }
}

/// What follows `before` in a path, decoded.
pub(crate) fn path_after(uri: &Uri, before: &str) -> String {
    let raw = uri.path().split_once(before).map_or("", |(_, rest)| rest);
    percent_encoding::percent_decode_str(raw)
        .decode_utf8_lossy()
        .into_owned()
}
