//! Requests on a stream connection: subscribe, unsubscribe and list.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::market::publish::is_stream_kind;
use crate::markets::ALL_TICKERS;

/// Longer than any stream's name.
const MAX_NAME_BYTES: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Method {
    Subscribe,
    Unsubscribe,
    ListSubscriptions,
}

#[derive(Debug, Deserialize)]
pub struct Request {
    pub method: Method,
    /// Names of streams.
    #[serde(default)]
    pub params: Vec<String>,
    #[serde(default)]
    pub id: Value,
}

/// An error answer with the exchange's code and message.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    pub id: Value,
    pub code: i32,
    pub message: String,
}

impl Refusal {
    pub fn invalid(id: Value, reason: &str) -> Self {
        let message = format!("Invalid request: {reason}");
        Self { id, code: 2, message }
    }

    pub fn json(&self) -> String {
        json!({"error": {"code": self.code, "msg": self.message}, "id": self.id}).to_string()
    }
}

pub fn parse(text: &str) -> Result<Request, Refusal> {
    let request: Request = serde_json::from_str(text).map_err(|error| Refusal {
        id: Value::Null,
        code: if error.is_data() { 2 } else { 3 },
        message: format!("Invalid {}: {error}", if error.is_data() { "request" } else { "JSON" }),
    })?;
    let is_listing = request.method == Method::ListSubscriptions;
    let reason = if !matches!(request.id, Value::Null | Value::Number(_) | Value::String(_)) {
        "request ID must be an unsigned integer or a string"
    } else if request.params.is_empty() && !is_listing {
        "no streams given"
    } else if !request.params.iter().all(|name| is_stream(name)) {
        // The exchange's message for a stream that does not exist.
        "invalid stream"
    } else {
        return Ok(request);
    };
    Err(Refusal::invalid(request.id, reason))
}

/// Whether the exchange has such a stream, so that nobody waits for one that never sends. Like the exchange, it accepts
/// symbols that are not listed; but a name is written into messages as it is.
pub fn is_stream(name: &str) -> bool {
    let is_illegal = |c: char| c.is_control() || c.is_whitespace() || "\"\\/!".contains(c);
    ALL_TICKERS.contains(&name)
        || name.split_once('@').is_some_and(|(symbol, kind)| {
            let is_legal = name.len() <= MAX_NAME_BYTES && !name.chars().any(is_illegal);
            is_legal && !symbol.is_empty() && is_stream_kind(kind)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_parsed() {
        let request = parse(r#"{"method":"SUBSCRIBE","params":["btcusdt@trade"],"id":7}"#).expect("a request");
        assert_eq!((request.method, request.params), (Method::Subscribe, vec!["btcusdt@trade".to_owned()]));
        assert_eq!(request.id, json!(7));
    }

    #[test]
    fn refusal_names_the_problem() {
        assert_eq!(parse("{").expect_err("no JSON").code, 3);
        for (text, part) in [
            (r#"{"id":1}"#, "missing field `method`"),
            (r#"{"method":"BUY","id":1}"#, "unknown variant `BUY`"),
            (r#"{"method":"SUBSCRIBE","params":[],"id":1}"#, "no streams given"),
            (r#"{"method":"SUBSCRIBE","params":["a\"b"],"id":1}"#, "invalid stream"),
            (r#"{"method":"SUBSCRIBE","params":[1],"id":1}"#, "invalid type: integer"),
            (r#"{"method":"SUBSCRIBE","params":["not asdfads"],"id":1}"#, "invalid stream"),
        ] {
            let refusal = parse(text).expect_err(text);
            assert_eq!(refusal.code, 2, "{text}");
            assert!(refusal.message.contains(part), "{text}: {}", refusal.message);
        }
    }

    #[test]
    fn streams_of_symbols_and_of_all_tickers_exist() {
        for name in ["btcusdt@trade", "币安人生usdt@avgPrice", "!ticker@arr"] {
            assert!(is_stream(name), "{name}");
        }
        for name in ["", "btcusdt", "@trade", "!x@trade", "btcusdt@nothing", "not asdfads", "a\"b@trade"] {
            assert!(!is_stream(name), "{name}");
        }
    }
}
