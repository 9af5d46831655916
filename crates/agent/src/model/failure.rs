//! How a model can fail, as its user, its operator and the metrics are told.

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
    /// More than the model takes at once.
    TooLong,
    /// 429.
    TooManyRequests,
    /// 5xx.
    ServerError,
    /// Any other status that is not success.
    Rejected,
    /// No answer began.
    Unreachable,
    /// The connection broke before the answer was whole.
    HalfAnAnswer,
    Garbage,
    /// An answer that neither says nor calls anything.
    Nothing,
    /// Nothing came for longer than the model may be silent.
    Silence,
    /// The request took longer than one may.
    RequestTimeout,
    /// The turn took longer than it may.
    TurnTimeout,
    Cancelled,
}

impl Cause {
    /// For logs and metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::KeyRefused => "key_refused",
            Self::UnknownModel => "unknown_model",
            Self::OutOfCredit => "out_of_credit",
            Self::TooLong => "too_long",
            Self::TooManyRequests => "too_many_requests",
            Self::ServerError => "server_error",
            Self::Rejected => "rejected",
            Self::Unreachable => "unreachable",
            Self::HalfAnAnswer => "half_an_answer",
            Self::Garbage => "garbage",
            Self::Nothing => "nothing",
            Self::Silence => "silence",
            Self::RequestTimeout => "request_timeout",
            Self::TurnTimeout => "turn_timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// Some codes say more than the status that they come with.
    fn of_status(status: u16, code: Option<&str>) -> Self {
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

    /// What the user is told happened; goes on after "the language model".
    const fn happened(self) -> &'static str {
        match self {
            Self::KeyRefused => "refused the key that this server has for it",
            Self::UnknownModel => "is not known at the address that this server has for it",
            Self::OutOfCredit => "is not answering because its account is used up",
            Self::TooLong => "cannot take a conversation of this length",
            Self::TooManyRequests => "has more requests than it takes",
            Self::ServerError => "has an error of its own",
            Self::Rejected => "did not accept the request",
            Self::Unreachable => "cannot be reached",
            Self::HalfAnAnswer => "broke off in the middle of its answer",
            Self::Garbage => "answered with something that cannot be read",
            Self::Nothing => "gave no answer",
            Self::Silence => "has been silent for too long",
            Self::RequestTimeout | Self::TurnTimeout => "took too long",
            Self::Cancelled => "was stopped",
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::KeyRefused | Self::UnknownModel | Self::OutOfCredit => {
                "ask whoever runs this server to look at its model settings"
            }
            Self::TooLong => "begin a new one",
            Self::Rejected => "try another question or a new conversation",
            Self::TooManyRequests | Self::ServerError | Self::Unreachable => "try again in a minute",
            _ => "try again",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    /// For the log.
    pub(crate) status: Option<u16>,
    /// The endpoint's own name of the error, for the log: short, and never its message, which may repeat what was
    /// said.
    pub(crate) code: Option<String>,
}

impl Failure {
    pub(crate) fn of_status(status: u16, body: &Value) -> Self {
        let code = code(body);
        Self {
            cause: Cause::of_status(status, code.as_deref()),
            status: Some(status),
            code,
        }
    }

    /// An error that came with a status of success: some endpoints notice late that something is wrong.
    pub(crate) fn reported(body: &Value) -> Self {
        let status = body["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        Self {
            status,
            ..Self::of_status(status.unwrap_or(500), body)
        }
    }

    /// May work a moment later.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(
            self.cause,
            Cause::TooManyRequests | Cause::ServerError | Cause::Unreachable
        )
    }

    pub(crate) fn happened(&self) -> String {
        format!("the language model {}", self.cause.happened())
    }

    pub(crate) fn into_error(self) -> Error {
        let kind = match self.cause {
            Cause::Silence | Cause::RequestTimeout | Cause::TurnTimeout => ErrorKind::DeadlineExceeded,
            Cause::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Unavailable,
        };
        Error::new(kind, format!("{}; {}", self.happened(), self.cause.remedy()))
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            status: None,
            code: None,
        }
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
    ["code", "type"]
        .iter()
        .filter_map(|field| error[*field].as_str())
        .find(is_word)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_tells_the_cause() {
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
            assert_eq!(Failure::of_status(status, &Value::Null).cause, cause, "{status}");
        }
        let used_up = Failure::of_status(429, &json!({"error": {"code": "insufficient_quota"}}));
        assert!(used_up.cause == Cause::OutOfCredit && !used_up.is_passing());
    }

    #[test]
    fn only_a_plain_word_is_taken_for_a_code() {
        let body = |code: &str| json!({"error": {"message": "secret", "code": code, "type": "invalid_request"}});
        assert_eq!(code(&body("quota.exceeded")).as_deref(), Some("quota.exceeded"));
        assert_eq!(code(&body("you said: secret")).as_deref(), Some("invalid_request"));
        assert_eq!(code(&json!("secret")), None);
    }

    #[test]
    fn an_error_in_a_stream_tells_its_status_if_it_can() {
        assert_eq!(
            Failure::reported(&json!({"error": {"code": 429}})).cause,
            Cause::TooManyRequests
        );
        assert_eq!(
            Failure::reported(&json!({"error": "overloaded"})).cause,
            Cause::ServerError
        );
    }
}
