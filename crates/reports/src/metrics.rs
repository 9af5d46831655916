//! What reports measure.

/// Name and description of each metric.
pub const METRICS: &[(&str, &str)] = &[
    ("tribune_report_age_seconds", "How old the data of market reports was when they were read"),
    ("tribune_report_compute_seconds", "How long one market report took to compute"),
    ("tribune_report_cache_seconds", "How long the cache of reports took, by operation and outcome"),
    ("tribune_report_lease_changes_total", "Symbols whose reports this process began or ceased to write"),
    ("tribune_report_panics_total", "Reports whose computation panicked"),
    ("tribune_report_symbols_written", "Symbols whose reports this process writes"),
];
