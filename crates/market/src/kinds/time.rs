//! A moment, as answers write it: to the millisecond, in UTC.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_binance::{Millis, written};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub struct Time(pub Timestamp);

impl Time {
    /// The nearest representable time if it is out of range.
    pub fn from_millis(millis: Millis) -> Self {
        let nearest = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Self(Timestamp::from_millisecond(millis).unwrap_or(nearest))
    }

    pub fn millis(self) -> Millis {
        self.0.as_millisecond()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(self.0))
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        written(time.0)
    }
}
