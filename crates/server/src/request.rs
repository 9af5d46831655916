//! Reading requests: bodies with a limit, what handlers leave of them, parts of a path.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Query;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderValue, Request, StatusCode, Uri, Version, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
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

/// What is read of a body that nobody wanted.
const MAX_REST_BYTES: usize = 256 * 1024;
const REST_WITHIN: Duration = Duration::from_secs(2);

/// Reads what a handler left of the body. HTTP/1 could not go on after it: the connection would end without a word, and
/// with it the next request, such as the one that a client sends after it was told to sign in.
pub(crate) async fn read_rest(request: Request<Body>, next: Next) -> Response {
    if request.version() > Version::HTTP_11 || request.body().is_end_stream() {
        return next.run(request).await;
    }
    // The client sends the body only once the server begins to read it.
    let waits = request.headers().contains_key(header::EXPECT);
    let rest = Rest::default();
    let request = request.map(|body| Body::new(Lent { body, rest: Arc::clone(&rest) }));
    let mut response = next.run(request).await;
    let rest = rest.lock().take();
    if let Some(rest) = rest
        && (waits || read_limited(rest, MAX_REST_BYTES, REST_WITHIN).await.is_err())
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

type Rest = Arc<Mutex<Option<Body>>>;

/// A body that comes back when it is dropped before its end.
struct Lent {
    body: Body,
    rest: Rest,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.body.is_end_stream() {
            let body = std::mem::take(&mut self.body);
            *self.rest.lock() = Some(body);
        }
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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
