//! Signatures: HMAC-SHA256 over the query and the body as they were sent, and a recent timestamp.

use data_encoding::HEXLOWER_PERMISSIVE;
use ring::hmac;

use crate::api::Request;
use crate::api::error::ApiError;
use crate::interval::{Millis, SECOND};

const DEFAULT_WINDOW: Millis = 5_000;
const MAX_WINDOW: Millis = 60_000;
/// How far a client's clock may be ahead.
const MAX_AHEAD: Millis = SECOND;

pub fn check(request: &Request<'_>, secret: &str, now: Millis) -> Result<(), ApiError> {
    let params = &request.params;
    let signature = params.required("signature")?;
    let timestamp: Millis = params.integer("timestamp")?.ok_or_else(|| ApiError::missing("timestamp"))?;
    let window = params.integer("recvWindow")?.unwrap_or(DEFAULT_WINDOW);
    if window > MAX_WINDOW {
        return Err(ApiError::bad(-1131, "recvWindow must be less than 60000."));
    }
    let payload = format!("{}{}", unsigned(request.query), unsigned(request.body));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = HEXLOWER_PERMISSIVE.decode(signature.as_bytes());
    let is_genuine = tag.is_ok_and(|tag| hmac::verify(&key, payload.as_bytes(), &tag).is_ok());
    if !is_genuine {
        return Err(ApiError::bad(-1022, "Signature for this request is not valid."));
    }
    if timestamp > now.saturating_add(MAX_AHEAD) {
        let message = "Timestamp for this request was 1000ms ahead of the server's time.";
        return Err(ApiError::bad(-1021, message));
    }
    if now.saturating_sub(timestamp) > window {
        return Err(ApiError::bad(-1021, "Timestamp for this request is outside of the recvWindow."));
    }
    Ok(())
}

/// Everything but the signature itself, which is what was signed.
fn unsigned(text: &str) -> String {
    let pairs: Vec<&str> = text.split('&').filter(|pair| !pair.starts_with("signature=")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;
    use crate::api::params::Params;

    /// The example in the exchange's documentation.
    #[test]
    fn documented_example_is_genuine() {
        let secret = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";
        let query = "symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559\
             &signature=c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71";
        let check_at = |query: &str, now| {
            let request = Request {
                method: &Method::POST,
                endpoint: "order",
                query,
                body: "",
                key: None,
                params: Params::parse(query, "").expect("parameters"),
            };
            check(&request, secret, now).map_err(|error| error.code)
        };
        assert_eq!(check_at(query, 1_499_827_319_559), Ok(()));
        assert_eq!(check_at(query, 1_499_827_319_559 + 5_001), Err(-1021));
        assert_eq!(check_at(query, 1_499_827_319_559 - 1_001), Err(-1021));
        assert_eq!(check_at(&query.replace("price=0.1", "price=0.2"), 1_499_827_319_559), Err(-1022));
        assert_eq!(check_at(&query.replace("c8db", "zzzz"), 1_499_827_319_559), Err(-1022));
        assert_eq!(check_at("signature=00", 0), Err(-1102));
    }
}
