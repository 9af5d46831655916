//! `/openapi.json`: the HTTP interface of the chat, for client generators.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use crate::response;
use crate::service::Service;

pub(crate) async fn document(State(service): State<Arc<Service>>) -> Response {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let base = service.links.base();
    response::json(StatusCode::OK, DOCUMENT.get_or_init(|| openapi(base).to_string()).as_str())
}

/// The document with the version and the address of this server.
fn openapi(base: &str) -> Value {
    let mut document: Value = serde_json::from_str(include_str!("openapi.json")).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document["servers"] = json!([{"url": base}]);
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_names_this_server() {
        let document = openapi("https://tribune.example.org/t");
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(document["servers"], json!([{"url": "https://tribune.example.org/t"}]));
        assert!(document["paths"]["/chat"]["post"]["responses"]["200"].is_object(), "{document}");
    }
}
