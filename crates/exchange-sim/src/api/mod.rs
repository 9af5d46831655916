//! What every endpoint shares: the request, its parameters, errors, and the unit of times.

pub mod error;
pub mod params;
pub mod time_unit;

use axum::http::Method;

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
