//! Placing, finding and cancelling orders.

use serde_json::{Value, json};

use super::ledger::{Ledger, MyTrade, Order, State, cost, side_name};
use super::order_request::{self, Amount, Kind, OrderRequest, Response, TimeInForce};
use crate::api::Request;
use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::interval::Millis;
use crate::market::levels::Side;
use crate::market::symbol::Symbol;
use crate::markets::Markets;
use crate::number::{self, Quantity, UNIT};
use crate::simulated::engine::{Engine, Execution, Incoming, Submitted};
use crate::simulated::matching::{MatchingBook, OrderId};
use crate::simulated::{Instrument, SharedInstrument, lock};

type Answer = Result<Value, ApiError>;

fn find_instrument<'a>(markets: &'a Markets, params: &Params) -> Result<&'a SharedInstrument, ApiError> {
    markets.lookup(params.symbol()?).ok_or_else(ApiError::invalid_symbol)
}

fn market_closed() -> ApiError {
    ApiError::bad(-1013, "Market is closed.")
}

/// An order that passed the filters, with its quantity.
struct CheckedOrder {
    order: OrderRequest,
    quantity: Quantity,
}

fn check(instrument: &Instrument, params: &Params) -> Result<CheckedOrder, ApiError> {
    let order = order_request::parse(params)?;
    params.finish()?;
    let symbol = &instrument.market.symbol;
    let engine = instrument.engine.as_ref().ok_or_else(market_closed)?;
    let reference = engine
        .book
        .best(order.side.opposite())
        .or_else(|| instrument.market.last_price());
    order_request::check(&order, symbol, reference.unwrap_or(0))?;
    let quantity = match order.amount {
        Amount::Base(quantity) => quantity,
        Amount::Quote(money) => {
            let bought = engine.book.quantity_for(order.side, money.saturating_mul(UNIT));
            bought - bought % symbol.step
        }
    };
    if quantity == 0 {
        return Err(ApiError::bad(-1013, "Filter failure: LOT_SIZE"));
    }
    Ok(CheckedOrder { order, quantity })
}

pub fn test(markets: &Markets, request: &Request<'_>) -> Answer {
    let instrument = lock(find_instrument(markets, &request.params)?);
    check(&instrument, &request.params).map(|_| json!({}))
}

pub fn place(markets: &Markets, ledger: &mut Ledger, request: &Request<'_>) -> Answer {
    let mut instrument = lock(find_instrument(markets, &request.params)?);
    let now = markets.now();
    // The market moves up to now first, so that trades stay in the order of their times.
    if let Instrument {
        market,
        engine: Some(engine),
    } = &mut *instrument
    {
        engine.advance(market, &markets.hub, now);
    }
    let CheckedOrder { order: terms, quantity } = check(&instrument, &request.params)?;
    let Instrument { market, engine } = &mut *instrument;
    let engine = engine.as_mut().ok_or_else(market_closed)?;
    let symbol = market.symbol.clone();
    refuse_duplicate(ledger, &symbol, &terms)?;
    let crossing = engine.book.available(terms.side, terms.price);
    if terms.kind == Kind::LimitMaker && crossing > 0 {
        return Err(ApiError::bad(-2010, "Order would immediately match and take."));
    }
    let reserved = reservation(&engine.book, &terms, quantity);
    ledger.reserve(&symbol, terms.side, reserved)?;
    let killed = terms.kind == Kind::Limit(TimeInForce::FillOrKill) && crossing < quantity;
    let submitted = if killed {
        engine.refuse()
    } else {
        let incoming = Incoming {
            side: terms.side,
            limit: terms.price,
            quantity,
            rests: matches!(terms.kind, Kind::Limit(TimeInForce::UntilCancelled) | Kind::LimitMaker),
        };
        engine.submit(market, &markets.hub, &incoming, now)
    };
    let order = enter(ledger, engine, &symbol, &terms, quantity, &submitted, now);
    Ok(placed_json(&order, &terms, &submitted.executions, &symbol))
}

fn refuse_duplicate(ledger: &Ledger, symbol: &Symbol, request: &OrderRequest) -> Result<(), ApiError> {
    let mut open = ledger
        .orders()
        .filter(|order| order.state.is_open() && order.symbol == symbol.name);
    match open.any(|order| request.client_id.as_ref() == Some(&order.client_id)) {
        true => Err(ApiError::bad(-2010, "Duplicate order sent.")),
        false => Ok(()),
    }
}

/// What an order can cost at most: money of a buyer, quantity of a seller.
fn reservation(book: &MatchingBook, request: &OrderRequest, quantity: Quantity) -> i128 {
    match (request.side, request.price) {
        (Side::Ask, _) => quantity,
        (Side::Bid, Some(limit)) => cost(limit, quantity),
        (Side::Bid, None) => book.money_for(Side::Bid, quantity) / UNIT,
    }
}

