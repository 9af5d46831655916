//! Placing, finding and cancelling orders.

use serde_json::{Value, json};

use super::ledger::{Ledger, MyTrade, Order, State, cost};
use super::order_request::{self, Amount, OrderRequest, TimeInForce, Type};
use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::lock::lock;
use crate::market::levels::{Levels, Side};
use crate::market::symbol::Symbol;
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
    let quantity = match order.amount {
        Amount::Base(quantity) => quantity,
        Amount::Quote(money) => {
            let bought = quantity_for(&market.levels, opposite, money.saturating_mul(UNIT));
            bought - bought % market.symbol.step
        }
    };
    match quantity {
        0 => Err(ApiError::filter("LOT_SIZE")),
        _ => Ok((order, quantity)),
    }
}

/// How much of a side's levels `money` buys or, for a seller, how much brings it.
fn quantity_for(levels: &Levels, side: Side, money: i128) -> Quantity {
    let mut left = money;
    let mut quantity = 0;
    for (price, total) in levels.side(side) {
        let taken = total.min(left / i128::from(price));
        quantity += taken;
        left -= taken * i128::from(price);
        if taken < total {
            break;
        }
    }
    quantity
}

/// What `quantity` of a side's levels costs, as far as the book has it.
fn money_for(levels: &Levels, side: Side, quantity: Quantity) -> i128 {
    let mut left = quantity;
    let mut money = 0;
    for (price, total) in levels.side(side) {
        let taken = left.min(total);
        money += i128::from(price) * taken;
        left -= taken;
    }
    money
}

pub fn test(markets: &Markets, params: &Params) -> Answer {
    let instrument = lock(find_instrument(markets, params)?);
    check(&instrument, params).map(|_| json!({}))
}

pub fn place(markets: &Markets, ledger: &mut Ledger, params: &Params) -> Answer {
    let mut instrument = lock(find_instrument(markets, params)?);
    let now = markets.now();
    // The market moves up to now first, so that trades stay in the order of their times.
    instrument.advance(&markets.hub, now);
    let (request, quantity) = check(&instrument, params)?;
    let Instrument { market, engine } = &mut *instrument;
    let engine = engine.as_mut().ok_or_else(ApiError::market_closed)?;
    let symbol = market.symbol.clone();
    let mut open = ledger.open_orders().filter(|order| order.symbol == symbol.name);
    if open.any(|order| request.client_id.as_ref() == Some(&order.client_id)) {
        return Err(ApiError::bad(-2010, "Duplicate order sent."));
    }
    drop(open);
    let (side, limit) = (request.side, request.price());
    // What it can cost at most: money of a buyer, quantity of a seller.
    let reserved = match (side, limit) {
        (Side::Ask, _) => quantity,
        (Side::Bid, Some(limit)) => cost(limit, quantity),
        (Side::Bid, None) => money_for(&market.levels, Side::Ask, quantity) / UNIT,
    };
    ledger.reserve(&symbol, side, reserved)?;
    let crossing = market.levels.side(side.opposite());
    let crossing = crossing.take_while(|(price, _)| limit.is_none_or(|limit| side.opposite().reaches(*price, limit)));
    let available: Quantity = crossing.map(|(_, quantity)| quantity).sum();
    // An order that is killed has an id all the same.
    let is_killed = matches!(request.order_type, Type::Limit(_, TimeInForce::FillOrKill)) && available < quantity;
    let incoming = Incoming {
        side,
        limit,
        quantity: if is_killed { 0 } else { quantity },
        rests: matches!(request.order_type, Type::Limit(_, TimeInForce::UntilCancelled)),
    };
    let Submitted { id, trades, resting } = engine.submit(market, &markets.hub, &incoming, now);
    let order = Order::new(&request, &symbol, id, quantity, now);
    ledger.put(order.clone());
    for trade in &trades {
        ledger.settle(&symbol, id, trade, false);
    }
    match resting {
        0 => ledger.end(&symbol, id, State::Expired, now),
        _ => engine.watch(id),
    }
    let mut fields = json!({"transactTime": now});
    if request.is_answered_in_full {
        fields["fills"] = trades.iter().map(|trade| fill_json(trade, side, &symbol)).collect();
    }
    Ok(ledger.order(&symbol.name, id).unwrap_or(&order).json_with(fields))
}

