//! `binance_cancel_order`

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::json;
use tribune_binance::rest::Method;
use tribune_core::{CallContext, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use super::account::{Change, TradingAccount};
use super::answers::{self, OrderState, Times};
use super::place::JOURNAL_FAILED;
use super::spec::{self, CHANGE, Draft};
use tribune_binance::rest::Endpoint;
use tribune_binance::rest::request::Request;
use tribune_market_parts::exchange_error;

pub(super) struct CancelOrder {
    spec: ToolSpec,
    account: Arc<TradingAccount>,
}

#[derive(Serialize)]
struct Cancelled<'a> {
    status: &'static str,
    order: &'a OrderState,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(flatten)]
    times: Times,
}

impl CancelOrder {
    pub(super) fn new(account: &Arc<TradingAccount>) -> Self {
        Self {
            spec: draft().spec(),
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
        let symbol = spec::text(&args, "symbol").unwrap_or_default();
        let order = spec::which_order(&args).map_err(exchange_error)?;
        let (parameter, value) = order.parameter();
        // A cancellation has its own id, so that two can be told apart.
        let name = self.account.previews.name("tribune-")?;
        let request = Request::new(Endpoint::Order)
            .symbol(symbol)
            .map_err(exchange_error)?
            .with(parameter, &value)
            .with("newClientOrderId", &name);
        let change = Change {
            action: "cancel_order",
            method: Method::DELETE,
            request,
            read: answers::cancelled,
            symbol: symbol.to_owned(),
            order,
            described: json!({"symbol": symbol, "cancellation": name}),
        };
        let changed = self.account.change(change, cx).await?;
        let answer = Cancelled {
            status: "cancelled",
            order: &changed.order.value,
            note: changed.journal_failed.then_some(JOURNAL_FAILED),
            times: Times::new(&changed.order, self.account.clock()),
        };
        ToolOutput::structured(&answer, 1)
    }
}

fn draft() -> Draft {
    Draft {
        name: "binance_cancel_order",
        title: "Cancel an order",
        description: "Cancels one open order at once; what was filled before stays filled. Name it by symbol and \
                      order_id or client_order_id, which binance_get_open_orders lists. If an answer says \"execution \
                      status unknown\", look with binance_get_order before trying again."
            .to_owned(),
        arguments: json!({
            "symbol": spec::symbol(),
            "order_id": spec::order_id(),
            "client_order_id": spec::client_order_id(),
        }),
        required: &["symbol"],
        output: spec::with_times(json!({
            "status": {"type": "string", "enum": ["cancelled"]},
            "order": spec::order_state(),
            "note": {"type": "string"},
        })),
        output_required: &["status", "order", "received_time", "age_ms", "source", "simulated"],
        hints: CHANGE,
    }
}
