//! What every endpoint shares: the request, its parameters, errors, and the unit of times.

pub mod error;
pub mod params;

use axum::http::Method;

use error::ApiError;
use params::Params;

/// One request, as the endpoints see it.
pub struct Request<'a> {
    pub method: &'a Method,
    pub endpoint: &'a str,
    pub query: &'a str,
    pub body: &'a str,
    pub key: Option<&'a str>,
    pub params: Params,
}

/// The exchange offers microseconds; here times are in milliseconds, and other units are refused.
pub fn check_time_unit(unit: Option<&str>) -> Result<(), ApiError> {
    if unit.is_none_or(|unit| unit.eq_ignore_ascii_case("MILLISECOND")) {
        return Ok(());
    }
    let message = "Invalid value for time unit; this exchange is simulated and has only MILLISECOND.";
    Err(ApiError::bad(-1194, message))
}
