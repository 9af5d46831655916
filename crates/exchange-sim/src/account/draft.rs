//! An order as it is asked for, checked against the symbol's filters.

use crate::market::levels::Side;
use crate::market::symbol::{Status, Symbol};
use crate::number::{self, Price, Quantity, UNIT};
use crate::rest::error::ApiError;
use crate::rest::params::Params;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Limit(Lasting),
    LimitMaker,
    Market,
}

/// What becomes of the part that is not filled at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    UntilCancelled,
    ImmediateOrCancel,
    FillOrKill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Base(Quantity),
    /// Of the quote asset, in 10⁻⁸.
    Quote(i128),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
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
            Self::Limit(Lasting::ImmediateOrCancel) => "IOC",
            Self::Limit(Lasting::FillOrKill) => "FOK",
            _ => "GTC",
        }
    }
}

const AMOUNT_RANGE: &str = "^([0-9]{1,20})(\\.[0-9]{1,20})?$";
const CLIENT_ID_RANGE: &str = "^[a-zA-Z0-9-_]{1,36}$";

pub fn read(params: &Params) -> Result<Draft, ApiError> {
    let side = match params.mandatory("side")? {
        "BUY" => Side::Bid,
        "SELL" => Side::Ask,
        _ => return Err(ApiError::bad(-1117, "Invalid side.")),
    };
    let kind = kind(params)?;
    Ok(Draft {
        side,
        kind,
        price: price(params, kind)?,
        amount: amount(params, kind)?,
        client_id: client_id(params)?,
        response: response(params, kind)?,
    })
}

fn kind(params: &Params) -> Result<Kind, ApiError> {
    let lasting = match params.get("timeInForce") {
        None => None,
        Some("GTC") => Some(Lasting::UntilCancelled),
        Some("IOC") => Some(Lasting::ImmediateOrCancel),
        Some("FOK") => Some(Lasting::FillOrKill),
        Some(_) => return Err(ApiError::bad(-1115, "Invalid timeInForce.")),
    };
    match params.mandatory("type")? {
        "LIMIT" => lasting.map(Kind::Limit).ok_or_else(|| ApiError::missing("timeInForce")),
        "LIMIT_MAKER" => Ok(Kind::LimitMaker),
        "MARKET" => Ok(Kind::Market),
        _ => Err(ApiError::bad(-1116, "Invalid orderType.")),
    }
}

/// Every kind but a market order has one.
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

/// `newClientOrderId`: the name of an order, or of a cancellation.
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

/// Whether the symbol's filters let the order pass; `reference` is the price of a market order's worth.
pub fn check(draft: &Draft, symbol: &Symbol, reference: Price) -> Result<(), ApiError> {
    if symbol.status != Status::Trading {
        return Err(ApiError::bad(-1013, "Market is closed."));
    }
    if let Some(price) = draft.price
        && (price < symbol.tick || price > symbol.max_price() || price % symbol.tick != 0)
    {
        return Err(filter("PRICE_FILTER"));
    }
    let worth = match draft.amount {
        Amount::Quote(money) => money,
        Amount::Base(quantity) => {
            if quantity < symbol.step || quantity > symbol.max_quantity() || quantity % symbol.step != 0 {
                return Err(filter("LOT_SIZE"));
            }
            i128::from(draft.price.unwrap_or(reference)).saturating_mul(quantity) / UNIT
        }
    };
    if symbol.min_notional.is_some_and(|least| worth < least) {
        return Err(filter("NOTIONAL"));
    }
    Ok(())
}
