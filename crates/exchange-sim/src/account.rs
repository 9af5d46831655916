//! Signed endpoints.

use crate::rest::Request;
use crate::rest::error::ApiError;
use crate::settings::ApiKey;
use crate::venue::Venue;

pub const ENDPOINTS: [&str; 0] = [];

#[derive(Debug)]
pub struct Accounts;

impl Accounts {
    pub fn new(_keys: &[ApiKey]) -> Self {
        Self
    }
}

pub fn answer(_venue: &Venue, _request: &Request<'_>) -> Result<String, ApiError> {
    Err(crate::rest::no_such_path())
}
