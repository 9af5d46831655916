//! The unit of times. Clients can ask the exchange for microseconds; here times are in milliseconds, and whoever asks for
//! others is told so instead of reading them wrongly.

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
