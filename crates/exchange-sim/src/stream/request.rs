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
fn error(id: &Value, code: i32, message: &str) -> String {
    json!({"error": {"code": code, "msg": message}, "id": id}).to_string()
}

pub fn invalid(id: &Value, reason: &str) -> String {
    error(id, 2, &format!("Invalid request: {reason}"))
}

/// An error is the answer.
pub fn parse(text: &str) -> Result<Request, String> {
    let request: Request = serde_json::from_str(text).map_err(|problem| match problem.is_data() {
        true => invalid(&Value::Null, &problem.to_string()),
        false => error(&Value::Null, 3, &format!("Invalid JSON: {problem}")),
    })?;
    let reason = if !matches!(request.id, Value::Null | Value::Number(_) | Value::String(_)) {
        "request ID must be an unsigned integer or a string"
    } else if request.params.is_empty() && request.method != Method::ListSubscriptions {
        "no streams given"
    } else if !request.params.iter().all(|name| is_stream(name)) {
        // The exchange's message for a stream that does not exist.
        "invalid stream"
    } else {
        return Ok(request);
    };
    Err(invalid(&request.id, reason))
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
        assert!(parse("{").expect_err("no JSON").contains(r#""code":3"#));
        for (text, part) in [
            (r#"{"id":1}"#, "missing field `method`"),
            (r#"{"method":"BUY","id":1}"#, "unknown variant `BUY`"),
            (r#"{"method":"SUBSCRIBE","params":[],"id":1}"#, "no streams given"),
            (r#"{"method":"SUBSCRIBE","params":["a\"b"],"id":1}"#, "invalid stream"),
            (r#"{"method":"SUBSCRIBE","params":[1],"id":1}"#, "invalid type: integer"),
            (r#"{"method":"SUBSCRIBE","params":["not asdfads"],"id":1}"#, "invalid stream"),
        ] {
            let refusal = parse(text).expect_err(text);
            assert!(refusal.contains(r#""code":2"#) && refusal.contains(part), "{text}: {refusal}");
        }
    }

    #[test]
    fn streams_of_symbols_and_of_all_tickers_exist() {
        for name in ["btcusdt@trade", "币安人生usdt@ticker", "!ticker@arr"] {
            assert!(is_stream(name), "{name}");
        }
        for name in ["", "btcusdt", "@trade", "!x@trade", "btcusdt@nothing", "not asdfads", "a\"b@trade"] {
            assert!(!is_stream(name), "{name}");
        }
    }
}
