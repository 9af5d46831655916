//! The description of the HTTP interface, against the routes.

use std::collections::BTreeSet;

use axum::body::Body;
use http::Request;
use serde_json::Value;
use tower::ServiceExt;

use crate::service;

#[tokio::test]
async fn described_methods_are_those_of_the_routes() {
    let router = tribune_server::router(service(Vec::new()), None);
    let send = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        router.clone().oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer")
    };
    let body = axum::body::to_bytes(send("GET", "/openapi.json").await.into_body(), 1 << 20).await;
    let document: Value = serde_json::from_slice(&body.expect("a body")).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() >= 4, "{document}");
    for (path, methods) in paths {
        let described: BTreeSet<String> =
            methods.as_object().expect("methods").keys().map(|method| method.to_uppercase()).collect();
        // A method that no route has is answered with those that it has.
        let answer = send("PATCH", &path.replace("{id}", "1")).await;
        let allowed = answer.headers().get("allow").unwrap_or_else(|| panic!("{path}: {}", answer.status()));
        let allowed = allowed.to_str().expect("text").split(',').map(str::to_owned);
        let allowed: BTreeSet<String> = allowed.filter(|method| method != "HEAD").collect();
        assert_eq!(described, allowed, "{path}");
    }
}
