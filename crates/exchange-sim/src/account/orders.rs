//! Placing, finding and cancelling orders.

use serde_json::{Value, json};

use super::draft::{self, Amount, Draft, Kind, Lasting, Response};
use super::ledger::{Ledger, MyTrade, Order, State, cost, side_name};
use crate::interval::Millis;
use crate::market::levels::Side;
use crate::market::symbol::Symbol;
use crate::number::{self, Quantity, UNIT};
use crate::rest::Request;
use crate::rest::error::ApiError;
use crate::rest::params::Params;
use crate::simulated::engine::{Engine, Execution, Incoming, Submitted};
use crate::simulated::matching::{MatchingBook, OrderId};
use crate::venue::{Listed, Shared, Venue, lock};

type Answer = Result<Value, ApiError>;

fn listed<'a>(venue: &'a Venue, params: &Params) -> Result<&'a Shared, ApiError> {
    venue.lookup(params.symbol()?).ok_or_else(ApiError::invalid_symbol)
}

fn market_closed() -> ApiError {
    ApiError::bad(-1013, "Market is closed.")
}

/// An order that passed the filters, and the quantity it comes to.
struct Checked {
    draft: Draft,
    quantity: Quantity,
}

fn checked(listed: &Listed, params: &Params) -> Result<Checked, ApiError> {
    let draft = draft::read(params)?;
    params.finish()?;
    let symbol = &listed.market.symbol;
    let engine = listed.engine.as_ref().ok_or_else(market_closed)?;
    let reference = engine
        .book
        .best(draft.side.opposite())
        .or_else(|| listed.market.last_price());
    draft::check(&draft, symbol, reference.unwrap_or(0))?;
    let quantity = match draft.amount {
        Amount::Base(quantity) => quantity,
        Amount::Quote(money) => {
            let bought = engine.book.quantity_for(draft.side, money.saturating_mul(UNIT));
            bought - bought % symbol.step
        }
    };
    if quantity == 0 {
        return Err(ApiError::bad(-1013, "Filter failure: LOT_SIZE"));
    }
    Ok(Checked { draft, quantity })
}

pub fn test(venue: &Venue, request: &Request<'_>) -> Answer {
    let listed = lock(listed(venue, &request.params)?);
    checked(&listed, &request.params).map(|_| json!({}))
}

pub fn place(venue: &Venue, ledger: &mut Ledger, request: &Request<'_>) -> Answer {
    let mut listed = lock(listed(venue, &request.params)?);
    let Checked { draft, quantity } = checked(&listed, &request.params)?;
    let Listed { market, engine } = &mut *listed;
    let engine = engine.as_mut().ok_or_else(market_closed)?;
    let now = venue.now();
    // The order meets the book as it is at this moment, and trades stay in the order of their times.
    engine.advance(market, &venue.hub, now);
    let symbol = market.symbol.clone();
    refuse_duplicate(ledger, &symbol, &draft)?;
    let crossing = engine.book.available(draft.side, draft.price);
    if draft.kind == Kind::LimitMaker && crossing > 0 {
        return Err(ApiError::bad(-2010, "Order would immediately match and take."));
    }
    let reserved = reservation(&engine.book, &draft, quantity);
    ledger.reserve(&symbol, draft.side, reserved)?;
    venue.accounts.count_order(now);
    let killed = draft.kind == Kind::Limit(Lasting::FillOrKill) && crossing < quantity;
    let submitted = if killed {
        engine.refuse()
    } else {
        let incoming = Incoming {
            side: draft.side,
            limit: draft.price,
            quantity,
            rests: matches!(draft.kind, Kind::Limit(Lasting::UntilCancelled) | Kind::LimitMaker),
        };
        engine.submit(market, &venue.hub, &incoming, now)
    };
    let order = enter(ledger, engine, &symbol, &draft, quantity, &submitted, now);
    Ok(placed_json(&order, &draft, &submitted.executions, &symbol))
}

fn refuse_duplicate(ledger: &Ledger, symbol: &Symbol, draft: &Draft) -> Result<(), ApiError> {
    let duplicate = draft.client_id.as_ref().is_some_and(|id| {
        let mut open = ledger
            .orders()
            .filter(|order| order.state.is_open() && order.symbol == symbol.name);
        open.any(|order| order.client_id == *id)
    });
    if duplicate {
        return Err(ApiError::bad(-2010, "Duplicate order sent."));
    }
    Ok(())
}

/// What an order can cost at most: a buyer's money, or what a seller sells.
fn reservation(book: &MatchingBook, draft: &Draft, quantity: Quantity) -> i128 {
    match (draft.side, draft.price) {
        (Side::Ask, _) => quantity,
        (Side::Bid, Some(limit)) => cost(limit, quantity),
        (Side::Bid, None) => book.money_for(Side::Bid, quantity) / UNIT,
    }
}

/// Writes the order down, and what became of it at once.
fn enter(
    ledger: &mut Ledger,
    engine: &mut Engine,
    symbol: &Symbol,
    draft: &Draft,
    quantity: Quantity,
    submitted: &Submitted,
    now: Millis,
) -> Order {
    let id = submitted.id;
    ledger.put(Order::of(draft, symbol, id, quantity, now));
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
        .unwrap_or_else(|| Order::of(draft, symbol, id, quantity, now))
}

