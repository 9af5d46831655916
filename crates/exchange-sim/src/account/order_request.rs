//! A request for an order, parsed and checked against the symbol's filters.

use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::market::levels::Side;
use crate::market::symbol::Symbol;
use crate::number::{self, Price, Quantity, UNIT};

const AMOUNT_RANGE: &str = "^([0-9]{1,20})(\\.[0-9]{1,20})?$";
const CLIENT_ID_RANGE: &str = "^[a-zA-Z0-9-_]{1,36}$";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Market,
    Limit(Price, TimeInForce),
}

/// What happens to the part that is not filled at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeInForce {
    UntilCancelled,
    ImmediateOrCancel,
    FillOrKill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Base(Quantity),
    /// In 10⁻⁸ of the quote asset.
    Quote(i128),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRequest {
    pub side: Side,
    pub order_type: Type,
    pub amount: Amount,
    pub client_id: Option<String>,
    /// Whether the answer has the fills.
    pub is_answered_in_full: bool,
}

impl Type {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limit(..) => "LIMIT",
            Self::Market => "MARKET",
        }
    }

    pub const fn time_in_force(self) -> &'static str {
        match self {
            Self::Limit(_, TimeInForce::ImmediateOrCancel) => "IOC",
            Self::Limit(_, TimeInForce::FillOrKill) => "FOK",
            Self::Limit(_, TimeInForce::UntilCancelled) | Self::Market => "GTC",
        }
    }
}

impl OrderRequest {
    pub fn parse(params: &Params) -> Result<Self, ApiError> {
        let side = match params.required("side")? {
            "BUY" => Side::Bid,
            "SELL" => Side::Ask,
            _ => return Err(ApiError::bad(-1117, "Invalid side.")),
        };
        let order_type = order_type(params)?;
        let amount = match (decimal(params, "quantity")?, decimal(params, "quoteOrderQty")?) {
            (Some(quantity), None) => Amount::Base(quantity),
            (None, Some(money)) if order_type == Type::Market => Amount::Quote(money),
            (Some(_), Some(_)) => return Err(ApiError::invalid_combination()),
            _ => return Err(ApiError::missing("quantity")),
        };
        let is_answered_in_full = match params.get("newOrderRespType") {
            Some("RESULT") => false,
            Some("FULL") | None => true,
            Some(_) => return Err(ApiError::invalid_value("newOrderRespType")),
        };
        Ok(Self { side, order_type, amount, client_id: client_id(params)?, is_answered_in_full })
    }

    pub const fn price(&self) -> Option<Price> {
        match self.order_type {
            Type::Limit(price, _) => Some(price),
            Type::Market => None,
        }
    }

    pub const fn quote_quantity(&self) -> i128 {
        match self.amount {
            Amount::Quote(money) => money,
            Amount::Base(_) => 0,
        }
    }

    /// Applies the symbol's filters; `reference` is the price at which a market order is valued.
    pub fn check(&self, symbol: &Symbol, reference: Price) -> Result<(), ApiError> {
        let price = self.price().unwrap_or(symbol.tick);
        if price < symbol.tick || price > symbol.max_price() || price % symbol.tick != 0 {
            return Err(ApiError::filter("PRICE_FILTER"));
        }
        let worth = match self.amount {
            Amount::Quote(money) => money,
            Amount::Base(quantity) => {
                if quantity < symbol.step || quantity > symbol.max_quantity() || quantity % symbol.step != 0 {
                    return Err(ApiError::filter("LOT_SIZE"));
                }
                i128::from(self.price().unwrap_or(reference)).saturating_mul(quantity) / UNIT
            }
        };
        match symbol.min_notional.is_some_and(|least| worth < least) {
            true => Err(ApiError::filter("NOTIONAL")),
            false => Ok(()),
        }
    }
}

/// A price is required for a limit order; a market order must not have one.
fn order_type(params: &Params) -> Result<Type, ApiError> {
    let time_in_force = match params.get("timeInForce") {
        None => None,
        Some("GTC") => Some(TimeInForce::UntilCancelled),
        Some("IOC") => Some(TimeInForce::ImmediateOrCancel),
        Some("FOK") => Some(TimeInForce::FillOrKill),
        Some(_) => return Err(ApiError::bad(-1115, "Invalid timeInForce.")),
    };
    let price = decimal(params, "price")?;
    match params.required("type")? {
        "LIMIT" => {
            let price = price.ok_or_else(|| ApiError::missing("price"))?;
            let price = Price::try_from(price).map_err(|_| ApiError::filter("PRICE_FILTER"))?;
            let time_in_force = time_in_force.ok_or_else(|| ApiError::missing("timeInForce"))?;
            Ok(Type::Limit(price, time_in_force))
        }
        "MARKET" if price.is_some() => Err(ApiError::bad(-1106, "Parameter 'price' sent when not required.")),
        "MARKET" => Ok(Type::Market),
        _ => Err(ApiError::bad(-1116, "Invalid orderType.")),
    }
}

fn decimal(params: &Params, name: &str) -> Result<Option<i128>, ApiError> {
    let Some(text) = params.get(name) else {
        return Ok(None);
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(ApiError::illegal(name, AMOUNT_RANGE));
    }
    let too_precise = || ApiError::bad(-1111, format!("Parameter '{name}' has too much precision."));
    number::parse(text).map(Some).ok_or_else(too_precise)
}

/// `newClientOrderId`: the client's id of an order or of a cancellation.
pub fn client_id(params: &Params) -> Result<Option<String>, ApiError> {
    let id = params.get("newClientOrderId");
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match id.is_none_or(|id| (1..=36).contains(&id.len()) && id.chars().all(legal)) {
        true => Ok(id.map(str::to_owned)),
        false => Err(ApiError::illegal("newClientOrderId", CLIENT_ID_RANGE)),
    }
}
