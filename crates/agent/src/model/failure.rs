//! How a model can fail: causes, messages for users, labels for metrics.

use std::time::Duration;

use serde_json::Value;
use tribune_core::{Error, ErrorKind};

/// The longest error code of an endpoint that is logged.
const MAX_CODE_CHARS: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// 401 or 403.
    KeyRefused,
    /// 404: no such model, or no such address.
    UnknownModel,
    /// 402, or a quota that is used up.
    OutOfCredit,
    /// The request is longer than the model accepts.
    TooLong,
    /// 429.
    TooManyRequests,
    /// 5xx.
    ServerError,
    /// Any other status that is not success.
    Rejected,
    /// No response began.
    Unreachable,
    /// The connection broke before the answer was complete.
    HalfAnAnswer,
    Garbage,
    /// An answer without text and calls.
    Nothing,
    /// The text is a tool call.
    RawCall,
    /// Nothing arrived within `settings.silence`.
    Silence,
    /// The request exceeded its timeout.
    RequestTimeout,
    /// The turn exceeded its timeout.
    TurnTimeout,
    Cancelled,
}

impl Cause {
    /// The label for logs and metrics, and what happened, for the user.
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::KeyRefused => ("key_refused", "The model server rejected the API key"),
            Self::UnknownModel => ("unknown_model", "The model server does not have this model or address"),
            Self::OutOfCredit => ("out_of_credit", "The account of the model has no credit left"),
            Self::TooLong => ("too_long", "The conversation is too long for the model"),
            Self::TooManyRequests => ("too_many_requests", "The model server is rate limiting requests"),
            Self::ServerError => ("server_error", "The model server failed"),
            Self::Rejected => ("rejected", "The model server rejected the request"),
            Self::Unreachable => ("unreachable", "The model server is unreachable"),
            Self::HalfAnAnswer => ("half_an_answer", "The model's answer broke off"),
            Self::Garbage => ("garbage", "The model server sent an unreadable answer"),
            Self::Nothing => ("nothing", "The model sent an empty answer"),
            Self::RawCall => {
                ("raw_call", "The model wrote a tool call as text instead of making it, so nothing was done")
            }
            Self::Silence => ("silence", "The model sent nothing for too long"),
            Self::RequestTimeout => ("request_timeout", "The model timed out"),
            Self::TurnTimeout => ("turn_timeout", "The model timed out"),
            Self::Cancelled => ("cancelled", "The request was cancelled"),
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// Some codes say more than their status.
    fn from_status(status: u16, code: Option<&str>) -> Self {
        match (status, code) {
            (402, _) | (_, Some("insufficient_quota")) => Self::OutOfCredit,
            (413, _) | (_, Some("context_length_exceeded")) => Self::TooLong,
            (401 | 403, _) => Self::KeyRefused,
            (404, _) => Self::UnknownModel,
            (429, _) => Self::TooManyRequests,
            (500..=599, _) => Self::ServerError,
            _ => Self::Rejected,
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::KeyRefused | Self::UnknownModel | Self::OutOfCredit => {
                "Ask the operator of this server to check the model settings."
            }
            Self::TooLong => "Start a new conversation.",
            Self::Rejected => "Try another question or a new conversation.",
            Self::RawCall => "Try again, or ask the operator for a model that can call tools.",
            Self::TooManyRequests | Self::ServerError | Self::Unreachable => "Try again in a minute.",
            _ => "Try again.",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) status: Option<u16>,
    /// The endpoint's error code: a short word, never its message, which may quote the conversation.
    pub(crate) code: Option<String>,
    /// How long the endpoint asked to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    pub(crate) fn from_status(status: u16, body: &Value) -> Self {
        let code = code(body);
        Self { cause: Cause::from_status(status, code.as_deref()), status: Some(status), code, retry_after: None }
    }

    /// An error inside a response with a success status.
    pub(crate) fn reported(body: &Value) -> Self {
        let status = body["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        Self { status, ..Self::from_status(status.unwrap_or(500), body) }
    }

    /// Whether a retry may succeed.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self.cause, Cause::TooManyRequests | Cause::ServerError | Cause::Unreachable)
    }

    /// What happened, with the status and code of the model server.
    pub(crate) fn happened(&self) -> String {
        let happened = self.cause.texts().1;
        match (self.status, &self.code) {
            (Some(status), Some(code)) if self.cause == Cause::ServerError => {
                format!("The model server answered {status} ({code}).")
            }
            (Some(status), None) if self.cause == Cause::ServerError => format!("The model server answered {status}."),
            (Some(status), _) => format!("{happened} (HTTP {status})."),
            (None, _) => format!("{happened}."),
        }
    }

    pub(crate) fn into_error(self) -> Error {
        let kind = match self.cause {
            Cause::Silence | Cause::RequestTimeout | Cause::TurnTimeout => ErrorKind::DeadlineExceeded,
            Cause::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Unavailable,
        };
        Error::new(kind, format!("{} {}", self.happened(), self.cause.remedy()))
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self { cause, status: None, code: None, retry_after: None }
    }
}

/// The code or type of an error object, if it is a plain word.
fn code(body: &Value) -> Option<String> {
    let error = &body["error"];
    let is_word = |word: &&str| {
        !word.is_empty()
            && word.len() <= MAX_CODE_CHARS
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    };
    ["code", "type"].iter().filter_map(|field| error[*field].as_str()).find(is_word).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn status_decides_the_cause() {
        for (status, cause) in [
            (400, Cause::Rejected),
            (401, Cause::KeyRefused),
            (403, Cause::KeyRefused),
            (404, Cause::UnknownModel),
            (429, Cause::TooManyRequests),
            (500, Cause::ServerError),
            (503, Cause::ServerError),
            (402, Cause::OutOfCredit),
            (413, Cause::TooLong),
        ] {
            assert_eq!(Failure::from_status(status, &Value::Null).cause, cause, "{status}");
        }
        let used_up = Failure::from_status(429, &json!({"error": {"code": "insufficient_quota"}}));
        assert!(used_up.cause == Cause::OutOfCredit && !used_up.is_passing());
    }

    #[test]
    fn only_plain_words_are_codes() {
        let body = |code: &str| json!({"error": {"message": "secret", "code": code, "type": "invalid_request"}});
        assert_eq!(code(&body("quota.exceeded")).as_deref(), Some("quota.exceeded"));
        assert_eq!(code(&body("you said: secret")).as_deref(), Some("invalid_request"));
        assert_eq!(code(&json!("secret")), None);
    }

    #[test]
    fn error_in_a_stream_may_have_a_status() {
        assert_eq!(Failure::reported(&json!({"error": {"code": 429}})).cause, Cause::TooManyRequests);
        assert_eq!(Failure::reported(&json!({"error": "overloaded"})).cause, Cause::ServerError);
    }
}
