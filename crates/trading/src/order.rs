//! An order, and whether the exchange's rules allow it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tribune_core::{Error, Result};

use tribune_binance::{InvalidNumber, Notional, Price, Quantity, Request, Symbol};
use tribune_market_parts::exchange_error;

const DECIMAL: &str = r"^[0-9]{1,15}(\.[0-9]{1,8})?$";

/// An order's id: the client's or the exchange's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OrderName {
    #[serde(rename = "client_order_id")]
    Client(String),
    #[serde(rename = "order_id")]
    Number(u64),
}

impl OrderName {
    /// The exchange's own parameter, and its value.
    pub(super) fn parameter(&self) -> (&'static str, String) {
        match self {
            Self::Client(name) => ("origClientOrderId", name.clone()),
            Self::Number(number) => ("orderId", number.to_string()),
        }
    }
}

impl fmt::Display for OrderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(name) => write!(f, "client_order_id {name}"),
            Self::Number(number) => write!(f, "order_id {number}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Side {
    Buy,
    Sell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Kind {
    Limit,
    Market,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum TimeInForce {
    #[default]
    Gtc,
    Ioc,
    Fok,
}

/// The arguments of `binance_place_order`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderArguments {
    /// The symbol exactly as the exchange has it, for example BTCUSDT.
    #[schemars(length(min = 1, max = 40))]
    symbol: String,
    /// Whether to buy or sell the base asset.
    side: Side,
    /// LIMIT at `price` or better; MARKET at whatever price there is.
    #[serde(rename = "type")]
    kind: Kind,
    /// How much of the base asset. A decimal number as a string, for example "0.015".
    #[schemars(regex(pattern = DECIMAL))]
    quantity: Option<String>,
    /// MARKET only, instead of quantity: how much of the quote asset to spend or receive. A decimal number as a string, for
    /// example "0.015".
    #[schemars(regex(pattern = DECIMAL))]
    quote_quantity: Option<String>,
    /// LIMIT only: the worst acceptable price, a multiple of the tick size. A decimal number as a string, for example
    /// "0.015".
    #[schemars(regex(pattern = DECIMAL))]
    price: Option<String>,
    /// LIMIT only: until cancelled (GTC, the default), at once as far as possible (IOC), or all at once or nothing (FOK).
    time_in_force: Option<TimeInForce>,
    /// Leave it out the first time. The second time: the preview_token of the preview the person agreed to.
    #[schemars(length(min = 1, max = 64))]
    pub(super) preview_token: Option<String>,
}

/// In answers and in the journal: the arguments that it was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub(super) enum Terms {
    #[serde(rename = "LIMIT")]
    Limit { quantity: Quantity, price: Price, time_in_force: TimeInForce },
    /// A quantity of the base asset at the market price.
    #[serde(rename = "MARKET")]
    Market { quantity: Quantity },
    /// An amount of the quote asset at the market price.
    #[serde(rename = "MARKET")]
    MarketFor { quote_quantity: Notional },
}

/// A requested order. Equal orders are sent identically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Order {
    pub(super) symbol: String,
    pub(super) side: Side,
    #[serde(flatten)]
    pub(super) terms: Terms,
}

pub(super) fn refuse<T>(why: impl fmt::Display) -> Result<T> {
    Err(Error::invalid_argument(format!("the order was not sent: {why}")))
}

impl Order {
    /// Checks what a schema cannot express.
    pub(super) fn read(args: &OrderArguments) -> Result<Self> {
        let quantity = number("quantity", &args.quantity)?;
        let price = number("price", &args.price)?;
        let spend = number("quote_quantity", &args.quote_quantity)?;
        let terms = match (args.kind, quantity, spend, price) {
            (Kind::Limit, Some(quantity), None, Some(price)) => {
                Terms::Limit { quantity, price, time_in_force: args.time_in_force.unwrap_or_default() }
            }
            (Kind::Limit, ..) => {
                return refuse("a LIMIT order needs `price` and `quantity`, and no `quote_quantity`");
            }
            (Kind::Market, ..) if price.is_some() || args.time_in_force.is_some() => {
                return refuse("a MARKET order takes no `price` and no `time_in_force`");
            }
            (Kind::Market, Some(quantity), None, _) => Terms::Market { quantity },
            (Kind::Market, None, Some(quote_quantity), _) => Terms::MarketFor { quote_quantity },
            (Kind::Market, ..) => return refuse("a MARKET order needs either `quantity` or `quote_quantity`"),
        };
        Ok(Self { symbol: args.symbol.clone(), side: args.side, terms })
    }

    pub(super) fn write(&self, request: Request) -> Result<Request> {
        let mut request = request.symbol(&self.symbol).map_err(exchange_error)?;
        let described = json!(self);
        for (name, value) in described.as_object().into_iter().flatten() {
            let parameter = match name.as_str() {
                "symbol" => continue,
                "time_in_force" => "timeInForce",
                "quote_quantity" => "quoteOrderQty",
                name => name,
            };
            let Value::String(value) = value else {
                return refuse(format_args!("`{name}` is not a text"));
            };
            request = request.with(parameter, value);
        }
        Ok(request)
    }

    /// Checks the exchange's rules for the symbol; `notional` is the estimated value.
    pub(super) fn check(&self, rules: &Symbol, notional: Notional) -> Result<()> {
        let (name, quote) = (&rules.name, &rules.quote);
        if !rules.is_traded() {
            return refuse(format_args!("{name} cannot be traded now (status {})", rules.status));
        }
        if let Some(why) = &rules.unread_rule {
            return refuse(format_args!(
                "the exchange's rules for {name} could not be read ({why}), so it cannot be checked against them"
            ));
        }
        if let Terms::Limit { price, .. } = self.terms
            && let Some(tick) = rules.tick_size.filter(|tick| tick.units() > 0)
            && price.units() % tick.units() != 0
        {
            return refuse(format_args!("the price {price} is not a multiple of the tick size {tick}"));
        }
        if let Terms::Limit { quantity, .. } | Terms::Market { quantity } = self.terms {
            within("the quantity", quantity, [rules.min_quantity, rules.max_quantity], "")?;
            if let Some(step) = rules.step_size.filter(|step| !step.is_zero() && quantity.units() % step.units() != 0) {
                return refuse(format_args!("the quantity {quantity} is not a multiple of the step size {step}"));
            }
        }
        within("its value of about", notional, [rules.min_notional, rules.max_notional], &format!(" {quote}"))
    }
}

/// The exchange's minimum and maximum.
fn within<T: PartialOrd + fmt::Display>(what: &str, value: T, [least, most]: [Option<T>; 2], unit: &str) -> Result<()> {
    match (least.filter(|least| value < *least), most.filter(|most| value > *most)) {
        (Some(least), _) => refuse(format_args!("{what} {value}{unit} is below the exchange's minimum {least}")),
        (_, Some(most)) => refuse(format_args!("{what} {value}{unit} is above the exchange's maximum {most}")),
        _ => Ok(()),
    }
}

fn number<T>(name: &str, text: &Option<String>) -> Result<Option<T>>
where
    T: FromStr<Err = InvalidNumber> + Default + PartialEq,
{
    match text.as_deref().map(str::parse) {
        None => Ok(None),
        Some(Ok(value)) if value == T::default() => refuse(format_args!("`{name}` must be more than zero")),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(why)) => refuse(format_args!("`{name}` is {why}")),
    }
}

#[cfg(test)]
mod tests;
