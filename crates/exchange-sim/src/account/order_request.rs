//! A request for an order, parsed and checked against the symbol's filters.

use serde::Serialize;

use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::market::levels::Side;
use crate::market::symbol::Symbol;
use crate::number::{self, Price, Quantity, UNIT};

const AMOUNT_RANGE: &str = "^([0-9]{1,20})(\\.[0-9]{1,20})?$";
const CLIENT_ID_RANGE: &str = "^[a-zA-Z0-9-_]{1,36}$";

/// What happens to the part that is not filled at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TimeInForce {
    #[serde(rename = "GTC")]
    UntilCancelled,
    #[serde(rename = "IOC")]
    ImmediateOrCancel,
    #[serde(rename = "FOK")]
    FillOrKill,
}

#[derive(Debug, Clone)]
pub struct OrderRequest {
    pub side: Side,
    /// `None` for a market order.
    pub limit: Option<Price>,
    pub time_in_force: TimeInForce,
    /// Zero if a market order says what it is to cost.
    pub quantity: Quantity,
    /// What a market order is to cost, in 10⁻⁸ of the quote asset; else zero.
    pub quote_quantity: i128,
    pub client_id: Option<String>,
}

impl OrderRequest {
    pub fn parse(params: &Params) -> Result<Self, ApiError> {
        let side = match params.required("side")? {
            "BUY" => Side::Bid,
            "SELL" => Side::Ask,
            _ => return Err(ApiError::bad(-1117, "Invalid side.")),
        };
        let time_in_force = match params.get("timeInForce") {
            None => None,
            Some("GTC") => Some(TimeInForce::UntilCancelled),
            Some("IOC") => Some(TimeInForce::ImmediateOrCancel),
            Some("FOK") => Some(TimeInForce::FillOrKill),
            Some(_) => return Err(ApiError::bad(-1115, "Invalid timeInForce.")),
        };
        let limit = match (params.required("type")?, decimal(params, "price")?) {
            ("LIMIT", None) => return Err(ApiError::missing("price")),
            ("LIMIT", Some(_)) if time_in_force.is_none() => return Err(ApiError::missing("timeInForce")),
            ("LIMIT", Some(price)) => Some(Price::try_from(price).map_err(|_| ApiError::filter("PRICE_FILTER"))?),
            ("MARKET", None) => None,
            ("MARKET", Some(_)) => return Err(ApiError::bad(-1106, "Parameter 'price' sent when not required.")),
            _ => return Err(ApiError::bad(-1116, "Invalid orderType.")),
        };
        let (quantity, quote_quantity) = match (decimal(params, "quantity")?, decimal(params, "quoteOrderQty")?) {
            (Some(quantity), None) => (quantity, 0),
            (None, Some(money)) if limit.is_none() => (0, money),
            (Some(_), Some(_)) => return Err(ApiError::invalid_combination()),
            _ => return Err(ApiError::missing("quantity")),
        };
        // The answer always has everything.
        let _ = params.get("newOrderRespType");
        let time_in_force = time_in_force.unwrap_or(TimeInForce::UntilCancelled);
        Ok(Self { side, limit, time_in_force, quantity, quote_quantity, client_id: client_id(params)? })
    }

    /// Applies the symbol's filters; `reference` is the price at which a market order is valued.
    pub fn check(&self, symbol: &Symbol, reference: Price) -> Result<(), ApiError> {
        let price = self.limit.unwrap_or(symbol.tick);
        if price < symbol.tick || price > symbol.max_price() || price % symbol.tick != 0 {
            return Err(ApiError::filter("PRICE_FILTER"));
        }
        let steps = symbol.step..=symbol.max_quantity();
        if self.quote_quantity == 0 && (!steps.contains(&self.quantity) || self.quantity % symbol.step != 0) {
            return Err(ApiError::filter("LOT_SIZE"));
        }
        let price = i128::from(self.limit.unwrap_or(reference));
        let worth = self.quote_quantity.max(price.saturating_mul(self.quantity) / UNIT);
        match symbol.min_notional.is_some_and(|least| worth < least) {
            true => Err(ApiError::filter("NOTIONAL")),
            false => Ok(()),
        }
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
