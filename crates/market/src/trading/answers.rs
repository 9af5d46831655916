//! What the exchange says of an account and its orders.

use jiff::Timestamp;
use serde::Serialize;
use tribune_core::Clock;

use super::questions::OrderName;
use crate::model::Millis;
use crate::moment::Stamped;
use crate::number::{Notional, Price, Quantity};
use crate::rest::answers::Decoded;
use crate::rest::decode::{self, Fields, Read};

/// An order as the exchange has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct OrderState {
    symbol: String,
    order_id: u64,
    client_order_id: String,
    side: String,
    #[serde(rename = "type")]
    kind: String,
    pub(super) status: String,
    time_in_force: String,
    /// `None` for market orders.
    price: Option<Price>,
    quantity: Quantity,
    executed_quantity: Quantity,
    /// `None` where the exchange does not know: it says −1 of very old orders.
    executed_quote_quantity: Option<Notional>,
    /// When it was placed; `None` where the exchange does not say.
    #[serde(serialize_with = "as_text_if_known")]
    time: Option<Millis>,
}

impl OrderState {
    /// What has to be said of an order that the exchange took, but that is over without having been filled.
    pub(super) fn caveat(&self) -> Option<String> {
        let is_over = self.status.starts_with("EXPIRED") || self.status == "REJECTED";
        is_over.then(|| {
            let (status, filled, whole) = (&self.status, self.executed_quantity, self.quantity);
            format!("the order is {status}: {filled} of {whole} was filled, and no more will be")
        })
    }

    pub(super) fn symbol(&self) -> &str {
        &self.symbol
    }

    pub(super) fn names(&self) -> [OrderName; 2] {
        [
            OrderName::Client(self.client_order_id.clone()),
            OrderName::Number(self.order_id),
        ]
    }
}

/// A trade of the account's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct OwnTrade {
    symbol: String,
    trade_id: u64,
    order_id: u64,
    side: &'static str,
    price: Price,
    quantity: Quantity,
    quote_quantity: Notional,
    commission: Quantity,
    commission_asset: String,
    maker: bool,
    #[serde(serialize_with = "as_text")]
    time: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Balance {
    asset: String,
    free: Quantity,
    locked: Quantity,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Account {
    account_type: String,
    can_trade: bool,
    can_withdraw: bool,
    can_deposit: bool,
    /// Without those that are empty.
    pub(super) balances: Vec<Balance>,
}

/// When an answer was true, for the answer of a tool.
#[derive(Debug, Serialize)]
pub(super) struct Times {
    exchange_time: Option<String>,
    received_time: String,
    age_ms: u64,
    source: &'static str,
    simulated: bool,
}

impl Times {
    pub(super) fn of<T>(stamped: &Stamped<T>, clock: &dyn Clock) -> Self {
        Self {
            exchange_time: stamped.exchange_time.and_then(text),
            received_time: stamped.received.wall.to_string(),
            age_ms: stamped.age_ms(clock),
            source: "Binance Spot account",
            simulated: stamped.simulated,
        }
    }
}

fn text(time: Millis) -> Option<String> {
    Timestamp::from_millisecond(time).ok().map(|time| time.to_string())
}

fn as_text<S: serde::Serializer>(time: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    text(*time).serialize(serializer)
}

fn as_text_if_known<S: serde::Serializer>(time: &Option<Millis>, serializer: S) -> Result<S::Ok, S::Error> {
    time.and_then(text).serialize(serializer)
}

fn order_state(fields: &Fields<'_>, id: &str, time: Option<&str>) -> Read<OrderState> {
    let spent = fields.signed("cummulativeQuoteQty")?;
    Ok(OrderState {
        symbol: fields.word("symbol")?.into_owned(),
        order_id: fields.count("orderId")?,
        client_order_id: fields.word(id)?.into_owned(),
        side: fields.word("side")?.into_owned(),
        kind: fields.word("type")?.into_owned(),
        status: fields.word("status")?.into_owned(),
        time_in_force: fields.word("timeInForce")?.into_owned(),
        price: fields.price_unless_zero("price")?,
        quantity: fields.quantity("origQty")?,
        executed_quantity: fields.quantity("executedQty")?,
        executed_quote_quantity: if spent.is_sign_negative() {
            None
        } else {
            Some(fields.notional("cummulativeQuoteQty")?)
        },
        time: time.map(|time| fields.millis(time)).transpose()?,
    })
}

/// Of a new order.
pub(super) fn placed(body: &[u8]) -> Decoded<OrderState> {
    let order = order_state(&decode::object(body)?, "clientOrderId", Some("transactTime"))?;
    let time = order.time;
    Ok((order, time))
}

/// Of a cancelled one: its own name is the former, `clientOrderId` that of the cancellation, whose time it has.
pub(super) fn cancelled(body: &[u8]) -> Decoded<OrderState> {
    let fields = decode::object(body)?;
    let cancelled = fields.millis("transactTime")?;
    Ok((order_state(&fields, "origClientOrderId", None)?, Some(cancelled)))
}

pub(super) fn order(body: &[u8]) -> Decoded<OrderState> {
    let fields = decode::object(body)?;
    let updated = fields.millis("updateTime")?;
    Ok((order_state(&fields, "clientOrderId", Some("time"))?, Some(updated)))
}

pub(super) fn orders(body: &[u8]) -> Decoded<Vec<OrderState>> {
    let orders = decode::each(body, |fields| order_state(&fields, "clientOrderId", Some("time")))?;
    Ok((orders, None))
}

/// The exchange answers a test with an empty object.
pub(super) fn tested(body: &[u8]) -> Decoded<()> {
    decode::object(body).map(|_| ((), None))
}

pub(super) fn own_trades(body: &[u8]) -> Decoded<Vec<OwnTrade>> {
    let trades = decode::each(body, |fields| {
        Ok(OwnTrade {
            symbol: fields.word("symbol")?.into_owned(),
            trade_id: fields.count("id")?,
            order_id: fields.count("orderId")?,
            side: if fields.truth("isBuyer")? { "BUY" } else { "SELL" },
            price: fields.price("price")?,
            quantity: fields.quantity("qty")?,
            quote_quantity: fields.notional("quoteQty")?,
            commission: fields.quantity("commission")?,
            commission_asset: fields.word("commissionAsset")?.into_owned(),
            maker: fields.truth("isMaker")?,
            time: fields.millis("time")?,
        })
    })?;
    let last = trades.iter().map(|trade| trade.time).max();
    Ok((trades, last))
}

pub(super) fn account(body: &[u8]) -> Decoded<Account> {
    let fields = decode::object(body)?;
    let balance = |fields: Fields<'_>| {
        Ok(Balance {
            asset: fields.word("asset")?.into_owned(),
            free: fields.quantity("free")?,
            locked: fields.quantity("locked")?,
        })
    };
    let balances = decode::each(fields.raw("balances")?.get().as_bytes(), balance);
    let mut balances = balances.map_err(|wrong| wrong.within("balances"))?;
    balances.retain(|balance| !(balance.free.is_zero() && balance.locked.is_zero()));
    let account = Account {
        account_type: fields.word("accountType")?.into_owned(),
        can_trade: fields.truth("canTrade")?,
        can_withdraw: fields.truth("canWithdraw")?,
        can_deposit: fields.truth("canDeposit")?,
        balances,
    };
    // Zero where nothing ever happened in it.
    let updated = Some(fields.millis("updateTime")?).filter(|time| *time > 0);
    Ok((account, updated))
}