/// What is left of an order that does not rest lapses.
fn expire_rest(ledger: &mut Ledger, symbol: &Symbol, id: OrderId) {
    let Some(order) = ledger.order_mut(&symbol.name, id) else {
        return;
    };
    if order.executed == order.quantity {
        return;
    }
    order.state = State::Expired;
    let side = order.side;
    // A market buyer's reserve was for what there was to buy, and that was bought.
    let reserved = match (side, order.price) {
        (Side::Bid, 0) => 0,
        _ => order.reserved(),
    };
    ledger.release(symbol, side, reserved);
}

fn placed_json(order: &Order, draft: &Draft, executions: &[Execution], symbol: &Symbol) -> Value {
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
    if draft.response == Response::Ack {
        return answer;
    }
    let result = json!({
        "price": number::fixed_price(order.price),
        "origQty": number::fixed(order.quantity),
        "executedQty": number::fixed(order.executed),
        "origQuoteOrderQty": number::fixed(match draft.amount { Amount::Quote(money) => money, Amount::Base(_) => 0 }),
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
    if draft.response == Response::Full {
        let fills: Vec<Value> = executions
            .iter()
            .map(|execution| fill_json(execution, draft.side, symbol))
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

/// The order that `orderId` or `origClientOrderId` names.
fn named<'a>(ledger: &'a Ledger, params: &Params) -> Result<Option<&'a Order>, ApiError> {
    let symbol = params.symbol()?;
    let (id, client_id) = (params.integer::<OrderId>("orderId")?, params.get("origClientOrderId"));
    // Only a cancellation names itself; it is read so that it does not count as unread.
    let _ = params.get("newClientOrderId");
    params.finish()?;
    match (id, client_id) {
        (Some(id), _) => Ok(ledger.order(symbol, id)),
        (None, Some(client_id)) => {
            let mut orders: Vec<&Order> = ledger.orders().filter(|order| order.symbol == symbol).collect();
            orders.retain(|order| order.client_id == client_id);
            Ok(orders.last().copied())
        }
        (None, None) => Err(ApiError::bad(
            -1102,
            "Param 'origClientOrderId' or 'orderId' must be sent, but both were empty/null!",
        )),
    }
}

pub fn find(ledger: &Ledger, request: &Request<'_>) -> Answer {
    let order = named(ledger, &request.params)?;
    order
        .map(Order::json)
        .ok_or_else(|| ApiError::bad(-2013, "Order does not exist."))
}

fn unknown_order() -> ApiError {
    ApiError::bad(-2011, "Unknown order sent.")
}

pub fn cancel(venue: &Venue, ledger: &mut Ledger, request: &Request<'_>) -> Answer {
    let listed = listed(venue, &request.params)?;
    let order = named(ledger, &request.params)?.filter(|order| order.state.is_open());
    let (symbol, id) = order
        .map(|order| (order.symbol.clone(), order.id))
        .ok_or_else(unknown_order)?;
    let own_name = draft::client_id(&request.params)?;
    let mut answer = withdraw(venue, listed, ledger, &symbol, id)?;
    if let Some(name) = own_name {
        answer["clientOrderId"] = name.into();
    }
    Ok(answer)
}

fn withdraw(venue: &Venue, listed: &Shared, ledger: &mut Ledger, name: &str, id: OrderId) -> Answer {
    let mut listed = lock(listed);
    let Listed { market, engine } = &mut *listed;
    let engine = engine.as_mut().ok_or_else(market_closed)?;
    // Filled between the settlement and now: the next request will see it.
    if !engine.cancel(market, &venue.hub, id) {
        return Err(unknown_order());
    }
    // The last fills before the cancellation come first.
    for execution in engine.take_watched_executions_of(id) {
        ledger.settle(&market.symbol, id, &execution.trade, true);
    }
    engine.unwatch(id);
    let order = ledger.order_mut(name, id).ok_or_else(unknown_order)?;
    order.state = State::Canceled;
    order.updated = venue.now();
    let order = order.clone();
    ledger.release(&market.symbol, order.side, order.reserved());
    let mut answer = order.json();
    if let Value::Object(fields) = &mut answer {
        // A cancellation has a name of its own; one that was not given is made up.
        fields.insert("clientOrderId".to_owned(), format!("cancel-{id}").into());
        fields.insert("origClientOrderId".to_owned(), order.client_id.clone().into());
        fields.insert("transactTime".to_owned(), order.updated.into());
    }
    Ok(answer)
}

pub fn cancel_all(venue: &Venue, ledger: &mut Ledger, request: &Request<'_>) -> Answer {
    let listed = listed(venue, &request.params)?;
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
        .filter_map(|id| withdraw(venue, listed, ledger, name, id).ok());
    Ok(cancelled.collect())
}

pub fn open(venue: &Venue, ledger: &Ledger, request: &Request<'_>) -> Answer {
    let symbol = match request.params.get("symbol") {
        Some(_) => {
            listed(venue, &request.params)?;
            Some(request.params.symbol()?)
        }
        None => None,
    };
    request.params.finish()?;
    let wanted = |order: &&Order| order.state.is_open() && symbol.is_none_or(|symbol| order.symbol == symbol);
    Ok(ledger.orders().filter(wanted).map(Order::json).collect())
}

pub fn all(venue: &Venue, ledger: &Ledger, request: &Request<'_>) -> Answer {
    let params = &request.params;
    listed(venue, params)?;
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

pub fn trades(venue: &Venue, ledger: &Ledger, request: &Request<'_>) -> Answer {
    let params = &request.params;
    let shared = listed(venue, params)?;
    let symbol = lock(shared).market.symbol.clone();
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

/// The last `limit` of them, or the first.
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
