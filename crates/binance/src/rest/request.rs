//! One request to the exchange.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use reqwest::header::HeaderValue;

use super::endpoint::Endpoint;
use super::error::RestError;

/// All but the unreserved characters.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Longer than any symbol; a longer text is not sent.
const MAX_SYMBOL_BYTES: usize = 64;

#[derive(Debug, Clone)]
pub struct Request {
    pub(super) endpoint: Endpoint,
    pub(super) method: Method,
    /// Percent-encoded, without the question mark.
    pub(super) query: String,
    /// Sent as a form instead, percent-encoded too.
    pub(super) form: Option<String>,
    /// The account it is sent for.
    pub(super) key: Option<HeaderValue>,
    /// The answer is about every symbol: it may be larger and take longer.
    pub(super) is_bulk: bool,
    /// The symbol it is about, for errors.
    pub(super) subject: Option<String>,
    /// How many symbols it is about; `None` is all.
    symbols: Option<usize>,
    limit: Option<u32>,
}

impl Request {
    /// About all symbols, until `symbol` or `symbols` is called.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            method: Method::GET,
            query: String::new(),
            form: None,
            key: None,
            is_bulk: false,
            subject: None,
            symbols: None,
            limit: None,
        }
    }

    pub fn symbol(mut self, symbol: &str) -> Result<Self, RestError> {
        check_symbol(symbol)?;
        self.symbols = Some(1);
        self.subject = Some(symbol.to_owned());
        Ok(self.with("symbol", symbol))
    }

    pub(super) fn symbols(mut self, symbols: &[&str]) -> Result<Self, RestError> {
        for symbol in symbols {
            check_symbol(symbol)?;
        }
        self.symbols = Some(symbols.len());
        let list = serde_json::Value::from(symbols).to_string();
        Ok(self.with("symbols", &list))
    }

    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self.with("limit", &limit.to_string())
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        append(&mut self.query, name, value);
        self
    }

    pub fn with_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, &value.to_string()),
            None => self,
        }
    }

    pub(super) fn bulk(mut self) -> Self {
        self.is_bulk = true;
        self
    }

    pub(super) const fn weight(&self) -> u32 {
        self.endpoint.weight(self.symbols, self.limit)
    }

    /// Equal for equal requests.
    pub(super) fn key(&self) -> String {
        format!("{}?{}", self.endpoint.path, self.query)
    }
}

fn check_symbol(symbol: &str) -> Result<(), RestError> {
    if symbol.is_empty() || symbol.len() > MAX_SYMBOL_BYTES || symbol.chars().any(char::is_control) {
        return Err(RestError::Invalid("that is not a symbol; symbols look like BTCUSDT".to_owned()));
    }
    Ok(())
}

/// `name=value`, percent-encoded.
pub(super) fn append(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(name);
    query.push('=');
    query.extend(utf8_percent_encode(value, VALUE));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_percent_encoded() {
        let request = Request::new(Endpoint::DEPTH).symbol("币安人生USDT").expect("symbol");
        let request = request.limit(100);
        assert_eq!(request.query, "symbol=%E5%B8%81%E5%AE%89%E4%BA%BA%E7%94%9FUSDT&limit=100");
        let several = Request::new(Endpoint::TICKER_24H).symbols(&["BTCUSDT", "A&b=c"]).expect("symbols");
        assert_eq!(several.query, "symbols=%5B%22BTCUSDT%22%2C%22A%26b%3Dc%22%5D");
        assert_eq!(several.weight(), 2);
    }

    #[test]
    fn invalid_arguments_are_not_sent() {
        let long = "X".repeat(65);
        for symbol in ["", "A\nB", &long] {
            assert!(Request::new(Endpoint::DEPTH).symbol(symbol).is_err(), "{symbol}");
        }
        assert!(Request::new(Endpoint::TICKER_24H).symbols(&["A", ""]).is_err());
    }

    proptest! {
        #[test]
        fn values_cannot_add_parameters(value in "\\PC{0,40}|[\\x00-\\x7f]{0,40}") {
            let mut query = String::new();
            append(&mut query, "symbol", &value);
            prop_assert!(query.is_ascii() && !query.contains(['&', '#', '?', ' ', '+']));
            prop_assert_eq!(query.matches('=').count(), 1);
        }
    }
}
