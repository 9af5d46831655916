//! Errors as OAuth writes them.

use serde_json::{Value, json};
use tribune_core::Error;

/// Why a request to an endpoint of the issuer is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub code: &'static str,
    pub description: String,
}

impl Refused {
    pub fn new(code: &'static str, description: impl Into<String>) -> Self {
        Self { code, description: description.into() }
    }

    pub fn json(&self) -> Value {
        json!({"error": self.code, "error_description": self.description})
    }

    pub fn status(&self) -> u16 {
        match self.code {
            "invalid_client" => 401,
            "temporarily_unavailable" => 503,
            _ => 400,
        }
    }
}

/// Only the database fails here.
impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        tracing::error!(%error, "a request to the issuer failed");
        let description = "The database does not answer. Try again in a moment.";
        Self::new("temporarily_unavailable", description)
    }
}
