//! Placing, finding and cancelling orders.

use serde_json::{Value, json};

use super::ledger::{End, Fill, Ledger, Order, cost};
use super::order_request::{self, OrderRequest, TimeInForce};
use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::interval::Millis;
use crate::market::levels::{Levels, Side};
use crate::market::tape::Trade;
use crate::markets::Markets;
use crate::number::{self, Quantity, UNIT};
use crate::simulated::engine::Submitted;
use crate::simulated::queues::{Incoming, OrderId};
use crate::simulated::{Instrument, SharedInstrument};

type Answer = Result<Value, ApiError>;

fn find_instrument<'a>(markets: &'a Markets, params: &Params) -> Result<&'a SharedInstrument, ApiError> {
    markets.lookup(params.symbol()?).ok_or_else(ApiError::invalid_symbol)
}

/// An order that passes the filters, with its quantity.
fn check(instrument: &Instrument, params: &Params) -> Result<(OrderRequest, Quantity), ApiError> {
    let order = OrderRequest::parse(params)?;
    params.finish()?;
    if instrument.engine.is_none() {
        return Err(ApiError::market_closed());
    }
    let market = &instrument.market;
    let opposite = order.side.opposite();
    let best = market.levels.best(opposite).map(|(price, _)| price);
    order.check(&market.symbol, best.or_else(|| market.last_price()).unwrap_or(0))?;
    let quantity = match order.quote_quantity {
        0 => order.quantity,
        money => {
            let (bought, _) = walk(&market.levels, opposite, i128::MAX, money.saturating_mul(UNIT));
            bought - bought % market.symbol.step
        }
    };
    match quantity {
        0 => Err(ApiError::filter("LOT_SIZE")),
        _ => Ok((order, quantity)),
    }
}

/// How much of a side's levels can be had for so much quantity and money, and the money that it costs.
fn walk(levels: &Levels, side: Side, mut quantity: Quantity, mut money: i128) -> (Quantity, i128) {
    let (mut taken, mut paid) = (0, 0);
    for (price, total) in levels.side(side) {
        let price = i128::from(price);
        let here = total.min(quantity).min(money / price);
        taken += here;
        paid += here * price;
        quantity -= here;
        money -= here * price;
        if here < total {
            break;
        }
    }
    (taken, paid)
}

pub fn test(markets: &Markets, params: &Params) -> Answer {
    let instrument = find_instrument(markets, params)?.lock();
    check(&instrument, params).map(|_| json!({}))
}

pub fn place(markets: &Markets, ledger: &mut Ledger, params: &Params) -> Answer {
    let mut instrument = find_instrument(markets, params)?.lock();
    let now = markets.now();
    // The market moves up to now first, so that trades stay in the order of their times.
    instrument.advance(&markets.hub, now);
    let (request, quantity) = check(&instrument, params)?;
    let Instrument { market, engine } = &mut *instrument;
    let engine = engine.as_mut().ok_or_else(ApiError::market_closed)?;
    let (symbol, side, limit) = (market.symbol.clone(), request.side, request.limit);
    let mut open = ledger.orders(&symbol.name).filter(|order| order.is_open());
    if open.any(|order| request.client_id.as_ref() == Some(&order.client_id)) {
        return Err(ApiError::bad(-2010, "Duplicate order sent."));
    }
    drop(open);
    // What it can cost at most: money of a buyer, quantity of a seller.
    let cost = match (side, limit) {
        (Side::Ask, _) => quantity,
        (Side::Bid, Some(limit)) => cost(limit, quantity),
        (Side::Bid, None) => walk(&market.levels, Side::Ask, quantity, i128::MAX).1 / UNIT,
    };
    if ledger.free(symbol.spent_by(side)) < cost {
        return Err(ApiError::bad(-2010, "Account has insufficient balance for requested action."));
    }
    let crossing = market.levels.side(side.opposite());
    let crossing = crossing.take_while(|(price, _)| limit.is_none_or(|limit| side.opposite().reaches(*price, limit)));
    let available: Quantity = crossing.map(|(_, quantity)| quantity).sum();
    // An order that is killed has an id all the same.
    let is_killed = request.time_in_force == TimeInForce::FillOrKill && available < quantity;
    let incoming = Incoming {
        side,
        limit,
        quantity: if is_killed { 0 } else { quantity },
        rests: limit.is_some() && request.time_in_force == TimeInForce::UntilCancelled,
    };
    let Submitted { id, trades, resting } = engine.submit(market, &markets.hub, &incoming, now);
    let order = Order::new(request, &symbol, id, quantity, now);
    ledger.put(order.clone());
    for trade in &trades {
        ledger.settle(&symbol.name, id, *trade, false);
    }
    match resting {
        0 => ledger.end(&symbol.name, id, End::Expired, now),
        _ => engine.watch(id),
    }
    let fill = |trade: &Trade| {
        json!({
            "price": number::fixed(trade.price),
            "qty": number::fixed(trade.quantity),
            "commission": "0.00000000",
            "commissionAsset": order.bought,
            "tradeId": trade.id
        })
    };
    let fills: Value = trades.iter().map(fill).collect();
    Ok(ledger.order(&symbol.name, id).unwrap_or(&order).json_with(json!({"transactTime": now, "fills": fills})))
}