/// Adds the order to the ledger with its immediate fills.
fn enter(
    ledger: &mut Ledger,
    engine: &mut Engine,
    symbol: &Symbol,
    request: &OrderRequest,
    quantity: Quantity,
    submitted: &Submitted,
    now: Millis,
) -> Order {
    let id = submitted.id;
    ledger.put(Order::new(request, symbol, id, quantity, now));
    for execution in &submitted.executions {
        ledger.settle(symbol, id, &execution.trade, false);
    }
    if submitted.resting > 0 {
        engine.watch(id);
    } else {
        expire_rest(ledger, symbol, id);
    }
    ledger
        .order(&symbol.name, id)
        .cloned()
        .unwrap_or_else(|| Order::new(request, symbol, id, quantity, now))
}

/// Expires what is left of an order that does not rest.
fn expire_rest(ledger: &mut Ledger, symbol: &Symbol, id: OrderId) {
    let Some(order) = ledger.order_mut(&symbol.name, id) else {
        return;
    };
    if order.executed == order.quantity {
        return;
    }
    order.state = State::Expired;
    let side = order.side;
    // What a market buyer locked was for the quantity that was there, and all of it was bought.
    let reserved = match (side, order.price) {
        (Side::Bid, 0) => 0,
        _ => order.reserved(),
    };
    ledger.release(symbol, side, reserved);
}

fn placed_json(order: &Order, request: &OrderRequest, executions: &[Execution], symbol: &Symbol) -> Value {
    let mut answer = json!({
        "symbol": order.symbol,
        "orderId": order.id,
        "orderListId": -1,
        "clientOrderId": order.client_id,
        "transactTime": order.placed
    });
    let Value::Object(fields) = &mut answer else {
        return answer;
    };
    if request.response == Response::Ack {
        return answer;
    }
    let result = json!({
        "price": number::fixed_price(order.price),
        "origQty": number::fixed(order.quantity),
        "executedQty": number::fixed(order.executed),
        "origQuoteOrderQty": number::fixed(match request.amount { Amount::Quote(money) => money, Amount::Base(_) => 0 }),
        "cummulativeQuoteQty": number::fixed(order.money),
        "status": order.state.as_str(),
        "timeInForce": order.kind.time_in_force(),
        "type": order.kind.as_str(),
        "side": side_name(order.side),
        "workingTime": order.placed,
        "selfTradePreventionMode": "NONE"
    });
    if let Value::Object(result) = result {
        fields.extend(result);
    }
    if request.response == Response::Full {
        let fills: Vec<Value> = executions
            .iter()
            .map(|execution| fill_json(execution, request.side, symbol))
            .collect();
        fields.insert("fills".to_owned(), Value::Array(fills));
    }
    answer
}

fn fill_json(execution: &Execution, side: Side, symbol: &Symbol) -> Value {
    json!({
        "price": number::fixed_price(execution.trade.price),
        "qty": number::fixed(execution.trade.quantity),
        "commission": "0.00000000",
        "commissionAsset": received(symbol, side),
        "tradeId": execution.trade.id
    })
}

fn received(symbol: &Symbol, side: Side) -> &str {
    match side {
        Side::Bid => &symbol.base,
        Side::Ask => &symbol.quote,
    }
}

/// The order with the given `orderId` or `origClientOrderId`.
fn find_order<'a>(ledger: &'a Ledger, params: &Params) -> Result<Option<&'a Order>, ApiError> {
    let symbol = params.symbol()?;
    let (id, client_id) = (params.integer::<OrderId>("orderId")?, params.get("origClientOrderId"));
    // Used by cancellations only; read here so that it does not count as unread.
    let _ = params.get("newClientOrderId");
    params.finish()?;
    match (id, client_id) {
        (Some(id), _) => Ok(ledger.order(symbol, id)),
        (None, Some(client_id)) => {
            let is_named = |order: &&Order| order.symbol == symbol && order.client_id == client_id;
            Ok(ledger.orders().filter(is_named).last())
        }
        (None, None) => Err(ApiError::bad(
            -1102,
            "Param 'origClientOrderId' or 'orderId' must be sent, but both were empty/null!",
        )),
    }
}

pub fn find(ledger: &Ledger, request: &Request<'_>) -> Answer {
    let order = find_order(ledger, &request.params)?;
    order
        .map(Order::json)
        .ok_or_else(|| ApiError::bad(-2013, "Order does not exist."))
}

fn unknown_order() -> ApiError {
    ApiError::bad(-2011, "Unknown order sent.")
}

pub fn cancel(markets: &Markets, ledger: &mut Ledger, request: &Request<'_>) -> Answer {
    let instrument = find_instrument(markets, &request.params)?;
    let order = find_order(ledger, &request.params)?.filter(|order| order.state.is_open());
    let (symbol, id) = order
        .map(|order| (order.symbol.clone(), order.id))
        .ok_or_else(unknown_order)?;
    let own_name = order_request::client_id(&request.params)?;
    let mut answer = withdraw(markets, instrument, ledger, &symbol, id)?;
    if let Some(name) = own_name {
        answer["clientOrderId"] = name.into();
    }
    Ok(answer)
}

