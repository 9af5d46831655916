//! JSON-RPC messages at `/mcp`, in both protocol eras: every answer is JSON, and none is a server error.

#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;
use tribune_core::SystemClock;
use tribune_server::{Service, Settings, router};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));
static ROUTER: LazyLock<axum::Router> = LazyLock::new(|| {
    let mut settings = Settings::new(([127, 0, 0, 1], 8080).into());
    settings.call_timeout = Duration::from_secs(5);
    settings.sessions = false;
    let service = Service::new(settings, Vec::new(), Vec::new(), Arc::new(SystemClock)).expect("a service");
    router(Arc::new(service), None)
});

/// The method and the tool that the headers of the modern era repeat.
fn named(body: &[u8]) -> Option<(String, String)> {
    let message: Value = serde_json::from_slice(body).ok()?;
    let name = message["params"]["name"].as_str().unwrap_or_default();
    Some((message["method"].as_str()?.to_owned(), name.to_owned()))
}

async fn send(body: &[u8], is_modern: bool) {
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json");
    if let Some((method, name)) = named(body).filter(|_| is_modern) {
        request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        request = request.header("mcp-name", name);
    }
    let Ok(request) = request.body(Body::from(body.to_vec())) else {
        return;
    };
    let answer = ROUTER.clone().oneshot(request).await.expect("an answer");
    let status = answer.status();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    assert!(!status.is_server_error(), "{status} {}", String::from_utf8_lossy(&body));
    assert!(body.is_empty() || serde_json::from_slice::<Value>(&body).is_ok(), "{}", String::from_utf8_lossy(&body));
}

fuzz_target!(|body: &[u8]| {
    RUNTIME.block_on(async {
        send(body, true).await;
        send(body, false).await;
    });
});
