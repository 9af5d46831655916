//! The unit of times. The exchange offers microseconds; here times are in milliseconds, and other units are refused.

use super::error::ApiError;

pub const HEADER: &str = "x-mbx-time-unit";

pub fn check(unit: Option<&str>) -> Result<(), ApiError> {
    match unit.map(str::to_uppercase).as_deref() {
        None | Some("MILLISECOND") => Ok(()),
        Some("MICROSECOND") => Err(ApiError::bad(
            -1194,
            "Invalid value for time unit; this exchange is simulated and has only MILLISECOND.",
        )),
        Some(_) => Err(ApiError::bad(
            -1194,
            "Invalid value for time unit; expected either MICROSECOND or MILLISECOND.",
        )),
    }
}
