//! Arguments of tools, and the spellings that are accepted.

use std::str::FromStr;

use serde_json::Value;
use tribune_core::{Error, JsonObject, Result};

use tribune_analytics::{Action, Order, Size};
use tribune_binance::{Interval, InvalidNumber, KlinesQuery, Millis, parse_time};
use tribune_market_resolve::SymbolTable;

pub(super) struct Arguments<'a>(pub(super) &'a JsonObject);

impl Arguments<'_> {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A number that the schema has bounded, and has a default for.
    pub(super) fn whole(&self, name: &str) -> u32 {
        let number = self.0.get(name).and_then(Value::as_f64);
        number.map_or(0, |number| number as u32)
    }

    pub(super) fn count(&self, name: &str) -> usize {
        self.whole(name) as usize
    }

    pub(super) fn side(&self) -> Action {
        match self.text("side") {
            Some("sell") => Action::Sell,
            _ => Action::Buy,
        }
    }

    pub(super) fn size(&self) -> Result<Size> {
        let money = self.decimal("notional")?;
        let quantity = self.decimal("quantity")?;
        match (money, quantity) {
            (Some(money), None) => Ok(Size::Quote(money)),
            (None, Some(quantity)) => Ok(Size::Base(quantity)),
            _ => Err(Error::invalid_argument(
                "binance_cost_to_trade was not run: give either `notional` (an amount of the quote asset) or `quantity` (an amount of the base asset).",
            )),
        }
    }

    pub(super) fn order(&self) -> Order {
        let asked = self.text("sort_by");
        let known = Order::ALL.into_iter().find(|order| Some(order.as_str()) == asked);
        known.unwrap_or(Order::Volume)
    }

    pub(super) fn candles(&self) -> Result<KlinesQuery> {
        let text = self.text("interval").unwrap_or_default();
        let interval = text.parse();
        Ok(KlinesQuery {
            interval: interval.map_err(|()| Error::invalid_argument(format!("there is no interval {text}")))?,
            limit: self.whole("limit"),
            start: self.millis("start_time")?,
            end: self.millis("end_time")?,
        })
    }

    fn millis(&self, name: &str) -> Result<Option<Millis>> {
        let Some(given) = self.0.get(name) else {
            return Ok(None);
        };
        let given = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
        let meant = parse_time(&given).filter(|millis| *millis >= 0);
        meant.map(Some).ok_or_else(|| {
            Error::invalid_argument(format!(
                "`{name}` is no time since 1970: {}; give one such as 2026-11-15T00:00:00Z, a day such as 2026-11-15, or milliseconds since 1970",
                tribune_core::wire::clip(&given, 40)
            ))
        })
    }

    pub(super) fn decimal<T>(&self, name: &str) -> Result<Option<T>>
    where
        T: FromStr<Err = InvalidNumber> + Default + PartialEq,
    {
        let why = match self.text(name).map(str::parse) {
            None => return Ok(None),
            Some(Ok(value)) if value != T::default() => return Ok(Some(value)),
            Some(Ok(_)) => "zero".to_owned(),
            Some(Err(error)) => error.to_string(),
        };
        Err(Error::invalid_argument(format!(
            "`{name}` is {why}: give a decimal number above zero with at most 8 places, such as \"200000\""
        )))
    }

    /// Whether the caller gave a list, which is answered with a list even for one symbol.
    pub(super) fn is_list(&self) -> bool {
        self.0.contains_key("symbols")
    }

    /// Each once, in the order given.
    pub(super) fn symbols(&self) -> Vec<String> {
        let one = self.text("symbol").into_iter();
        let many = self.0.get("symbols").and_then(Value::as_array).into_iter().flatten();
        let mut symbols: Vec<String> = Vec::new();
        for symbol in one.chain(many.filter_map(Value::as_str)) {
            if !symbols.iter().any(|known| known == symbol) {
                symbols.push(symbol.to_owned());
            }
        }
        symbols
    }
}

