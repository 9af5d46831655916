//! The exchange's errors, by the codes and in the words it has for them.

use axum::http::StatusCode;
use serde_json::json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub status: StatusCode,
    pub code: i32,
    pub message: String,
}

impl ApiError {
    pub fn bad(code: i32, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code,
            message: message.into(),
        }
    }

    pub fn unauthorized(code: i32, message: &str) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            ..Self::bad(code, message)
        }
    }

    /// The exchange has no such error; by the status clients know that they may ask again.
    pub fn unknown(why: &str) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..Self::bad(-1000, why)
        }
    }

    pub fn invalid_symbol() -> Self {
        Self::bad(-1121, "Invalid symbol.")
    }

    pub fn missing(name: &str) -> Self {
        Self::bad(
            -1102,
            format!("Mandatory parameter '{name}' was not sent, was empty/null, or malformed."),
        )
    }

    pub fn illegal(name: &str, legal: &str) -> Self {
        Self::bad(
            -1100,
            format!("Illegal characters found in parameter '{name}'; legal range is '{legal}'."),
        )
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