/// The order with the given `orderId` or `origClientOrderId`.
fn find_order<'a>(ledger: &'a Ledger, params: &Params) -> Result<Option<&'a Order>, ApiError> {
    let symbol = params.symbol()?;
    let (id, client_id) = (params.integer::<OrderId>("orderId")?, params.get("origClientOrderId"));
    params.finish()?;
    match (id, client_id) {
        (Some(id), _) => Ok(ledger.order(symbol, id)),
        (None, Some(client_id)) => Ok(ledger.orders(symbol).rfind(|order| order.client_id == client_id)),
        (None, None) => {
            Err(ApiError::bad(-1102, "Param 'origClientOrderId' or 'orderId' must be sent, but both were empty/null!"))
        }
    }
}

pub fn find(ledger: &Ledger, params: &Params) -> Answer {
    let order = find_order(ledger, params)?;
    order.map(Order::json).ok_or_else(|| ApiError::bad(-2013, "Order does not exist."))
}

pub fn cancel(markets: &Markets, ledger: &mut Ledger, params: &Params) -> Answer {
    let unknown_order = || ApiError::bad(-2011, "Unknown order sent.");
    let mut instrument = find_instrument(markets, params)?.lock();
    let own_name = order_request::client_id(params)?;
    let order = find_order(ledger, params)?.filter(|order| order.is_open());
    let Order { id, symbol, client_id, .. } = order.cloned().ok_or_else(unknown_order)?;
    let Instrument { market, engine } = &mut *instrument;
    let engine = engine.as_mut().ok_or_else(ApiError::market_closed)?;
    let is_cancelled = engine.cancel(market, &markets.hub, id);
    // Fills before the cancellation are booked first.
    for trade in engine.take_trades(id) {
        ledger.settle(&symbol, id, trade, true);
    }
    if !is_cancelled {
        return Err(unknown_order());
    }
    let now = markets.now();
    ledger.end(&symbol, id, End::Cancelled, now);
    let order = ledger.order(&symbol, id).ok_or_else(unknown_order)?;
    // A cancellation has a client id of its own.
    Ok(order.json_with(json!({
        "clientOrderId": own_name.unwrap_or_else(|| format!("cancel-{id}")),
        "origClientOrderId": client_id,
        "transactTime": now
    })))
}

/// Books the fills of resting orders since the last request.
pub fn settle(markets: &Markets, ledger: &mut Ledger) {
    let open: Vec<(String, OrderId)> = ledger.open_orders().map(|order| (order.symbol.clone(), order.id)).collect();
    for (symbol, id) in open {
        let engine =
            markets.lookup(&symbol).and_then(|instrument| Some(instrument.lock().engine.as_mut()?.take_trades(id)));
        for trade in engine.into_iter().flatten() {
            ledger.settle(&symbol, id, trade, true);
        }
    }
}

pub fn open(markets: &Markets, ledger: &Ledger, params: &Params) -> Answer {
    let symbol = match params.get("symbol") {
        Some(name) => find_instrument(markets, params).map(|_| Some(name))?,
        None => None,
    };
    params.finish()?;
    let wanted = |order: &&Order| symbol.is_none_or(|symbol| order.symbol == symbol);
    Ok(ledger.open_orders().filter(wanted).map(Order::json).collect())
}

pub fn all(markets: &Markets, ledger: &Ledger, params: &Params) -> Answer {
    find_instrument(markets, params)?;
    let symbol = params.symbol()?;
    let limit = params.limit(500, 1_000)?;
    let from = params.integer::<OrderId>("orderId")?;
    let times = params.times()?;
    params.finish()?;
    let wanted = |order: &&Order| from.is_none_or(|id| order.id >= id) && is_within(order.placed, times);
    let rows = ledger.orders(symbol).filter(wanted).map(Order::json).collect();
    Ok(limited(rows, limit, from.is_some()))
}

pub fn trades(markets: &Markets, ledger: &Ledger, params: &Params) -> Answer {
    find_instrument(markets, params)?;
    let symbol = params.symbol()?;
    let limit = params.limit(500, 1_000)?;
    let order = params.integer::<OrderId>("orderId")?;
    let from = params.integer::<u64>("fromId")?;
    let times = params.times()?;
    params.finish()?;
    let orders = ledger.orders(symbol).filter(|one| order.is_none_or(|id| one.id == id));
    let mut fills: Vec<(&Order, &Fill)> =
        orders.flat_map(|order| order.fills.iter().map(move |fill| (order, fill))).collect();
    fills.retain(|(_, fill)| from.is_none_or(|id| fill.trade.id >= id) && is_within(fill.trade.time, times));
    fills.sort_unstable_by_key(|(_, fill)| fill.trade.id);
    let row = |(order, Fill { trade, is_maker }): &(&Order, &Fill)| {
        json!({
            "symbol": symbol,
            "id": trade.id,
            "orderId": order.id,
            "orderListId": -1,
            "price": number::fixed(trade.price),
            "qty": number::fixed(trade.quantity),
            "quoteQty": number::fixed_money(trade.money()),
            "commission": "0.00000000",
            "commissionAsset": order.bought,
            "time": trade.time,
            "isBuyer": order.request.side == Side::Bid,
            "isMaker": is_maker,
            "isBestMatch": true
        })
    };
    Ok(limited(fills.iter().map(row).collect(), limit, from.is_some()))
}

fn is_within(time: Millis, (start, end): (Option<Millis>, Option<Millis>)) -> bool {
    start.is_none_or(|start| time >= start) && end.is_none_or(|end| time <= end)
}

/// The last `limit` rows, or the first.
fn limited(mut rows: Vec<Value>, limit: usize, are_first: bool) -> Value {
    if !are_first {
        rows.drain(..rows.len().saturating_sub(limit));
    }
    rows.truncate(limit);
    Value::Array(rows)
}
