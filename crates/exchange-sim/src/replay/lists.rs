//! Messages of several symbols: tickers of all of them, and exchangeInfo.

use serde_json::Value;
use serde_json::value::RawValue;

use super::message::{Content, Peek, is_symbol};
use super::wire;
use crate::market::ticker::Ticker;

pub struct Tickers {
    pub read: Vec<Content>,
    /// Some are not understood.
    pub lacking: bool,
}

/// `None` if it is no list.
pub fn tickers(data: &str) -> Option<Tickers> {
    let elements: Vec<&RawValue> = serde_json::from_str(data).ok()?;
    let (mut read, mut lacking) = (Vec::with_capacity(elements.len()), false);
    for element in elements {
        match ticker(element.get()) {
            Some(Content::Other) => {}
            Some(ticker) => read.push(ticker),
            None => lacking = true,
        }
    }
    Some(Tickers { read, lacking })
}

/// A ticker, by itself or of a list of them; `None` if it is not understood, `Other` if it is of another kind.
pub fn ticker(data: &str) -> Option<Content> {
    let peek: Peek<'_> = serde_json::from_str(data).ok()?;
    let named = |ticker: &Ticker| is_symbol(&ticker.symbol);
    match peek.e.as_deref()? {
        "24hrTicker" => wire::ticker(data).filter(named).map(Box::new).map(Content::Ticker),
        "24hrMiniTicker" => wire::mini_ticker(data)
            .filter(named)
            .map(Box::new)
            .map(Content::MiniTicker),
        _ => Some(Content::Other),
    }
}

/// The entries of exchangeInfo that say what a symbol is of.
pub fn listings(symbols: &str) -> Option<Vec<Value>> {
    let mut entries: Vec<Value> = serde_json::from_str(symbols).ok()?;
    let says = |entry: &Value, field: &str| entry[field].as_str().is_some_and(is_symbol);
    entries.retain(|entry| {
        ["symbol", "status", "baseAsset", "quoteAsset"]
            .iter()
            .all(|field| says(entry, field))
    });
    (!entries.is_empty()).then_some(entries)
}
