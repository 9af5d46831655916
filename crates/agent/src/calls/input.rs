//! What the model wrote of a call.

use std::collections::HashSet;

use serde_json::Value;
use tribune_core::JsonObject;

use crate::model::reply::{Call, MAX_ARGUMENT_BYTES};
use crate::text::{clip, plain};

/// Longer ids are replaced.
const MAX_ID_BYTES: usize = 64;
/// No tool has a longer name.
const MAX_NAME_CHARS: usize = 64;

/// What makes two calls the same, whatever the order of their arguments.
pub(super) fn signature(tool: &str, arguments: JsonObject) -> String {
    let mut arguments = Value::Object(arguments);
    arguments.sort_all_objects();
    format!("{tool} {arguments}")
}

/// The arguments of a call; empty input is an empty object.
pub(super) fn arguments(call: &Call) -> Result<JsonObject, &'static str> {
    if call.cut_off {
        return Err("the call was cut off because the answer was too long; repeat it with less text");
    }
    if call.too_long {
        return Err("the arguments are longer than 64 KB; send less");
    }
    if call.arguments.trim().is_empty() {
        return Ok(JsonObject::new());
    }
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("the arguments are not a JSON object; send one, for example {\"name\": \"value\"}"),
        Err(_) => Err("the arguments are not valid JSON; send one JSON object"),
    }
}

const _: () = assert!(MAX_ARGUMENT_BYTES == 64 * 1024, "the sentence above says so");

/// The arguments as the model sees them again. Invalid ones become an empty object: some servers fail on anything else
/// in their own history, and the result says what was wrong.
pub(super) fn echoed(call: &Call) -> String {
    match arguments(call) {
        Ok(_) if !call.arguments.trim().is_empty() => call.arguments.clone(),
        _ => "{}".to_owned(),
    }
}

pub(super) fn shown_name(call: &Call) -> String {
    clip(&plain(&call.name), MAX_NAME_CHARS)
}

/// The ids of the calls; missing, duplicate and too long ones are replaced.
pub(super) fn distinct_ids(calls: &[Call], first: usize) -> Vec<String> {
    let mut seen = HashSet::new();
    let id = |(at, call): (usize, &Call)| {
        let fit = !call.id.is_empty() && call.id.len() <= MAX_ID_BYTES && seen.insert(call.id.clone());
        if fit { call.id.clone() } else { format!("tribune_{}", first + at) }
    };
    calls.iter().enumerate().map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, arguments: &str) -> Call {
        Call { id: id.into(), name: "look".into(), arguments: arguments.into(), too_long: false, cut_off: false }
    }

    #[test]
    fn arguments_are_one_object_or_empty() {
        assert_eq!(arguments(&call("", " ")), Ok(JsonObject::new()));
        assert_eq!(arguments(&call("", "{}")), Ok(JsonObject::new()));
        assert!(arguments(&call("", "{\"a\":1}")).is_ok_and(|object| object["a"] == 1));
        for wrong in ["[]", "null", "\"x\"", "{\"a\":", "{} {}"] {
            assert!(arguments(&call("", wrong)).is_err(), "{wrong}");
            assert_eq!(echoed(&call("", wrong)), "{}");
        }
        assert_eq!(echoed(&call("", "{ \"a\": 1 }")), "{ \"a\": 1 }");
        let cut_off = Call { cut_off: true, ..call("", "") };
        assert!(arguments(&cut_off).is_err_and(|wrong| wrong.contains("was cut off")));
    }

    #[test]
    fn every_call_of_a_round_has_a_distinct_id() {
        let calls = [call("a", ""), call("a", ""), call("", ""), call(&"x".repeat(65), "")];
        assert_eq!(distinct_ids(&calls, 4), ["a", "tribune_5", "tribune_6", "tribune_7"]);
    }
}