/// Accepts other spellings: `btc/usdt`, `1H`, `BUY`, and numbers instead of decimal strings.
pub(super) fn normalise(args: &mut JsonObject, table: Option<&SymbolTable>) {
    for (name, value) in args.iter_mut() {
        match (name.as_str(), &mut *value) {
            ("symbol", Value::String(text)) => *text = symbol(text, table),
            ("symbols", Value::String(list)) => *value = names(list).map(|name| symbol(name, table)).collect(),
            ("symbols", Value::Array(list)) => {
                for item in list {
                    if let Value::String(text) = item {
                        *text = symbol(text, table);
                    }
                }
            }
            ("side" | "sort_by", Value::String(text)) => *text = text.trim().to_lowercase(),
            ("interval", Value::String(text)) => *text = interval(text),
            ("notional" | "quantity" | "tick_size" | "start_time" | "end_time", Value::Number(number)) => {
                *value = Value::String(number.to_string());
            }
            ("limit" | "depth_levels" | "window_seconds" | "hours", Value::String(text)) => {
                if let Ok(number) = text.trim().parse::<u32>() {
                    *value = Value::from(number);
                }
            }
            ("notional" | "quantity" | "tick_size", Value::String(text)) => *text = text.trim().to_owned(),
            _ => {}
        }
    }
}

/// The names in a list that is written as text: `BTCUSDT, ETHUSDT`, or as JSON has it.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(|name| name.trim_matches(|c: char| c.is_whitespace() || "[]\"'".contains(c)))
}

fn symbol(text: &str, table: Option<&SymbolTable>) -> String {
    table.map_or_else(|| text.trim().to_uppercase(), |table| table.spelled(text))
}

/// `1H` is an hour, but `1M` and `1m` differ.
fn interval(text: &str) -> String {
    let text = text.trim();
    let lower = text.to_lowercase();
    let is_known = |text: &str| text.parse::<Interval>().is_ok();
    match !is_known(text) && is_known(&lower) {
        true => lower,
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spellings_become_schema_values() {
        let mut args = json!({
            "symbol": " btcusdt ", "symbols": "eth-usdt, SOLUSDT", "side": "BUY", "interval": "1H",
            "notional": 200_000, "start_time": "2026-11-15T00:00:00Z", "end_time": "2026-11-16",
        });
        let args = args.as_object_mut().expect("object");
        normalise(args, None);
        assert_eq!(args["symbol"], "BTCUSDT");
        assert_eq!(args["symbols"], json!(["ETH-USDT", "SOLUSDT"]));
        assert_eq!((&args["side"], &args["interval"]), (&json!("buy"), &json!("1h")));
        assert_eq!(args["notional"], "200000");
        let time = |name: &str| Arguments(args).millis(name).expect("a time").expect("one was given");
        assert_eq!(time("end_time") - time("start_time"), 86_400_000);
        assert_eq!(interval("1M"), "1M");
        assert_eq!(interval("1m"), "1m");
        assert_eq!(interval("7q"), "7q");
        assert_eq!(parse_time("yesterday"), None);
        assert_eq!(
            (parse_time("1794821294"), parse_time("1794821294000")),
            (Some(1_794_821_294_000), Some(1_794_821_294_000))
        );
        for odd in [json!("yesterday"), json!(-5), json!("-5"), json!(true), json!("")] {
            let args = json!({"start_time": odd});
            let error = Arguments(args.as_object().expect("an object")).millis("start_time");
            assert!(error.is_err_and(|error| error.message().contains("no time since 1970")));
        }
    }

    #[test]
    fn numbers_and_lists_are_accepted_as_text() {
        for (written, meant) in [
            (json!("10"), json!(10)),
            (json!(" 7 "), json!(7)),
            (json!("10.0"), json!("10.0")),
            (json!("1e3"), json!("1e3")),
            (json!("-5"), json!("-5")),
            (json!("٣"), json!("٣")),
            (json!("99999999999"), json!("99999999999")),
            (json!(""), json!("")),
        ] {
            for name in ["limit", "depth_levels", "window_seconds", "hours"] {
                let mut args = json!({name: written}).as_object().cloned().expect("an object");
                normalise(&mut args, None);
                assert_eq!(args[name], meant, "{name}");
            }
        }
        for text in [r#"["btcusdt","ETHUSDT"]"#, "['BTCUSDT', 'ethusdt']", "[BTCUSDT,ETHUSDT]", " btcusdt,ethusdt "] {
            let mut args = json!({"symbols": text}).as_object().cloned().expect("an object");
            normalise(&mut args, None);
            assert_eq!(args["symbols"], json!(["BTCUSDT", "ETHUSDT"]), "{text}");
        }
    }
}
