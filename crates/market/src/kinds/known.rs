//! Figures that may be missing.

use schemars::JsonSchema;
use serde::Serialize;
use tribune_analytics::Unavailable;

/// A figure, or null with its reason.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Known<T> {
    Value(T),
    Missing { value: (), reason: String },
}

impl<T> Known<T> {
    pub fn missing(reason: impl ToString) -> Self {
        Self::Missing { value: (), reason: reason.to_string() }
    }

    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Missing { .. } => None,
        }
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Value(_) => None,
            Self::Missing { reason, .. } => Some(reason),
        }
    }
}

impl<T> From<Result<T, Unavailable>> for Known<T> {
    fn from(figure: Result<T, Unavailable>) -> Self {
        figure.map_or_else(Self::missing, Self::Value)
    }
}

/// A figure that may be missing, for a sentence.
pub fn or_unknown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}
