//! What the server measures.

/// Name and description of each metric.
pub const METRICS: &[(&str, &str)] = &[
    ("tribune_tool_calls_total", "Tool calls by tool and outcome"),
    ("tribune_tool_call_seconds", "How long tool calls took"),
    ("tribune_tool_calls_in_flight", "Tool calls under way"),
    ("tribune_sessions", "Open sessions of the initialize era"),
    ("tribune_sse_streams", "Open HTTP+SSE connections"),
    ("tribune_connections", "Open connections"),
    ("tribune_connections_refused_total", "Connections over a limit, by reason (total, peer, evicted)"),
    ("tribune_connections_closed_total", "Connections closed by a timeout, by reason (silent, idle, unread)"),
    ("tribune_limited_total", "Refusals by limit (requests, calls, changes, chat_tokens, sign_ins, streams, sending)"),
    ("tribune_limits_shared", "1 while rates are counted together with the other nodes"),
    ("tribune_source_restarts_total", "Restarts of a source's background task, by source and cause (error, panic)"),
    ("tribune_source_ready", "1 if the source can answer"),
    ("tribune_source_documents", "Documents the source holds"),
];
