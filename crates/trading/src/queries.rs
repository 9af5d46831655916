//! The read-only tools: `binance_get_account`, `binance_get_my_trades`, `binance_get_order`,
//! `binance_get_open_orders`, `binance_get_all_orders`.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_core::{CallContext, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use super::account::TradingAccount;
use super::answers::{self, Account, OrderState, Times};
use super::spec::{self, Draft, LOOK, MAX_LISTED};
use super::times::{check_times, normalise_times};
use tribune_binance::moment::Stamped;
use tribune_binance::rest::Endpoint;
use tribune_binance::rest::request::Request;
use tribune_market_parts::exchange_error;

const DEFAULT_LISTED: u32 = 50;
const MAX_BALANCES: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Account,
    MyTrades,
    Order,
    OpenOrders,
    AllOrders,
}

pub(super) struct AccountQuery {
    what: What,
    spec: ToolSpec,
    account: Arc<TradingAccount>,
}

#[derive(Serialize)]
struct AccountAnswer<'a> {
    #[serde(flatten)]
    account: &'a Account,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(flatten)]
    times: Times,
}

#[derive(Serialize)]
struct OrderAnswer<'a> {
    order: &'a OrderState,
    #[serde(flatten)]
    times: Times,
}

#[derive(Serialize)]
struct Orders<'a> {
    orders: &'a [OrderState],
    #[serde(flatten)]
    list: Listed,
}

#[derive(Serialize)]
struct Trades<'a> {
    trades: &'a [answers::OwnTrade],
    #[serde(flatten)]
    list: Listed,
}

/// The common part of every list.
#[derive(Serialize)]
struct Listed {
    count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(flatten)]
    times: Times,
}

/// The five read-only tools.
pub(super) fn tools(account: &Arc<TradingAccount>) -> Vec<Arc<dyn Tool>> {
    let drafts = [
        (What::Account, account_draft()),
        (What::MyTrades, my_trades_draft()),
        (What::Order, order_draft()),
        (What::OpenOrders, open_orders_draft()),
        (What::AllOrders, all_orders_draft()),
    ];
    let tool = |(what, draft): (What, Draft)| -> Arc<dyn Tool> {
        Arc::new(AccountQuery {
            what,
            spec: draft.spec(),
            account: Arc::clone(account),
        })
    };
    drafts.map(tool).into()
}

impl AccountQuery {
    async fn see_account(&self) -> Result<ToolOutput> {
        let request = Request::new(Endpoint::Account).with("omitZeroBalances", "true");
        let mut account = self.account.ask(request, answers::account).await?;
        let balances = &mut account.value.balances;
        let left_out = balances.len().saturating_sub(MAX_BALANCES);
        balances.truncate(MAX_BALANCES);
        let count = balances.len();
        let answer = AccountAnswer {
            account: &account.value,
            note: (left_out > 0).then(|| format!("{left_out} further balances are left out")),
            times: Times::new(&account, self.account.clock()),
        };
        ToolOutput::structured(&answer, count)
    }

    async fn see_trades(&self, args: &JsonObject) -> Result<ToolOutput> {
        let request = listing(Endpoint::MyTrades, args)?.with_some("fromId", whole(args, "from_id"));
        let trades = self.account.ask(request, answers::own_trades).await?;
        let (shown, list) = self.listed(&trades);
        ToolOutput::structured(&Trades { trades: shown, list }, shown.len())
    }

    async fn see_order(&self, args: &JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let order = self
            .account
            .find(symbol(args), spec::which_order(args).map_err(exchange_error)?, cx)
            .await?;
        let times = Times::new(&order, self.account.clock());
        ToolOutput::structured(
            &OrderAnswer {
                order: &order.value,
                times,
            },
            1,
        )
    }

    async fn see_orders(&self, request: Request) -> Result<ToolOutput> {
        let orders = self.account.ask(request, answers::orders).await?;
        let (shown, list) = self.listed(&orders);
        ToolOutput::structured(&Orders { orders: shown, list }, shown.len())
    }

    /// As many as fit one answer.
    fn listed<'a, T>(&self, rows: &'a Stamped<Vec<T>>) -> (&'a [T], Listed) {
        let shown = &rows.value[..rows.value.len().min(MAX_LISTED as usize)];
        let left_out = rows.value.len() - shown.len();
        let list = Listed {
            count: shown.len(),
            note: (left_out > 0).then(|| format!("{left_out} more are left out; ask for one symbol or a shorter time")),
            times: Times::new(rows, self.account.clock()),
        };
        (shown, list)
    }
}

#[async_trait]
impl Tool for AccountQuery {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn normalise(&self, args: &mut JsonObject) {
        spec::normalise_symbol(args);
        normalise_times(args);
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        match self.what {
            What::Account => self.see_account().await,
            What::MyTrades => self.see_trades(&args).await,
            What::Order => self.see_order(&args, cx).await,
            What::OpenOrders => {
                let request = Request::new(Endpoint::OpenOrders);
                let request = match spec::text(&args, "symbol") {
                    Some(symbol) => request.symbol(symbol).map_err(exchange_error)?,
                    None => request,
                };
                self.see_orders(request).await
            }
            What::AllOrders => {
                let request = listing(Endpoint::AllOrders, &args)?.with_some("orderId", whole(&args, "from_id"));
                self.see_orders(request).await
            }
        }
    }
}

