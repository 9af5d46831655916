//! `binance_cancel_order`

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tribune_binance::rest::{Endpoint, Method};
use tribune_core::{CallContext, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use super::account::{Change, JOURNAL_FAILED, TradingAccount, copy};
use super::answers::{self, OrderState};
use super::entry::Action;
use super::spec::{self, CHANGE, OneOrder, arguments, spec};
use tribune_binance::rest::request::Request;
use tribune_market_parts::exchange_error;

pub(super) struct CancelOrder {
    spec: ToolSpec,
    account: Arc<TradingAccount>,
}

#[derive(Serialize, JsonSchema)]
struct Cancelled {
    status: &'static str,
    order: OrderState,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl CancelOrder {
    pub(super) fn new(account: &Arc<TradingAccount>) -> Self {
        Self {
            spec: spec::<OneOrder, Cancelled>(
                "binance_cancel_order",
                "Cancel an order",
                "Cancels one open order at once; what was filled before stays filled. Name it by symbol and order_id \
                 or client_order_id, which binance_get_open_orders lists. If an answer says \"execution status \
                 unknown\", look with binance_get_order before trying again.",
                CHANGE,
            ),
            account: Arc::clone(account),
        }
    }
}

#[async_trait]
impl Tool for CancelOrder {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn normalise(&self, args: &mut JsonObject) {
        spec::normalise_symbol(args);
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let wanted: OneOrder = arguments(args)?;
        let order = wanted.name()?;
        let (parameter, value) = order.parameter();
        // A cancellation has its own id, so that two can be told apart.
        let name = self.account.previews.random_name("tribune-")?;
        let request = Request::new(Endpoint::Order)
            .symbol(&wanted.symbol)
            .map_err(exchange_error)?
            .with(parameter, &value)
            .with("newClientOrderId", &name);
        let change = Change {
            action: Action::CancelOrder,
            method: Method::DELETE,
            request,
            read: answers::cancelled,
            described: json!({"symbol": wanted.symbol, "cancellation": name}),
            order,
        };
        let sending = self.account.start(change, cx);
        let changed = sending.await.map_err(|error| copy(&error))?;
        let answer = changed.order.clone().map(|order| Cancelled {
            status: "cancelled",
            order,
            note: changed.journal_failed.then_some(JOURNAL_FAILED),
        });
        self.account.answer(answer, 1)
    }
}