fn withdraw(markets: &Markets, instrument: &SharedInstrument, ledger: &mut Ledger, name: &str, id: OrderId) -> Answer {
    let mut instrument = lock(instrument);
    let Instrument { market, engine } = &mut *instrument;
    let engine = engine.as_mut().ok_or_else(market_closed)?;
    // It was filled since the last settlement: the next request will see it.
    if !engine.cancel(market, &markets.hub, id) {
        return Err(unknown_order());
    }
    // Fills before the cancellation are booked first.
    for execution in engine.take_watched_executions_of(id) {
        ledger.settle(&market.symbol, id, &execution.trade, true);
    }
    engine.unwatch(id);
    let order = ledger.order_mut(name, id).ok_or_else(unknown_order)?;
    order.state = State::Canceled;
    order.updated = markets.now();
    let order = order.clone();
    ledger.release(&market.symbol, order.side, order.reserved());
    let mut answer = order.json();
    if let Value::Object(fields) = &mut answer {
        // A cancellation has a client id of its own.
        fields.insert("clientOrderId".to_owned(), format!("cancel-{id}").into());
        fields.insert("origClientOrderId".to_owned(), order.client_id.clone().into());
        fields.insert("transactTime".to_owned(), order.updated.into());
    }
    Ok(answer)
}

pub fn cancel_all(markets: &Markets, ledger: &mut Ledger, request: &Request<'_>) -> Answer {
    let instrument = find_instrument(markets, &request.params)?;
    let name = request.params.symbol()?;
    request.params.finish()?;
    let open: Vec<OrderId> = ledger
        .orders()
        .filter(|order| order.symbol == name && order.state.is_open())
        .map(|order| order.id)
        .collect();
    if open.is_empty() {
        return Err(unknown_order());
    }
    let cancelled = open
        .into_iter()
        .filter_map(|id| withdraw(markets, instrument, ledger, name, id).ok());
    Ok(cancelled.collect())
}

pub fn open(markets: &Markets, ledger: &Ledger, request: &Request<'_>) -> Answer {
    let symbol = match request.params.get("symbol") {
        Some(_) => {
            find_instrument(markets, &request.params)?;
            Some(request.params.symbol()?)
        }
        None => None,
    };
    request.params.finish()?;
    let wanted = |order: &&Order| order.state.is_open() && symbol.is_none_or(|symbol| order.symbol == symbol);
    Ok(ledger.orders().filter(wanted).map(Order::json).collect())
}

pub fn all(markets: &Markets, ledger: &Ledger, request: &Request<'_>) -> Answer {
    let params = &request.params;
    find_instrument(markets, params)?;
    let symbol = params.symbol()?;
    let limit = params.limit(500, 1_000)?;
    let from = params.integer::<OrderId>("orderId")?;
    let (start, end) = (
        params.integer::<Millis>("startTime")?,
        params.integer::<Millis>("endTime")?,
    );
    params.finish()?;
    let wanted = |order: &&Order| {
        order.symbol == symbol
            && from.is_none_or(|id| order.id >= id)
            && start.is_none_or(|start| order.placed >= start)
            && end.is_none_or(|end| order.placed <= end)
    };
    Ok(newest(
        ledger.orders().filter(wanted).map(Order::json),
        limit,
        from.is_some(),
    ))
}

pub fn trades(markets: &Markets, ledger: &Ledger, request: &Request<'_>) -> Answer {
    let params = &request.params;
    let instrument = find_instrument(markets, params)?;
    let symbol = lock(instrument).market.symbol.clone();
    let limit = params.limit(500, 1_000)?;
    let order = params.integer::<OrderId>("orderId")?;
    let from = params.integer::<u64>("fromId")?;
    let (start, end) = (
        params.integer::<Millis>("startTime")?,
        params.integer::<Millis>("endTime")?,
    );
    params.finish()?;
    let wanted = |mine: &&MyTrade| {
        mine.symbol == symbol.name
            && order.is_none_or(|id| mine.order == id)
            && from.is_none_or(|id| mine.trade.id >= id)
            && start.is_none_or(|start| mine.trade.time >= start)
            && end.is_none_or(|end| mine.trade.time <= end)
    };
    let rows = ledger.trades().filter(wanted).map(|mine| trade_json(mine, &symbol));
    Ok(newest(rows, limit, from.is_some()))
}

/// The last `limit` rows, or the first.
fn newest(rows: impl Iterator<Item = Value>, limit: usize, first: bool) -> Value {
    let mut rows: Vec<Value> = rows.collect();
    if first {
        rows.truncate(limit);
    } else {
        rows.drain(..rows.len().saturating_sub(limit));
    }
    Value::Array(rows)
}

fn trade_json(mine: &MyTrade, symbol: &Symbol) -> Value {
    json!({
        "symbol": mine.symbol,
        "id": mine.trade.id,
        "orderId": mine.order,
        "orderListId": -1,
        "price": number::fixed_price(mine.trade.price),
        "qty": number::fixed(mine.trade.quantity),
        "quoteQty": number::fixed_money(mine.trade.money()),
        "commission": "0.00000000",
        "commissionAsset": received(symbol, mine.side),
        "time": mine.trade.time,
        "isBuyer": mine.side == Side::Bid,
        "isMaker": mine.maker,
        "isBestMatch": true
    })
}
