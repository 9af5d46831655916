//! Errors of the exchange as Tribune's own.

use tribune_binance::RestError;
use tribune_binance::rest::ErrorKind as Kind;
use tribune_core::{Error, ErrorKind};

/// For `map_err`: neither type is of the crates that need this.
pub fn exchange_error(error: RestError) -> Error {
    let kind = match error.kind() {
        Kind::InvalidArgument => ErrorKind::InvalidArgument,
        Kind::NotFound => ErrorKind::NotFound,
        Kind::Forbidden => ErrorKind::Forbidden,
        Kind::Unavailable => ErrorKind::Unavailable,
        Kind::Internal => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}
