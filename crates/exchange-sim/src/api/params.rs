//! The parameters of a request. As on the exchange, a request with a parameter that nobody reads is refused.

use std::cell::RefCell;
use std::collections::HashSet;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use super::error::ApiError;
use crate::interval::Millis;

const SYMBOL_RANGE: &str = "^[A-Z0-9-_.]{1,20}$";
const SYMBOLS_RANGE: &str = "^\\[(\"[A-Z0-9-_.]{1,20}\"(,\"[A-Z0-9-_.]{1,20}\"){0,}){0,1}\\]$";
const INTEGER_RANGE: &str = "^[0-9]{1,20}$";
/// More than any endpoint takes.
const MAX_PARAMETERS: usize = 64;

#[derive(Debug, Default)]
pub struct Params {
    pairs: Vec<(String, String)>,
    read: RefCell<HashSet<String>>,
}

impl Params {
    /// Parses the query and the form body together.
    pub fn parse(query: &str, body: &str) -> Result<Self, ApiError> {
        let mut params = Self::default();
        for pair in query.split('&').chain(body.split('&')).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned();
            if params.pairs.iter().any(|(other, _)| other == name) {
                let name: String = name.chars().take(40).collect();
                return Err(ApiError::bad(-1101, format!("Duplicate values for parameter '{name}'.")));
            }
            if params.pairs.len() == MAX_PARAMETERS {
                return Err(ApiError::bad(-1101, "Too many parameters."));
            }
            params.pairs.push((name.to_owned(), value));
        }
        Ok(params)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.pairs.iter().find(|(other, _)| other == name)?;
        self.read.borrow_mut().insert(name.to_owned());
        Some(value)
    }

    /// Fails if a parameter was sent that no one read.
    pub fn finish(&self) -> Result<(), ApiError> {
        let (read, sent) = (self.read.borrow().len(), self.pairs.len());
        if read == sent {
            return Ok(());
        }
        let message = format!("Not all sent parameters were read; read '{read}' parameter(s) but was sent '{sent}'.");
        Err(ApiError::bad(-1104, message))
    }

    pub fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.get(name).filter(|value| !value.is_empty()).ok_or_else(|| ApiError::missing(name))
    }

    pub fn integer<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ApiError::illegal(name, INTEGER_RANGE));
        }
        text.parse().map(Some).map_err(|_| ApiError::invalid_value(name))
    }

    /// `limit`, capped at `most`; zero is invalid.
    pub fn limit(&self, default: usize, most: usize) -> Result<usize, ApiError> {
        match self.integer::<usize>("limit")? {
            None => Ok(default),
            Some(0) => Err(ApiError::invalid_value("limit")),
            Some(limit) => Ok(limit.min(most)),
        }
    }

    pub fn symbol(&self) -> Result<&str, ApiError> {
        let symbol = self.required("symbol")?;
        match is_symbol(symbol) {
            true => Ok(symbol),
            false => Err(ApiError::illegal("symbol", SYMBOL_RANGE)),
        }
    }

    /// The symbols of a request; `None` means all.
    pub fn symbols(&self) -> Result<Option<Vec<String>>, ApiError> {
        match (self.get("symbol"), self.get("symbols")) {
            (Some(_), Some(_)) => Err(ApiError::invalid_combination()),
            (Some(_), None) => self.symbol().map(|symbol| Some(vec![symbol.to_owned()])),
            (None, Some(list)) => symbol_list(list).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// `startTime` and `endTime`.
    pub fn times(&self) -> Result<(Option<Millis>, Option<Millis>), ApiError> {
        let (start, end) = (self.integer("startTime")?, self.integer("endTime")?);
        match (start, end) {
            (Some(start), Some(end)) if start > end => Err(ApiError::bad(-1127, "startTime is after endTime.")),
            times => Ok(times),
        }
    }
}

fn is_symbol(name: &str) -> bool {
    let legal = |c: char| (c.is_alphanumeric() && !c.is_lowercase()) || "-_.".contains(c);
    (1..=20).contains(&name.chars().count()) && name.chars().all(legal)
}

fn symbol_list(text: &str) -> Result<Vec<String>, ApiError> {
    let symbols: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    if symbols.is_empty() || !symbols.iter().all(|symbol| is_symbol(symbol)) {
        return Err(ApiError::illegal("symbols", SYMBOLS_RANGE));
    }
    let unique: HashSet<&String> = symbols.iter().collect();
    if unique.len() < symbols.len() {
        return Err(ApiError::bad(-1101, "Duplicate values for parameter 'symbols'."));
    }
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_one_or_a_list() {
        let symbols = |query: &str| Params::parse(query, "").and_then(|params| params.symbols());
        assert_eq!(symbols("symbol=BTCUSDT"), Ok(Some(vec!["BTCUSDT".to_owned()])));
        let both = Some(vec!["BTCUSDT".to_owned(), "ETHUSDT".to_owned()]);
        assert_eq!(symbols("symbols=%5B%22BTCUSDT%22,%22ETHUSDT%22%5D"), Ok(both));
        assert_eq!(symbols(""), Ok(None));
        for (query, code) in [
            ("symbol=btcusdt", -1100),
            ("symbol=", -1102),
            ("symbols=BTCUSDT", -1100),
            ("symbols=[]", -1100),
            ("symbols=[%22A%22,%22A%22]", -1101),
            ("symbol=A&symbols=[%22A%22]", -1128),
            ("symbol=A&symbol=B", -1101),
        ] {
            assert_eq!(symbols(query).map_err(|error| error.code), Err(code), "{query}");
        }
    }

    #[test]
    fn unread_parameter_is_refused() {
        let params = Params::parse("symbol=A&colour=red", "").expect("parameters");
        assert_eq!(params.symbol(), Ok("A"));
        assert_eq!(params.finish().map_err(|error| error.code), Err(-1104));
    }
}
