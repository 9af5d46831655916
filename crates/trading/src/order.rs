//! An order, and whether the exchange's rules allow it.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use tribune_core::{Error, JsonObject, Result};

use tribune_binance::model::{Symbol, SymbolStatus};
use tribune_binance::number::{InvalidNumber, Notional, Price, Quantity};
use tribune_binance::rest::request::Request;
use tribune_market_parts::exchange_error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Side {
    Buy,
    Sell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum TimeInForce {
    Gtc,
    Ioc,
    Fok,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terms {
    Limit {
        price: Price,
        quantity: Quantity,
        time_in_force: TimeInForce,
    },
    /// A quantity of the base asset at the market price.
    Market(Quantity),
    /// An amount of the quote asset at the market price.
    MarketFor(Notional),
}

/// A requested order. Equal orders are sent identically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) symbol: String,
    pub(super) side: Side,
    pub(super) terms: Terms,
}

/// An order in answers and in the journal.
#[derive(Debug, Serialize)]
pub(super) struct Described<'a> {
    symbol: &'a str,
    side: Side,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quote_quantity: Option<Notional>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_in_force: Option<TimeInForce>,
}

pub(super) fn refuse<T>(why: impl fmt::Display) -> Result<T> {
    Err(Error::invalid_argument(format!("the order was not sent: {why}")))
}

impl Order {
    /// Reads arguments that match the schema and checks what a schema cannot express.
    pub(super) fn read(args: &JsonObject) -> Result<Self> {
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let side = match text("side") {
            Some("BUY") => Side::Buy,
            Some("SELL") => Side::Sell,
            _ => return refuse("`side` must be BUY or SELL"),
        };
        let quantity = number("quantity", text("quantity"), Quantity::parse, Quantity::is_zero)?;
        let price = number("price", text("price"), Price::parse, |price| price.units() == 0)?;
        let spend = number("quote_quantity", text("quote_quantity"), Notional::parse, |money| {
            money.units() == 0
        })?;
        let terms = match (text("type"), quantity, spend, price) {
            (Some("LIMIT"), Some(quantity), None, Some(price)) => Terms::Limit {
                price,
                quantity,
                time_in_force: time_in_force(text("time_in_force"))?,
            },
            (Some("LIMIT"), ..) => {
                return refuse("a LIMIT order needs `price` and `quantity`, and no `quote_quantity`");
            }
            (Some("MARKET"), ..) if price.is_some() || text("time_in_force").is_some() => {
                return refuse("a MARKET order takes no `price` and no `time_in_force`");
            }
            (Some("MARKET"), Some(quantity), None, _) => Terms::Market(quantity),
            (Some("MARKET"), None, Some(spend), _) => Terms::MarketFor(spend),
            (Some("MARKET"), ..) => return refuse("a MARKET order needs either `quantity` or `quote_quantity`"),
            _ => return refuse("`type` must be LIMIT or MARKET"),
        };
        Ok(Self {
            symbol: text("symbol").unwrap_or_default().to_owned(),
            side,
            terms,
        })
    }

    /// Adds the exchange's parameters.
    pub(super) fn write(&self, request: Request) -> Result<Request> {
        let request = request.symbol(&self.symbol).map_err(exchange_error)?;
        let request = request.with(
            "side",
            match self.side {
                Side::Buy => "BUY",
                Side::Sell => "SELL",
            },
        );
        Ok(match self.terms {
            Terms::Limit {
                price,
                quantity,
                time_in_force,
            } => request
                .with("type", "LIMIT")
                .with("timeInForce", time_in_force.as_str())
                .with("quantity", &quantity.to_string())
                .with("price", &price.to_string()),
            Terms::Market(quantity) => request.with("type", "MARKET").with("quantity", &quantity.to_string()),
            Terms::MarketFor(spend) => request.with("type", "MARKET").with("quoteOrderQty", &spend.to_string()),
        })
    }

