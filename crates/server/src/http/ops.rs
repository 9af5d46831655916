//! For operators: is it alive, can it answer and if not why, what has it done.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::json;
use tribune_core::SourceStatus;

use super::App;

/// The process runs.
pub(super) async fn healthz() -> Json<serde_json::Value> {
    Json(json!({"status": "ok"}))
}

/// Every source can answer; if not, which and why.
pub(super) async fn readyz(State(app): State<App>) -> Response {
    let mut ready = !app.service.stopping.is_cancelled();
    let sources: Vec<_> = app
        .service
        .sources()
        .iter()
        .map(|source| {
            let (status, reason) = match source.status() {
                SourceStatus::Ready => ("ready", None),
                SourceStatus::Degraded(reason) => ("degraded", Some(reason)),
                SourceStatus::Unready(reason) => {
                    ready = false;
                    ("unready", Some(reason))
                }
            };
            json!({"source": source.name(), "status": status, "reason": reason, "documents": source.facts().documents})
        })
        .collect();
    let stopping = app.service.stopping.is_cancelled();
    let body = json!({
        "status": if stopping { "stopping" } else if ready { "ready" } else { "unready" },
        "sources": sources,
    });
    let code = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, Json(body)).into_response()
}

/// Prometheus text format.
pub(super) async fn metrics(State(app): State<App>) -> Response {
    let Some(recorder) = &app.metrics else {
        return (StatusCode::NOT_FOUND, "metrics are not being recorded\n").into_response();
    };
    metrics::gauge!("tribune_sessions").set(app.streamable.session_count().await as f64);
    metrics::gauge!("tribune_sse_streams").set(app.sse.open_count() as f64);
    metrics::gauge!("tribune_tool_calls_in_flight").set(app.service.calls.len() as f64);
    for source in app.service.sources() {
        let ready = f64::from(u8::from(!matches!(source.status(), SourceStatus::Unready(_))));
        metrics::gauge!("tribune_source_ready", "source" => source.name().to_owned()).set(ready);
        if let Some(documents) = source.facts().documents {
            metrics::gauge!("tribune_source_documents", "source" => source.name().to_owned()).set(documents as f64);
        }
    }
    recorder.run_upkeep();
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        recorder.render(),
    )
        .into_response()
}
