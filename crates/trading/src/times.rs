//! Times as arguments of lists.

use serde_json::Value;
use tribune_binance::model::Millis;
use tribune_binance::moment::parse_time;
use tribune_core::{Error, JsonObject, Result};

/// Turns readable times into milliseconds; anything else is left for the schema to refuse.
pub(super) fn normalise_times(args: &mut JsonObject) {
    for name in ["start_time", "end_time"] {
        let Some(value) = args.get_mut(name) else { continue };
        let time = match &*value {
            Value::Number(number) => parse_time(&number.to_string()),
            Value::String(text) => parse_time(text),
            _ => None,
        };
        if let Some(time) = time {
            *value = Value::from(time);
        }
    }
}

pub(super) fn check_times(start: Option<Millis>, end: Option<Millis>) -> Result<()> {
    match (start, end) {
        (Some(start), Some(end)) if start > end => Err(Error::invalid_argument(
            "start_time is after end_time: give the earlier one as start_time",
        )),
        _ => Ok(()),
    }
}
