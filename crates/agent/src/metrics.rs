//! What the agent measures.

/// Name and description of each metric.
pub const METRICS: &[(&str, &str)] = &[
    ("tribune_chat_turns_total", "Questions to the agent by outcome"),
    ("tribune_chat_turn_seconds", "How long the agent took to answer"),
    ("tribune_model_requests_total", "Requests to the model by outcome"),
    ("tribune_model_request_seconds", "How long requests to the model took"),
];
