//! A request for an order, parsed and checked against the symbol's filters.

use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::market::levels::Side;
use crate::market::symbol::{Status, Symbol};
use crate::number::{self, Price, Quantity, UNIT};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Limit(TimeInForce),
    LimitMaker,
    Market,
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
    pub kind: Kind,
    pub price: Option<Price>,
    pub amount: Amount,
    pub client_id: Option<String>,
    pub response: Response,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    Ack,
    Result,
    Full,
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limit(_) => "LIMIT",
            Self::LimitMaker => "LIMIT_MAKER",
            Self::Market => "MARKET",
        }
    }

    pub const fn time_in_force(self) -> &'static str {
        match self {
            Self::Limit(TimeInForce::ImmediateOrCancel) => "IOC",
            Self::Limit(TimeInForce::FillOrKill) => "FOK",
            _ => "GTC",
        }
    }
}

const AMOUNT_RANGE: &str = "^([0-9]{1,20})(\\.[0-9]{1,20})?$";
const CLIENT_ID_RANGE: &str = "^[a-zA-Z0-9-_]{1,36}$";

pub fn parse(params: &Params) -> Result<OrderRequest, ApiError> {
    let side = match params.required("side")? {
        "BUY" => Side::Bid,
        "SELL" => Side::Ask,
        _ => return Err(ApiError::bad(-1117, "Invalid side.")),
    };
    let kind = kind(params)?;
    Ok(OrderRequest {
        side,
        kind,
        price: price(params, kind)?,
        amount: amount(params, kind)?,
        client_id: client_id(params)?,
        response: response(params, kind)?,
    })
}

fn kind(params: &Params) -> Result<Kind, ApiError> {
    let time_in_force = match params.get("timeInForce") {
        None => None,
        Some("GTC") => Some(TimeInForce::UntilCancelled),
        Some("IOC") => Some(TimeInForce::ImmediateOrCancel),
        Some("FOK") => Some(TimeInForce::FillOrKill),
        Some(_) => return Err(ApiError::bad(-1115, "Invalid timeInForce.")),
    };
    match params.required("type")? {
        "LIMIT" => time_in_force
            .map(Kind::Limit)
            .ok_or_else(|| ApiError::missing("timeInForce")),
        "LIMIT_MAKER" => Ok(Kind::LimitMaker),
        "MARKET" => Ok(Kind::Market),
        _ => Err(ApiError::bad(-1116, "Invalid orderType.")),
    }
}

/// Required for every kind but a market order, which must not have one.
fn price(params: &Params, kind: Kind) -> Result<Option<Price>, ApiError> {
    match (kind, decimal(params, "price")?) {
        (Kind::Market, None) => Ok(None),
        (Kind::Market, Some(_)) => Err(ApiError::bad(-1106, "Parameter 'price' sent when not required.")),
        (_, None) => Err(ApiError::missing("price")),
        (_, Some(price)) => Price::try_from(price).map(Some).map_err(|_| filter("PRICE_FILTER")),
    }
}

fn amount(params: &Params, kind: Kind) -> Result<Amount, ApiError> {
    match (decimal(params, "quantity")?, decimal(params, "quoteOrderQty")?) {
        (Some(quantity), None) => Ok(Amount::Base(quantity)),
        (None, Some(money)) if kind == Kind::Market => Ok(Amount::Quote(money)),
        (Some(_), Some(_)) => Err(ApiError::invalid_combination()),
        _ => Err(ApiError::missing("quantity")),
    }
}

fn response(params: &Params, kind: Kind) -> Result<Response, ApiError> {
    match (params.get("newOrderRespType"), kind) {
        (Some("ACK"), _) | (None, Kind::LimitMaker) => Ok(Response::Ack),
        (Some("RESULT"), _) => Ok(Response::Result),
        (Some("FULL"), _) | (None, Kind::Market | Kind::Limit(_)) => Ok(Response::Full),
        (Some(_), _) => Err(ApiError::invalid_value("newOrderRespType")),
    }
}

fn decimal(params: &Params, name: &str) -> Result<Option<i128>, ApiError> {
    let Some(text) = params.get(name) else {
        return Ok(None);
    };
    let legal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !legal {
        return Err(ApiError::illegal(name, AMOUNT_RANGE));
    }
    let too_precise = || ApiError::bad(-1111, format!("Parameter '{name}' has too much precision."));
    number::parse(text).map(Some).ok_or_else(too_precise)
}

/// `newClientOrderId`: the client's id of an order or of a cancellation.
pub fn client_id(params: &Params) -> Result<Option<String>, ApiError> {
    let Some(id) = params.get("newClientOrderId") else {
        return Ok(None);
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !(1..=36).contains(&id.len()) || !id.chars().all(legal) {
        return Err(ApiError::illegal("newClientOrderId", CLIENT_ID_RANGE));
    }
    Ok(Some(id.to_owned()))
}

fn filter(name: &str) -> ApiError {
    ApiError::bad(-1013, format!("Filter failure: {name}"))
}

/// Applies the symbol's filters; `reference` is the price at which a market order is valued.
pub fn check(request: &OrderRequest, symbol: &Symbol, reference: Price) -> Result<(), ApiError> {
    if symbol.status != Status::Trading {
        return Err(ApiError::bad(-1013, "Market is closed."));
    }
    if let Some(price) = request.price
        && (price < symbol.tick || price > symbol.max_price() || price % symbol.tick != 0)
    {
        return Err(filter("PRICE_FILTER"));
    }
    let worth = match request.amount {
        Amount::Quote(money) => money,
        Amount::Base(quantity) => {
            if quantity < symbol.step || quantity > symbol.max_quantity() || quantity % symbol.step != 0 {
                return Err(filter("LOT_SIZE"));
            }
            i128::from(request.price.unwrap_or(reference)).saturating_mul(quantity) / UNIT
        }
    };
    if symbol.min_notional.is_some_and(|least| worth < least) {
        return Err(filter("NOTIONAL"));
    }
    Ok(())
}
