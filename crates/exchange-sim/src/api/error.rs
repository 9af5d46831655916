//! Errors with the exchange's codes and messages.

use axum::http::StatusCode;
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub status: StatusCode,
    pub code: i32,
    pub message: String,
    pub retry_after_secs: Option<u64>,
}

impl ApiError {
    pub fn bad(code: i32, message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, message: message.into(), retry_after_secs: None }
    }

    /// A request that is not answered at all.
    pub fn rejected(status: u16, retry_after_secs: Option<u64>) -> Self {
        let (code, message) = match status {
            418 => (
                -1003,
                "Way too much request weight used; IP banned. Please use WebSocket Streams for live updates to avoid bans.",
            ),
            429 => (
                -1003,
                "Too much request weight used; please use WebSocket Streams for live updates to avoid polling the API.",
            ),
            _ => (-1000, "An unknown error occurred while processing the request."),
        };
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            retry_after_secs,
            ..Self::bad(code, message)
        }
    }

    pub fn unauthorized(code: i32, message: &str) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, ..Self::bad(code, message) }
    }

    /// A recording does not know this now. The exchange has no such error; 503 tells clients that they may retry.
    pub fn not_recorded(reason: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, ..Self::bad(-1000, reason) }
    }

    pub fn no_such_path() -> Self {
        Self { status: StatusCode::NOT_FOUND, ..Self::bad(-1000, "no such path") }
    }

    pub fn market_closed() -> Self {
        Self::bad(-1013, "Market is closed.")
    }

    pub fn filter(name: &str) -> Self {
        Self::bad(-1013, format!("Filter failure: {name}"))
    }

    pub fn invalid_symbol() -> Self {
        Self::bad(-1121, "Invalid symbol.")
    }

    pub fn missing(name: &str) -> Self {
        let message = format!("Mandatory parameter '{name}' was not sent, was empty/null, or malformed.");
        Self::bad(-1102, message)
    }

    pub fn illegal(name: &str, legal: &str) -> Self {
        let message = format!("Illegal characters found in parameter '{name}'; legal range is '{legal}'.");
        Self::bad(-1100, message)
    }

    pub fn invalid_value(name: &str) -> Self {
        Self::bad(-1130, format!("Data sent for parameter '{name}' is not valid."))
    }

    pub fn invalid_combination() -> Self {
        Self::bad(-1128, "Combination of optional parameters invalid.")
    }

    pub fn body(&self) -> String {
        json!({"code": self.code, "msg": self.message}).to_string()
    }
}
