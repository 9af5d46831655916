//! The read-only tools: `binance_get_account`, `binance_get_my_trades`, `binance_get_order`,
//! `binance_get_open_orders`, `binance_get_all_orders`.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tribune_core::{CallContext, Error, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use super::account::TradingAccount;
use super::answers::{self, Account, OrderState, OwnTrade};
use super::spec::{self, LOOK, OneOrder, arguments, spec};
use tribune_binance::moment::parse_time;
use tribune_binance::rest::Endpoint;
use tribune_binance::rest::request::Request;
use tribune_market_parts::exchange_error;

const DEFAULT_LISTED: u32 = 50;
/// The longest list: a hundred orders fit the size that hosts accept.
const MAX_LISTED: u32 = 100;
const MAX_BALANCES: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Account,
    MyTrades,
    Order,
    OpenOrders,
    AllOrders,
}

pub(super) struct AccountQuery {
    subject: Subject,
    spec: ToolSpec,
    account: Arc<TradingAccount>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneOrEverySymbol {
    /// The symbol exactly as the exchange has it, for example BTCUSDT.
    #[schemars(length(min = 1, max = 40))]
    symbol: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Listing {
    /// The symbol exactly as the exchange has it, for example BTCUSDT.
    #[schemars(length(min = 1, max = 40))]
    symbol: String,
    /// How many at most (1-100, default 50).
    #[serde(default = "default_listed")]
    #[schemars(range(min = 1, max = MAX_LISTED))]
    limit: u32,
    /// Only from this time on, in milliseconds since 1970. At most 24 hours before end_time.
    start_time: Option<u64>,
    /// Only up to this time, in milliseconds since 1970.
    end_time: Option<u64>,
    /// Only from this order_id or trade_id on.
    from_id: Option<u64>,
}

const fn default_listed() -> u32 {
    DEFAULT_LISTED
}

#[derive(Serialize, JsonSchema)]
struct AccountAnswer {
    #[serde(flatten)]
    account: Account,
    /// Whether some were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct OrderAnswer {
    order: OrderState,
}

#[derive(Serialize, JsonSchema)]
struct Orders {
    /// Oldest first.
    orders: Vec<OrderState>,
    #[serde(flatten)]
    list: Listed,
}

#[derive(Serialize, JsonSchema)]
struct Trades {
    /// Oldest first.
    trades: Vec<OwnTrade>,
    #[serde(flatten)]
    list: Listed,
}

/// The common part of every list.
#[derive(Serialize, JsonSchema)]
struct Listed {
    count: usize,
    /// Whether some were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl AccountQuery {
    pub(super) fn new(subject: Subject, account: &Arc<TradingAccount>) -> Self {
        Self {
            subject,
            spec: subject.spec(),
            account: Arc::clone(account),
        }
    }

    async fn see_account(&self) -> Result<ToolOutput> {
        let request = Request::new(Endpoint::Account).with("omitZeroBalances", "true");
        let mut account = self.account.ask(request, answers::account).await?;
        let left_out = truncate(&mut account.value.balances, MAX_BALANCES);
        let count = account.value.balances.len();
        let note = (left_out > 0).then(|| format!("{left_out} further balances are left out"));
        let answer = account.map(|account| AccountAnswer { account, note });
        self.account.answer(answer, count)
    }

    async fn see_trades(&self, listing: &Listing) -> Result<ToolOutput> {
        let request = listing.request(Endpoint::MyTrades, "fromId")?;
        let mut trades = self.account.ask(request, answers::own_trades).await?;
        let list = Listed::new(&mut trades.value);
        let count = list.count;
        self.account.answer(trades.map(|trades| Trades { trades, list }), count)
    }

    async fn see_order(&self, wanted: &OneOrder, cx: &CallContext) -> Result<ToolOutput> {
        let order = self.account.find(&wanted.symbol, wanted.name()?, cx).await?;
        self.account.answer(order.map(|order| OrderAnswer { order }), 1)
    }

    async fn see_orders(&self, request: Request) -> Result<ToolOutput> {
        let mut orders = self.account.ask(request, answers::orders).await?;
        let list = Listed::new(&mut orders.value);
        let count = list.count;
        self.account.answer(orders.map(|orders| Orders { orders, list }), count)
    }
}

impl Listed {
    /// Keeps as many as fit one answer.
    fn new<T>(rows: &mut Vec<T>) -> Self {
        let left_out = truncate(rows, MAX_LISTED as usize);
        Self {
            count: rows.len(),
            note: (left_out > 0).then(|| format!("{left_out} more are left out; ask for one symbol or a shorter time")),
        }
    }
}

/// How many were left out.
fn truncate<T>(rows: &mut Vec<T>, most: usize) -> usize {
    let left_out = rows.len().saturating_sub(most);
    rows.truncate(most);
    left_out
}

impl Listing {
    fn request(&self, endpoint: Endpoint, from_id: &str) -> Result<Request> {
        if let (Some(start), Some(end)) = (self.start_time, self.end_time)
            && start > end
        {
            return Err(Error::invalid_argument(
                "start_time is after end_time: give the earlier one as start_time",
            ));
        }
        let request = Request::new(endpoint).symbol(&self.symbol);
        let request = request.and_then(|request| request.limit(self.limit, MAX_LISTED));
        Ok(request
            .map_err(exchange_error)?
            .with_some("startTime", self.start_time)
            .with_some("endTime", self.end_time)
            .with_some(from_id, self.from_id))
    }
}

#[async_trait]
impl Tool for AccountQuery {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn normalise(&self, args: &mut JsonObject) {
        spec::normalise_symbol(args);
        // Readable times become milliseconds; anything else is left for the schema to refuse.
        for name in ["start_time", "end_time"] {
            let Some(value) = args.get_mut(name) else { continue };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if let Some(time) = parse_time(&text) {
                *value = Value::from(time);
            }
        }
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        match self.subject {
            Subject::Account => self.see_account().await,
            Subject::MyTrades => self.see_trades(&arguments(args)?).await,
            Subject::Order => self.see_order(&arguments(args)?, cx).await,
            Subject::OpenOrders => {
                let request = Request::new(Endpoint::OpenOrders);
                let request = match arguments::<OneOrEverySymbol>(args)?.symbol {
                    Some(symbol) => request.symbol(&symbol).map_err(exchange_error)?,
                    None => request,
                };
                self.see_orders(request).await
            }
            Subject::AllOrders => {
                let listing: Listing = arguments(args)?;
                self.see_orders(listing.request(Endpoint::AllOrders, "orderId")?).await
            }
        }
    }
}

impl Subject {
    fn spec(self) -> ToolSpec {
        match self {
            Self::Account => spec::<Nothing, AccountAnswer>(
                "binance_get_account",
                "Account balances",
                "Shows what the account holds: each asset with what is free and what is locked in open orders, and \
                 whether it may trade. Changes nothing. Empty balances are left out.",
                LOOK,
            ),
            Self::MyTrades => spec::<Listing, Trades>(
                "binance_get_my_trades",
                "My trades",
                "Lists the account's own trades in one symbol, with price, quantity, commission and order. Changes \
                 nothing. Without times or from_id: the latest.",
                LOOK,
            ),
            Self::Order => spec::<OneOrder, OrderAnswer>(
                "binance_get_order",
                "Look at an order",
                "Shows one order of the account: its status and how much of it is filled. Changes nothing. Name it by \
                 symbol and order_id or client_order_id. Use it after an answer that says \"execution status \
                 unknown\": if the exchange has no such order, it was not placed.",
                LOOK,
            ),
            Self::OpenOrders => spec::<OneOrEverySymbol, Orders>(
                "binance_get_open_orders",
                "Open orders",
                "Lists the account's open orders, of one symbol or of all. Changes nothing. One symbol is much cheaper \
                 for the exchange's request budget than all.",
                LOOK,
            ),
            Self::AllOrders => spec::<Listing, Orders>(
                "binance_get_all_orders",
                "All orders of a symbol",
                "Lists the account's orders in one symbol, open, filled and cancelled. Changes nothing. Without times \
                 or from_id: the latest.",
                LOOK,
            ),
        }
    }
}