    pub(super) fn describe(&self) -> Described<'_> {
        let mut described = Described {
            symbol: &self.symbol,
            side: self.side,
            kind: "MARKET",
            quantity: None,
            quote_quantity: None,
            price: None,
            time_in_force: None,
        };
        match self.terms {
            Terms::Limit {
                price,
                quantity,
                time_in_force,
            } => {
                described.kind = "LIMIT";
                described.quantity = Some(quantity);
                described.price = Some(price);
                described.time_in_force = Some(time_in_force);
            }
            Terms::Market(quantity) => described.quantity = Some(quantity),
            Terms::MarketFor(spend) => described.quote_quantity = Some(spend),
        }
        described
    }

    /// Checks the exchange's rules for the symbol; `notional` is the estimated value.
    pub(super) fn check(&self, rules: &Symbol, notional: Notional) -> Result<()> {
        if rules.status != SymbolStatus::Trading {
            return refuse(format_args!(
                "{} cannot be traded now (status {})",
                rules.name, rules.status_text
            ));
        }
        if let Some(why) = &rules.unread_rule {
            return refuse(format_args!(
                "the exchange's rules for {} could not be read ({why}), so it cannot be checked against them",
                rules.name
            ));
        }
        if let Terms::Limit { price, quantity, .. } = self.terms {
            self.check_price(rules, price)?;
            check_quantity(rules, quantity)?;
        }
        if let Terms::Market(quantity) = self.terms {
            check_quantity(rules, quantity)?;
        }
        let quote = &rules.quote;
        if let Some(least) = rules.min_notional.filter(|least| notional < *least) {
            return refuse(format_args!(
                "it is worth about {} {quote}; the exchange wants at least {least}",
                notional
            ));
        }
        if let Some(most) = rules.max_notional.filter(|most| notional > *most) {
            return refuse(format_args!(
                "it is worth about {} {quote}; the exchange takes at most {most}",
                notional
            ));
        }
        Ok(())
    }

    fn check_price(&self, rules: &Symbol, price: Price) -> Result<()> {
        match rules.tick_size {
            Some(tick) if tick.units() > 0 && price.units() % tick.units() != 0 => refuse(format_args!(
                "the price {price} is not a multiple of the tick size {tick}"
            )),
            _ => Ok(()),
        }
    }
}

fn check_quantity(rules: &Symbol, quantity: Quantity) -> Result<()> {
    if let Some(least) = rules.min_quantity.filter(|least| quantity < *least) {
        return refuse(format_args!("the quantity {quantity} is below the minimum {least}"));
    }
    if let Some(most) = rules.max_quantity.filter(|most| quantity > *most) {
        return refuse(format_args!("the quantity {quantity} is above the maximum {most}"));
    }
    match rules.step_size {
        Some(step) if !step.is_zero() && quantity.units() % step.units() != 0 => refuse(format_args!(
            "the quantity {quantity} is not a multiple of the step size {step}"
        )),
        _ => Ok(()),
    }
}

fn number<T: Copy>(
    name: &str,
    text: Option<&str>,
    parse: fn(&str) -> Result<T, InvalidNumber>,
    is_zero: impl Fn(T) -> bool,
) -> Result<Option<T>> {
    match text.map(parse) {
        None => Ok(None),
        Some(Ok(value)) if is_zero(value) => refuse(format_args!("`{name}` must be more than zero")),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(why)) => refuse(format_args!("`{name}` is {why}")),
    }
}

fn time_in_force(text: Option<&str>) -> Result<TimeInForce> {
    match text {
        None | Some("GTC") => Ok(TimeInForce::Gtc),
        Some("IOC") => Ok(TimeInForce::Ioc),
        Some("FOK") => Ok(TimeInForce::Fok),
        Some(_) => refuse("`time_in_force` must be GTC, IOC or FOK"),
    }
}

impl TimeInForce {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Gtc => "GTC",
            Self::Ioc => "IOC",
            Self::Fok => "FOK",
        }
    }
}

#[cfg(test)]
mod tests;
