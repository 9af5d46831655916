//! `binance_cancel_order`

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tribune_binance::{Endpoint, Method, Request};
use tribune_core::{CallContext, Result, ToolOutput, ToolSpec};

use super::account::{Change, TradingAccount};
use super::answers::{self, OrderState};
use super::entry::Action;
use super::preview::random_name;
use super::spec::{CHANGE, OneOrder, spec};
use tribune_market_parts::exchange_error;

#[derive(Serialize, JsonSchema)]
struct Cancelled {
    #[schemars(extend("enum" = ["cancelled"]))]
    status: &'static str,
    order: OrderState,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

pub(super) fn cancel_order() -> ToolSpec {
    spec::<OneOrder, Cancelled>(
        "binance_cancel_order",
        "Cancel an order",
        "Cancels one open order at once; what was filled before stays filled. Name it by symbol and order_id or \
         client_order_id, which binance_get_open_orders lists. If an answer says \"execution status unknown\", look with \
         binance_get_order before trying again.",
        CHANGE,
    )
}

pub(super) async fn call(account: &Arc<TradingAccount>, wanted: OneOrder, cx: &CallContext) -> Result<ToolOutput> {
    let order = wanted.name()?;
    let (parameter, value) = order.parameter();
    // A cancellation has its own id, so that two can be told apart.
    let name = random_name("tribune-")?;
    let request = Request::new(Endpoint::ORDER)
        .symbol(&wanted.symbol)
        .map_err(exchange_error)?
        .with(parameter, &value)
        .with("newClientOrderId", &name);
    let described = json!({"symbol": wanted.symbol, "cancellation": name});
    let intent = account.entry(Action::Cancel, order, described, cx);
    account.journal.history.note(&intent, account.clock().monotonic(), false);
    let change = Change { method: Method::DELETE, request, read: answers::cancelled, intent };
    let (order, note) = account.send(change).await?;
    account.answer(order.map(|order| Cancelled { status: "cancelled", order, note }), 1)
}
