//! `binance_place_order`: first a preview, then, with its token, the order.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_binance::{Endpoint, Method, Moment, Notional, Price, Request, Stamped};
use tribune_core::{CallContext, Error, JsonObject, Result, ToolOutput, ToolSpec};

use super::account::{Change, TradingAccount, caller};
use super::answers;
use super::entry::{Action, Event};
use super::estimate::Estimate;
use super::history::Change as PastChange;
use super::order::{Order, OrderArguments, OrderName};
use super::preview::client_order_id;
use super::spec::{CHANGE, spec};

#[derive(Serialize, JsonSchema)]
struct PlaceAnswer {
    /// Whether an order was placed.
    #[schemars(extend("enum" = ["preview", "placed"]))]
    status: &'static str,
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
    unresolved: Vec<Value>,
    /// Orders that are on their way to the exchange, or were placed in the last minute: `outcome` is in_flight or placed.
    /// Make sure that this is not one of them once more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<JsonObject>")]
    recent_orders: Vec<Value>,
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

const NEXT_STEP: &str = "nothing was placed; show this to the person, and only if they agree call again with the same arguments and this preview_token";
const NEXT_STEP_CONFIRMED: &str = "nothing was placed; show this to the person, and only if they agree call again with the same arguments and this preview_token: the order then waits until they confirm it on the server";
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
    let warning = account.check_permission().await?;
    let checked = account.check(order).await?;
    let request = order.write(Request::new(Endpoint::ORDER_TEST))?;
    let tested = account.test(request).await?;
    let preview_token = account.previews.issue(order, &cx.principal)?;
    let (history, settings) = (&account.journal.history, &account.settings);
    let depth = &checked.book.depth;
    let preview = Preview {
        expires_in_secs: account.previews.valid_for.as_secs(),
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
        max_order_notional: settings.limits.order_notional,
        next_step: match settings.waiting {
            None => NEXT_STEP,
            Some(_) => NEXT_STEP_CONFIRMED,
        },
        unresolved: history.unresolved(),
        recent_orders: history.recent(account.clock().now()),
    };
    let gap = history.gap.as_ref().map(|gap| {
        format!(
            "{gap}; earlier orders may be missing here: look with binance_get_open_orders and binance_get_all_orders"
        )
    });
    let note = warning.map(str::to_owned).into_iter().chain(gap).reduce(|all, one| format!("{all}; {one}"));
    let answer = PlaceAnswer { status: "preview", order: json!(order), preview: Some(preview), note };
    account.answer(tested.map(|_| answer), 1)
}

/// Idempotent: the same token and order are placed once.
async fn place(account: &Arc<TradingAccount>, order: &Order, token: &str, cx: &CallContext) -> Result<ToolOutput> {
    let (name, history) = (client_order_id(token), &account.journal.history);
    loop {
        if let Some(change) = history.settled(&name).await {
            return placed_before(account, order, &change, cx);
        }
        match account.previews.check(token, order, &cx.principal) {
            Some(valid) => valid?,
            None => return Err(unknown_token(account)),
        }
        // Prices and the symbol's state may have changed since the preview.
        let checked = account.check(order).await?;
        account.check_confirmed(&name, order, cx).await?;
        account.check_stop().await?;
        let mut intent = account.entry(Action::Place, OrderName::Client(name.clone()), json!(order), cx);
        intent.notional = Some(checked.estimate.counted);
        let request = order.write(Request::new(Endpoint::ORDER))?;
        let request = request.with("newClientOrderId", &name).with("newOrderRespType", "RESULT");
        if !history.begin(&intent, &account.settings.limits)? {
            // A concurrent call with this token was faster.
            continue;
        }
        account.previews.forget(token);
        let change = Change { method: Method::POST, request, read: answers::placed, intent };
        let (order, note) = account.send(change).await?;
        return placed(account, order.map(|order| json!(order)), note);
    }
}

/// The outcome of a token that was used before, perhaps before a restart.
fn placed_before(account: &TradingAccount, order: &Order, past: &PastChange, cx: &CallContext) -> Result<ToolOutput> {
    let line = &past.line;
    if line.caller != caller(&cx.principal) {
        return Err(unknown_token(account));
    }
    let is_placed = matches!(line.event, Event::Done | Event::Found) && !line.result.is_null();
    if !is_placed || line.request != json!(order) {
        return Err(past.explain());
    }
    let now = Moment::now(account.clock());
    let since = Duration::try_from(now.wall.duration_since(line.time)).unwrap_or_default();
    let then = Moment { wall: line.time, monotonic: now.monotonic.checked_sub(since).unwrap_or(now.monotonic) };
    let time = line.result["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let order = Stamped {
        value: line.result.clone(),
        exchange_time: time.map(Timestamp::as_millisecond),
        sent: then,
        received: then,
        simulated: line.simulated.unwrap_or_default(),
    };
    placed(account, order, Some(NOT_TWICE))
}

/// For an expired token, or one that never existed.
fn unknown_token(account: &TradingAccount) -> Error {
    let next = match &account.journal.history.gap {
        None => "call again without preview_token for a new preview".to_owned(),
        Some(gap) => format!("but {gap}: look with binance_get_all_orders before you ask for a new preview"),
    };
    Error::invalid_argument(format!(
        "nothing was sent: the preview_token is unknown, and you have placed no order with it; {next}"
    ))
}

fn placed(account: &TradingAccount, order: Stamped<Value>, note: Option<&str>) -> Result<ToolOutput> {
    let notes = ended_early(&order.value).into_iter().chain(note.map(str::to_owned));
    let note = notes.reduce(|all, one| format!("{all}; {one}"));
    account.answer(order.map(|order| PlaceAnswer { status: "placed", order, preview: None, note }), 1)
}

/// A note for an accepted order that ended without being filled.
fn ended_early(order: &Value) -> Option<String> {
    let text = |name: &str| order[name].as_str().unwrap_or_default();
    let status = text("status");
    let (filled, whole) = (text("executed_quantity"), text("quantity"));
    (status.starts_with("EXPIRED") || status == "REJECTED")
        .then(|| format!("the order is {status}: {filled} of {whole} was filled, and no more will be"))
}
