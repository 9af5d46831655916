//! Numbers in the configuration as what they count, for `#[serde(deserialize_with = …)]`.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer};

pub const MIB: usize = 1024 * 1024;

pub fn secs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_secs)
}

/// As bytes.
pub fn mebibytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    usize::deserialize(deserializer).map(|count| count.saturating_mul(MIB))
}