fn symbol(args: &JsonObject) -> &str {
    spec::text(args, "symbol").unwrap_or_default()
}

fn whole(args: &JsonObject, name: &str) -> Option<u64> {
    args.get(name).and_then(Value::as_u64)
}

fn listing(endpoint: Endpoint, args: &JsonObject) -> Result<Request> {
    let time = |name| args.get(name).and_then(Value::as_i64);
    check_times(time("start_time"), time("end_time"))?;
    let limit = whole(args, "limit").and_then(|limit| u32::try_from(limit).ok());
    let request = Request::new(endpoint)
        .symbol(symbol(args))
        .map_err(exchange_error)?
        .limit(limit.unwrap_or(DEFAULT_LISTED), MAX_LISTED)
        .map_err(exchange_error)?
        .with_some("startTime", whole(args, "start_time"))
        .with_some("endTime", whole(args, "end_time"));
    Ok(request)
}

fn listing_arguments(from_id: &str) -> Value {
    json!({
        "symbol": spec::symbol(),
        "limit": {
            "type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": DEFAULT_LISTED,
            "description": "How many at most (1-100, default 50).",
        },
        "start_time": {"type": "integer", "minimum": 0, "description": "Only from this time on, in milliseconds since 1970. At most 24 hours before end_time."},
        "end_time": {"type": "integer", "minimum": 0, "description": "Only up to this time, in milliseconds since 1970."},
        "from_id": {"type": "integer", "minimum": 0, "description": from_id},
    })
}

fn list_output(name: &str, item: Value) -> Value {
    spec::with_times(json!({
        (name): {"type": "array", "items": item, "description": "Oldest first."},
        "count": {"type": "integer"},
        "note": {"type": "string", "description": "Whether some were left out."},
    }))
}

fn account_draft() -> Draft {
    Draft {
        name: "binance_get_account",
        title: "Account balances",
        description:
            "Shows what the account holds: each asset with what is free and what is locked in open orders, and \
                      whether it may trade. Changes nothing. Empty balances are left out."
                .to_owned(),
        arguments: json!({}),
        required: &[],
        output: spec::with_times(json!({
            "account_type": {"type": "string"},
            "can_trade": {"type": "boolean"},
            "can_withdraw": {"type": "boolean"},
            "can_deposit": {"type": "boolean"},
            "balances": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"asset": {"type": "string"}, "free": {"type": "string"}, "locked": {"type": "string"}},
                },
            },
            "note": {"type": "string"},
        })),
        output_required: &[
            "account_type",
            "can_trade",
            "balances",
            "received_time",
            "age_ms",
            "source",
            "simulated",
        ],
        hints: LOOK,
    }
}

fn my_trades_draft() -> Draft {
    let text = json!({"type": "string"});
    Draft {
        name: "binance_get_my_trades",
        title: "My trades",
        description:
            "Lists the account's own trades in one symbol, with price, quantity, commission and order. Changes \
                      nothing. Without times or from_id: the latest."
                .to_owned(),
        arguments: listing_arguments("Only from this trade_id on."),
        required: &["symbol"],
        output: list_output(
            "trades",
            json!({
                "type": "object",
                "properties": {
                    "symbol": text, "trade_id": {"type": "integer"}, "order_id": {"type": "integer"}, "side": text,
                    "price": text, "quantity": text, "quote_quantity": text, "commission": text,
                    "commission_asset": text, "maker": {"type": "boolean"}, "time": {"type": ["string", "null"]},
                },
            }),
        ),
        output_required: &["trades", "count", "received_time", "age_ms", "source", "simulated"],
        hints: LOOK,
    }
}

fn order_draft() -> Draft {
    Draft {
        name: "binance_get_order",
        title: "Look at an order",
        description:
            "Shows one order of the account: its status and how much of it is filled. Changes nothing. Name it by \
                      symbol and order_id or client_order_id. Use it after an answer that says \"execution status \
                      unknown\": if the exchange has no such order, it was not placed."
                .to_owned(),
        arguments: json!({
            "symbol": spec::symbol(),
            "order_id": spec::order_id(),
            "client_order_id": spec::client_order_id(),
        }),
        required: &["symbol"],
        output: spec::with_times(json!({"order": spec::order_state()})),
        output_required: &["order", "received_time", "age_ms", "source", "simulated"],
        hints: LOOK,
    }
}

fn open_orders_draft() -> Draft {
    Draft {
        name: "binance_get_open_orders",
        title: "Open orders",
        description:
            "Lists the account's open orders, of one symbol or of all. Changes nothing. One symbol is much cheaper \
                      for the exchange's request budget than all."
                .to_owned(),
        arguments: json!({"symbol": spec::symbol()}),
        required: &[],
        output: list_output("orders", spec::order_state()),
        output_required: &["orders", "count", "received_time", "age_ms", "source", "simulated"],
        hints: LOOK,
    }
}

fn all_orders_draft() -> Draft {
    Draft {
        name: "binance_get_all_orders",
        title: "All orders of a symbol",
        description:
            "Lists the account's orders in one symbol, open, filled and cancelled. Changes nothing. Without times \
                      or from_id: the latest."
                .to_owned(),
        arguments: listing_arguments("Only from this order_id on."),
        required: &["symbol"],
        output: list_output("orders", spec::order_state()),
        output_required: &["orders", "count", "received_time", "age_ms", "source", "simulated"],
        hints: LOOK,
    }
}
