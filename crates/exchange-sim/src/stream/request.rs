//! Requests on a stream connection: subscribe, unsubscribe, list, and the `combined` property.

use serde::Deserialize;
use serde_json::{Value, json};

use super::names::is_name;

/// The exchange's message for a stream that does not exist.
const INVALID_STREAM: &str = "invalid stream";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Subscribe(Vec<String>),
    Unsubscribe(Vec<String>),
    ListSubscriptions,
    SetCombined(bool),
    GetCombined,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub id: Value,
    pub command: Command,
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

    pub fn invalid_stream(id: Value) -> Self {
        Self::invalid(id, INVALID_STREAM)
    }

    pub fn json(&self) -> String {
        json!({"error": {"code": self.code, "msg": self.message}, "id": self.id}).to_string()
    }
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Vec<Value>>,
    #[serde(default)]
    id: Value,
}

pub fn parse(text: &str) -> Result<Request, Refusal> {
    let raw: Raw = serde_json::from_str(text).map_err(|error| Refusal {
        id: Value::Null,
        code: if error.is_data() { 2 } else { 3 },
        message: format!("Invalid {}: {error}", if error.is_data() { "request" } else { "JSON" }),
    })?;
    let params = raw.params.unwrap_or_default();
    let invalid = |reason: &str| Refusal::invalid(raw.id.clone(), reason);
    if !matches!(raw.id, Value::Null | Value::Number(_) | Value::String(_)) {
        return Err(invalid("request ID must be an unsigned integer or a string"));
    }
    let command = match raw.method.as_deref() {
        Some("SUBSCRIBE") => Command::Subscribe(names(&params).map_err(invalid)?),
        Some("UNSUBSCRIBE") => Command::Unsubscribe(names(&params).map_err(invalid)?),
        Some("LIST_SUBSCRIPTIONS") => Command::ListSubscriptions,
        Some("SET_PROPERTY") => match params.as_slice() {
            [Value::String(name), Value::Bool(on)] if name == "combined" => Command::SetCombined(*on),
            _ => return Err(invalid("the only property is combined, true or false")),
        },
        Some("GET_PROPERTY") => Command::GetCombined,
        Some(method) => {
            let known = "`SUBSCRIBE`, `UNSUBSCRIBE`, `LIST_SUBSCRIPTIONS`, `SET_PROPERTY`, `GET_PROPERTY`";
            let method: String = method.chars().take(40).collect();
            return Err(invalid(&format!("unknown variant `{method}`, expected one of {known}")));
        }
        None => return Err(invalid("missing field `method`")),
    };
    Ok(Request { id: raw.id, command })
}

fn names(params: &[Value]) -> Result<Vec<String>, &'static str> {
    if params.is_empty() {
        return Err("no streams given");
    }
    params
        .iter()
        .map(|name| match name {
            Value::String(name) if is_name(name) => Ok(name.clone()),
            _ => Err(INVALID_STREAM),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_parsed() {
        let request = parse(r#"{"method":"SUBSCRIBE","params":["btcusdt@trade"],"id":7}"#).expect("a request");
        assert_eq!(request.command, Command::Subscribe(vec!["btcusdt@trade".to_owned()]));
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
            (r#"{"method":"SUBSCRIBE","params":[1],"id":1}"#, "invalid stream"),
            (
                r#"{"method":"SUBSCRIBE","params":["not asdfads"],"id":1}"#,
                "invalid stream",
            ),
        ] {
            let refusal = parse(text).expect_err(text);
            assert_eq!(refusal.code, 2, "{text}");
            assert!(refusal.message.contains(part), "{text}: {}", refusal.message);
        }
    }
}
