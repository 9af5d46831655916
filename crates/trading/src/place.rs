//! `binance_place_order`: first a preview, then, with its token, the order.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_binance::rest::{Endpoint, Method};
use tribune_core::{CallContext, Error, JsonObject, Principal, Result, ToolOutput, ToolSpec};

use super::account::{Change, JOURNAL_FAILED, TradingAccount, caller, copy};
use super::answers::{self, Changed, Settled};
use super::entry::Action;
use super::estimate::Estimate;
use super::history::{Outcome, Placement};
use super::order::{Order, OrderArguments, OrderName};
use super::preview::{VALID_FOR, client_order_id};
use super::spec::{CHANGE, spec};
use super::unresolved::UnresolvedOrder;
use tribune_binance::number::{Notional, Price};
use tribune_binance::rest::request::Request;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Preview,
    Placed,
}

#[derive(Serialize, JsonSchema)]
struct PlaceAnswer {
    /// Whether an order was placed.
    status: Status,
    /// What would be sent; or, once placed, the order as the exchange has it.
    #[schemars(with = "JsonObject")]
    order: Value,
    #[serde(flatten)]
    preview: Option<Preview>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Preview {
    preview_token: String,
    expires_in_secs: u64,
    client_order_id: String,
    /// What it would come to in the quote asset by the book of now, without fees: the average price, the worst that is
    /// needed, and whether it would trade at once. A market order can fill at worse prices.
    estimate: Prospect,
    max_order_notional: Notional,
    next_step: &'static str,
    /// Earlier orders and cancellations whose outcome is unknown. Look at each with binance_get_order, and tell the
    /// person, before anything else is placed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<JsonObject>")]
    unresolved: Vec<UnresolvedOrder>,
    /// Orders that are on their way to the exchange, or were placed in the last minute: `outcome` is in_flight or placed.
    /// Make sure that this is not one of them once more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<JsonObject>")]
    recent_orders: Vec<Placement>,
}

#[derive(Serialize, JsonSchema)]
struct Prospect {
    #[serde(flatten)]
    estimate: Estimate,
    quote_asset: String,
    best_bid: Option<Price>,
    best_ask: Option<Price>,
    trades_at_once: bool,
    price_age_ms: u64,
    fees_included: bool,
}

const NOT_TWICE: &str =
    "this is the order that an earlier call with this preview_token placed; nothing was placed again";

pub(super) fn place_order(cap: Notional) -> ToolSpec {
    let description = format!(
        "Trades with real money, in two steps. Without preview_token it places nothing: it checks the order \
         against the exchange's rules and answers with what would be sent, the estimated cost without fees, and a \
         preview_token that is good once within 60 seconds. Show that to the person. Only with their consent call \
         again with exactly the same arguments and the token: that places the order. Sent again, the same token \
         places nothing more and answers with what became of the order. LIMIT needs price and \
         quantity; MARKET needs quantity (base asset) or quote_quantity (quote asset). One order may be worth at \
         most {cap} of its quote asset. If an answer says \"execution status unknown\", look with \
         binance_get_order before trying again."
    );
    spec::<OrderArguments, PlaceAnswer>("binance_place_order", "Place an order", description, CHANGE)
}

pub(super) async fn call(account: &Arc<TradingAccount>, args: &OrderArguments, cx: &CallContext) -> Result<ToolOutput> {
    let order = Order::read(args)?;
    match &args.preview_token {
        None => preview(account, &order, cx).await,
        Some(token) => place(account, &order, token, cx).await,
    }
}

async fn preview(account: &TradingAccount, order: &Order, cx: &CallContext) -> Result<ToolOutput> {
    let checked = account.check(order).await?;
    let request = order.write(Request::new(Endpoint::OrderTest))?;
    let tested = account.test(request, answers::tested).await?;
    let preview_token = account.previews.issue(order, &cx.principal)?;
    let history = &account.journal.history;
    let depth = &checked.book.depth;
    let preview = Preview {
        expires_in_secs: VALID_FOR.as_secs(),
        client_order_id: client_order_id(&preview_token),
        preview_token,
        estimate: Prospect {
            quote_asset: checked.rules.quote.to_string(),
            best_bid: depth.bids.best().map(|level| level.price),
            best_ask: depth.asks.best().map(|level| level.price),
            trades_at_once: order.crosses(depth),
            price_age_ms: checked.book.age_ms,
            fees_included: false,
            estimate: checked.estimate,
        },
        max_order_notional: account.cap,
        next_step: "nothing was placed; show this to the person, and only if they agree call again with the same arguments and this preview_token",
        unresolved: account.unresolved().list(),
        recent_orders: history.recent(account.clock().now()),
    };
    let answer = tested.map(|()| PlaceAnswer {
        status: Status::Preview,
        order: json!(order),
        preview: Some(preview),
        note: history.gap().map(|gap| {
            format!("{gap}; earlier orders may be missing here: look with binance_get_open_orders and binance_get_all_orders")
        }),
    });
    account.answer(answer, 1)
}

/// Idempotent: the same token and order are placed once.
async fn place(account: &Arc<TradingAccount>, order: &Order, token: &str, cx: &CallContext) -> Result<ToolOutput> {
    let previews = &account.previews;
    let name = client_order_id(token);
    let Some(slot) = previews.slot(token, &cx.principal) else {
        return Err(unknown_token(account, &name, &cx.principal));
    };
    let mut slot = slot.lock().await;
    if let Some(sending) = slot.clone() {
        drop(slot);
        let settled = sending.await;
        return match previews.is_for(token, order) {
            true => later_answer(account, &name, settled),
            false => Err(unknown_token(account, &name, &cx.principal)),
        };
    }
    previews.redeem(token, order)?;
    // Prices and the symbol's state may have changed since.
    account.check(order).await?;
    let sending = account.start(change(order, &name)?, cx);
    *slot = Some(sending.clone());
    drop(slot);
    let changed = sending.await.map_err(|error| copy(&error))?;
    placed(account, &changed, None)
}

fn change(order: &Order, client_order_id: &str) -> Result<Change> {
    let request = order
        .write(Request::new(Endpoint::Order))?
        .with("newClientOrderId", client_order_id)
        .with("newOrderRespType", "RESULT");
    Ok(Change {
        action: Action::Place,
        method: Method::POST,
        request,
        read: answers::placed,
        order: OrderName::Client(client_order_id.to_owned()),
        described: json!(order),
    })
}

fn later_answer(account: &TradingAccount, name: &str, settled: Settled) -> Result<ToolOutput> {
    let error = match settled {
        Ok(changed) => return placed(account, &changed, Some(NOT_TWICE)),
        Err(error) => error,
    };
    // A lookup may have found it since.
    let placement = account.journal.history.lookup(name);
    let outcome = placement.as_ref().map(|placement| placement.outcome);
    if let (Some(placement), Some(Outcome::Placed | Outcome::Absent)) = (&placement, outcome) {
        return Err(Error::invalid_argument(placement.explain()));
    }
    let next = match outcome {
        None | Some(Outcome::Refused) => "; call again without preview_token for a new preview",
        Some(_) => "",
    };
    let message = format!(
        "{}; this was the outcome of the first call with this preview_token (client_order_id {name}), and nothing was sent again{next}",
        error.message()
    );
    Err(Error::new(error.kind(), message))
}

/// For a token from before a restart, an expired one, one for another order, or one that never existed.
fn unknown_token(account: &TradingAccount, name: &str, principal: &Principal) -> Error {
    let history = &account.journal.history;
    let placement = history.lookup(name);
    if let Some(placement) = placement.filter(|placement| placement.caller == caller(principal)) {
        return Error::invalid_argument(placement.explain());
    }
    let next = match history.gap() {
        None => "call again without preview_token for a new preview".to_owned(),
        Some(gap) => format!("but {gap}: look with binance_get_all_orders before you ask for a new preview"),
    };
    Error::invalid_argument(format!(
        "nothing was sent: the preview_token is unknown, and you have placed no order with it; {next}"
    ))
}

fn placed(account: &TradingAccount, changed: &Changed, note: Option<&str>) -> Result<ToolOutput> {
    let unwritten = changed.journal_failed.then(|| JOURNAL_FAILED.to_owned());
    let notes = changed.order.value.caveat().into_iter().chain(unwritten);
    let note = notes.chain(note.map(str::to_owned)).reduce(|all, one| format!("{all}; {one}"));
    let answer = changed.order.clone().map(|order| PlaceAnswer {
        status: Status::Placed,
        order: json!(order),
        preview: None,
        note,
    });
    account.answer(answer, 1)
}
