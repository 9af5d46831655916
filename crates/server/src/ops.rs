//! For operators: health, readiness and metrics.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{Request, StatusCode, header};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tribune_core::SourceStatus;

use crate::identity::Guard;
use crate::mcp::{Sse, Streamable};
use crate::response::Refusal;
use crate::service::Service;

/// Marks requests at `server.ops_listen`, which only operators reach.
#[derive(Clone, Copy)]
pub(crate) struct PrivateListener;

/// The process is alive.
pub(crate) async fn healthz() -> Json<serde_json::Value> {
    Json(json!({"status": "ok"}))
}

/// Whether every source can answer; if not, operators see which cannot and why.
pub(crate) async fn readyz(
    State(service): State<Arc<Service>>,
    State(guard): State<Arc<Guard>>,
    listener: Option<Extension<PrivateListener>>,
    request: Request<Body>,
) -> Response {
    let mut ready = !service.stopping.is_cancelled();
    // Probes have no token, so sources that only some may use count, but are not named.
    let sources: Vec<_> = service
        .sources()
        .iter()
        .filter_map(|source| {
            let (status, reason) = match service.status(&**source) {
                SourceStatus::Ready => ("ready", None),
                SourceStatus::Degraded(reason) => ("degraded", Some(reason)),
                SourceStatus::Unready(reason) => {
                    ready = false;
                    ("unready", Some(reason))
                }
            };
            let facts = source.readers().is_everybody().then(|| source.facts())?;
            Some(json!({"source": source.name(), "status": status, "reason": reason, "documents": facts.documents}))
        })
        .collect();
    let stopping = service.stopping.is_cancelled();
    let mut body = json!({"status": if stopping { "stopping" } else if ready { "ready" } else { "unready" }});
    // Reasons name folders and addresses.
    if listener.is_some() || guard.admit_operator(request).await.is_ok() {
        body["sources"] = json!(sources);
    }
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(body)).into_response()
}

/// Prometheus text format.
pub(crate) async fn metrics(
    State(service): State<Arc<Service>>,
    State(streamable): State<Arc<Streamable>>,
    State(sse): State<Arc<Sse>>,
    State(recorder): State<Option<PrometheusHandle>>,
    State(guard): State<Arc<Guard>>,
    listener: Option<Extension<PrivateListener>>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    if listener.is_none() {
        guard.admit_operator(request).await?;
    }
    let Some(recorder) = recorder else {
        return Ok((StatusCode::NOT_FOUND, "Metrics are not recorded.\n").into_response());
    };
    metrics::gauge!("tribune_sessions").set(streamable.session_count() as f64);
    metrics::gauge!("tribune_sse_streams").set(sse.open_count() as f64);
    metrics::gauge!("tribune_tool_calls_in_flight").set(service.calls.len() as f64);
    for source in service.sources() {
        let ready = f64::from(u8::from(!matches!(service.status(&**source), SourceStatus::Unready(_))));
        metrics::gauge!("tribune_source_ready", "source" => source.name().to_owned()).set(ready);
        if let Some(documents) = source.facts().documents {
            metrics::gauge!("tribune_source_documents", "source" => source.name().to_owned()).set(documents as f64);
        }
    }
    recorder.run_upkeep();
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], recorder.render()).into_response())
}
