//! The recorder of metrics, and their descriptions.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of histograms of durations.
const SECONDS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0, 10.0];

const METRICS: [&[(&str, &str)]; 4] =
    [tribune_server::METRICS, tribune_agent::METRICS, tribune_market::METRICS, tribune_reports::METRICS];

/// Must be called once, before anything is measured. As usual with Prometheus, the end of a name tells its kind.
pub fn record() -> anyhow::Result<PrometheusHandle> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?;
    for &(name, description) in METRICS.into_iter().flatten() {
        if name.ends_with("_total") {
            metrics::describe_counter!(name, description);
        } else if name.ends_with("_seconds") {
            metrics::describe_histogram!(name, metrics::Unit::Seconds, description);
        } else {
            metrics::describe_gauge!(name, description);
        }
    }
    Ok(handle)
}