fn fill_json(trade: &Trade, side: Side, symbol: &Symbol) -> Value {
    json!({
        "price": number::fixed(trade.price),
        "qty": number::fixed(trade.quantity),
        "commission": "0.00000000",
        "commissionAsset": symbol.spent_by(side.opposite()),
        "tradeId": trade.id
    })
}

/// The order with the given `orderId` or `origClientOrderId`.
fn find_order<'a>(ledger: &'a Ledger, params: &Params) -> Result<Option<&'a Order>, ApiError> {
    let symbol = params.symbol()?;
    let (id, client_id) = (params.integer::<OrderId>("orderId")?, params.get("origClientOrderId"));
    params.finish()?;
    match (id, client_id) {
        (Some(id), _) => Ok(ledger.order(symbol, id)),
        (None, Some(client_id)) => {
            let is_named = |order: &&Order| order.symbol == symbol && order.client_id == client_id;
            Ok(ledger.orders().rfind(is_named))
        }
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
    let mut instrument = lock(find_instrument(markets, params)?);
    let own_name = order_request::client_id(params)?;
    let order = find_order(ledger, params)?.filter(|order| order.is_open());
    let Order { id, symbol, client_id, .. } = order.cloned().ok_or_else(unknown_order)?;
    let Instrument { market, engine } = &mut *instrument;
    let engine = engine.as_mut().ok_or_else(ApiError::market_closed)?;
    let is_cancelled = engine.cancel(market, &markets.hub, id);
    // Fills before the cancellation are booked first.
    for trade in engine.take_trades(id) {
        ledger.settle(&market.symbol, id, &trade, true);
    }
    if !is_cancelled {
        return Err(unknown_order());
    }
    let now = markets.now();
    ledger.end(&market.symbol, id, State::Canceled, now);
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
    for (name, id) in open {
        let Some(instrument) = markets.lookup(&name) else {
            continue;
        };
        let Instrument { market, engine } = &mut *lock(instrument);
        for trade in engine.iter_mut().flat_map(|engine| engine.take_trades(id)) {
            ledger.settle(&market.symbol, id, &trade, true);
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
    let (start, end) = params.times()?;
    params.finish()?;
    let wanted = |order: &&Order| {
        order.symbol == symbol
            && from.is_none_or(|id| order.id >= id)
            && start.is_none_or(|start| order.placed >= start)
            && end.is_none_or(|end| order.placed <= end)
    };
    let rows = ledger.orders().filter(wanted).map(Order::json).collect();
    Ok(limited(rows, limit, from.is_some()))
}

pub fn trades(markets: &Markets, ledger: &Ledger, params: &Params) -> Answer {
    let symbol = lock(find_instrument(markets, params)?).market.symbol.clone();
    let limit = params.limit(500, 1_000)?;
    let order = params.integer::<OrderId>("orderId")?;
    let from = params.integer::<u64>("fromId")?;
    let (start, end) = params.times()?;
    params.finish()?;
    let wanted = |mine: &&MyTrade| {
        mine.symbol == symbol.name
            && order.is_none_or(|id| mine.order == id)
            && from.is_none_or(|id| mine.trade.id >= id)
            && start.is_none_or(|start| mine.trade.time >= start)
            && end.is_none_or(|end| mine.trade.time <= end)
    };
    let row = |mine: &MyTrade| {
        json!({
            "symbol": mine.symbol,
            "id": mine.trade.id,
            "orderId": mine.order,
            "orderListId": -1,
            "price": number::fixed(mine.trade.price),
            "qty": number::fixed(mine.trade.quantity),
            "quoteQty": number::fixed_money(mine.trade.money()),
            "commission": "0.00000000",
            "commissionAsset": symbol.spent_by(mine.side.opposite()),
            "time": mine.trade.time,
            "isBuyer": mine.side == Side::Bid,
            "isMaker": mine.is_maker,
            "isBestMatch": true
        })
    };
    let rows = ledger.trades.iter().filter(wanted).map(row).collect();
    Ok(limited(rows, limit, from.is_some()))
}

/// The last `limit` rows, or the first.
fn limited(mut rows: Vec<Value>, limit: usize, are_first: bool) -> Value {
    if !are_first {
        rows.drain(..rows.len().saturating_sub(limit));
    }
    rows.truncate(limit);
    Value::Array(rows)
}
