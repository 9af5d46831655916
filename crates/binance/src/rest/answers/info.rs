//! `exchangeInfo`: symbols, their trading rules, and the exchange's limits.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Decoded;
use crate::model::{Millis, Symbol};
use crate::number::{Notional, Price, Quantity};
use crate::rest::decode::{Lenient, Wrong, parse, word};
use crate::wire::{millis, nonzero};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeInfo {
    /// What requests may weigh in a minute.
    pub weight_per_minute: Option<u32>,
    pub symbols: Vec<Symbol>,
    /// Symbols that could not be read, with the reason: one of them must not take away all others.
    pub refused: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct RateLimit {
    rate_limit_type: String,
    interval: String,
    interval_num: u64,
    limit: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Wire<'a> {
    #[serde(deserialize_with = "millis")]
    server_time: Millis,
    rate_limits: Vec<RateLimit>,
    #[serde(borrow)]
    symbols: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct SymbolWire {
    #[serde(deserialize_with = "word")]
    symbol: Arc<str>,
    #[serde(deserialize_with = "word")]
    status: Arc<str>,
    #[serde(deserialize_with = "word")]
    base_asset: Arc<str>,
    #[serde(deserialize_with = "word")]
    quote_asset: Arc<str>,
    filters: Option<Vec<Lenient<Filter>>>,
}

/// A rule of zero is a rule that is switched off.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Filter {
    #[serde(deserialize_with = "word")]
    filter_type: String,
    #[serde(default, deserialize_with = "nonzero")]
    tick_size: Option<Price>,
    #[serde(default, deserialize_with = "nonzero")]
    step_size: Option<Quantity>,
    #[serde(default, deserialize_with = "nonzero")]
    min_qty: Option<Quantity>,
    #[serde(default, deserialize_with = "nonzero")]
    max_qty: Option<Quantity>,
    #[serde(default, deserialize_with = "nonzero")]
    min_notional: Option<Notional>,
    #[serde(default, deserialize_with = "nonzero")]
    max_notional: Option<Notional>,
}

pub(in crate::rest) fn exchange_info(body: &[u8]) -> Decoded<ExchangeInfo> {
    let wire: Wire<'_> = parse(body)?;
    let weight = wire.rate_limits.iter().find(|limit| {
        (&*limit.rate_limit_type, &*limit.interval, limit.interval_num) == ("REQUEST_WEIGHT", "MINUTE", 1)
    });
    let mut info = ExchangeInfo {
        weight_per_minute: weight.map(|weight| weight.limit),
        symbols: Vec::with_capacity(wire.symbols.len()),
        refused: Vec::new(),
    };
    for (at, raw) in wire.symbols.into_iter().enumerate() {
        match parse::<SymbolWire>(raw.get().as_bytes()) {
            Ok(symbol) => info.symbols.push(symbol.into()),
            Err(wrong) => info.refused.push((name_or_position(raw, at), wrong.to_string())),
        }
    }
    if let (true, Some((name, why))) = (info.symbols.is_empty(), info.refused.first()) {
        return Err(Wrong::new("symbols", &format!("cannot be read; of {name} {why}")));
    }
    Ok((info, Some(wire.server_time)))
}

fn name_or_position(raw: &RawValue, at: usize) -> String {
    let symbol: Option<Value> = serde_json::from_str(raw.get()).ok();
    let name = symbol.as_ref().and_then(|symbol| symbol["symbol"].as_str());
    name.map_or_else(|| format!("symbols[{at}]"), str::to_owned)
}

impl From<SymbolWire> for Symbol {
    fn from(wire: SymbolWire) -> Self {
        let named = Self::named(wire.symbol, wire.base_asset, wire.quote_asset);
        let mut symbol = Self { status: wire.status, ..named };
        // Price and book need no rule: one that cannot be read does not take the symbol away.
        let missing = || vec![Lenient(Err(Wrong::new("filters", "is missing")))];
        for Lenient(filter) in wire.filters.unwrap_or_else(missing) {
            match filter {
                Ok(filter) => symbol.apply(filter),
                Err(wrong) => symbol.unread_rule = Some(wrong.to_string().into()),
            }
        }
        symbol
    }
}

impl Symbol {
    /// Other filters are the exchange's own business.
    fn apply(&mut self, filter: Filter) {
        match filter.filter_type.as_str() {
            "PRICE_FILTER" => self.tick_size = filter.tick_size,
            "LOT_SIZE" => {
                self.step_size = filter.step_size;
                (self.min_quantity, self.max_quantity) = (filter.min_qty, filter.max_qty);
            }
            "MIN_NOTIONAL" => self.min_notional = filter.min_notional,
            "NOTIONAL" => (self.min_notional, self.max_notional) = (filter.min_notional, filter.max_notional),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::decode::Read;
    use serde_json::{Value, json};

    fn info() -> Value {
        json!({
            "timezone": "UTC", "serverTime": 1_700_000_000_000i64,
            "rateLimits": [
                {"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": 6000},
                {"rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10, "limit": 100},
            ],
            "symbols": [
                {"symbol": "TUSDT", "status": "TRADING", "baseAsset": "T", "quoteAsset": "USDT", "filters": [
                    {"filterType": "PRICE_FILTER", "minPrice": "0.00001", "maxPrice": "100", "tickSize": "0.00001000"},
                    {"filterType": "LOT_SIZE", "minQty": "1", "maxQty": "90000000", "stepSize": "1.00"},
                    {"filterType": "NOTIONAL", "minNotional": "5.0", "maxNotional": "9000000.00000000"},
                    {"filterType": "ICEBERG_PARTS", "limit": 10},
                ]},
                {"symbol": "OLDBTC", "status": "BREAK", "baseAsset": "OLD", "quoteAsset": "BTC", "filters": [
                    {"filterType": "MIN_NOTIONAL", "minNotional": "0.0001"},
                    {"filterType": "PRICE_FILTER", "tickSize": "0.00000000"},
                ]},
            ],
        })
    }

    fn read(info: &Value) -> Read<ExchangeInfo> {
        exchange_info(info.to_string().as_bytes()).map(|(info, _)| info)
    }

    #[test]
    fn symbols_and_limits_are_read() {
        let info = read(&info()).expect("info");
        assert_eq!(info.weight_per_minute, Some(6000));
        let symbol = &info.symbols[0];
        assert_eq!((&*symbol.base, &*symbol.quote), ("T", "USDT"));
        assert_eq!(symbol.tick_size.map(|tick| tick.to_string()).as_deref(), Some("0.00001"));
        assert_eq!(symbol.step_size.map(|step| step.to_string()).as_deref(), Some("1"));
        assert_eq!(symbol.max_notional.map(|most| most.to_string()).as_deref(), Some("9000000"));
        let old = &info.symbols[1];
        assert_eq!((&*old.status, old.is_traded()), ("BREAK", false));
        assert_eq!(old.tick_size, None, "a tick of zero is no rule");
        assert_eq!(old.min_notional.map(|least| least.to_string()).as_deref(), Some("0.0001"));
    }

    #[test]
    fn one_unreadable_symbol_leaves_the_others() {
        let mut odd = info();
        odd["symbols"][0]["quoteAsset"] = json!(7);
        let read = read(&odd).expect("the rest");
        assert_eq!(read.symbols.len(), 1);
        let refused = ("TUSDT".to_owned(), "`quoteAsset` is not a string".to_owned());
        assert_eq!(read.refused, [refused]);
    }

    #[test]
    fn unreadable_rule_leaves_its_symbol() {
        let unread = |at: usize, name: &str, value: Value| {
            let mut odd = info();
            odd["symbols"][0]["filters"][at][name] = value;
            let read = read(&odd).expect("info");
            assert_eq!(read.symbols.len(), 2);
            read.symbols[0].clone()
        };
        let why = |symbol: &Symbol| symbol.unread_rule.clone().expect("why").to_string();
        let odd = unread(1, "stepSize", json!(7));
        assert_eq!(why(&odd), "`stepSize` is not a string");
        assert_eq!((odd.step_size, odd.min_quantity), (None, None));
        assert!(odd.tick_size.is_some() && odd.min_notional.is_some(), "other filters count");
        let odd = unread(2, "minNotional", json!(5.0));
        assert_eq!(why(&odd), "`minNotional` is not a string");
        assert_eq!((odd.min_notional, odd.max_notional.is_some()), (None, false));
        let odd = unread(3, "filterType", Value::Null);
        assert_eq!(why(&odd), "`filterType` is not a string");
        let mut odd = info();
        odd["symbols"][0]["filters"] = Value::Null;
        assert_eq!(why(&read(&odd).expect("info").symbols[0]), "`filters` is missing");
        assert_eq!(read(&info()).expect("info").symbols[0].unread_rule, None);
    }

    #[test]
    fn answer_without_readable_symbols_is_refused() {
        let mut odd = info();
        odd["symbols"] = json!([{"symbol": "A"}, 7]);
        let wrong = read(&odd).expect_err("none");
        assert_eq!(wrong, Wrong::new("symbols", "cannot be read; of A `status` is missing"));
        odd["rateLimits"][0]["interval"] = json!(7);
        assert_eq!(read(&odd).expect_err("limits").field, "rateLimits[0].interval");
    }
}
