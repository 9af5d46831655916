//! What the connection to the exchange measures.

/// Name and description of each metric.
pub const METRICS: &[(&str, &str)] = &[
    ("tribune_upstream_requests_total", "Requests to the exchange by endpoint and outcome"),
    ("tribune_upstream_weight_used", "Request weight used in this minute of the exchange"),
    ("tribune_books", "Order books that are kept"),
    ("tribune_book_resyncs_total", "Order books that had to be started again"),
    ("tribune_feed_disconnects_total", "Connections to the exchange that were lost"),
    ("tribune_feed_resubscriptions_total", "Symbols whose streams went silent and were subscribed to again"),
    ("tribune_feed_unreadable_total", "Messages of the exchange that could not be read"),
];
