//! What the read-only tools answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_core::{CallContext, Error, Result, ToolOutput};

use super::account::TradingAccount;
use super::answers::{self, Account, OrderState, OwnTrade};
use super::spec::OneOrder;
use tribune_binance::{Endpoint, Request};
use tribune_market_parts::exchange_error;

/// The longest list: a hundred orders fit the size that hosts accept.
const MAX_LISTED: u32 = 100;
const MAX_BALANCES: usize = 300;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneOrEverySymbol {
    /// The symbol exactly as the exchange has it, for example BTCUSDT.
    #[schemars(length(min = 1, max = 40))]
    symbol: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Listing {
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
    50
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AccountAnswer {
    #[serde(flatten)]
    account: Account,
    /// Whether some were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct OrderAnswer {
    order: OrderState,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Orders {
    /// Oldest first.
    orders: Vec<OrderState>,
    #[serde(flatten)]
    list: Listed,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Trades {
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

pub(super) async fn balances(account: &TradingAccount) -> Result<ToolOutput> {
    let request = Request::new(Endpoint::ACCOUNT).with("omitZeroBalances", "true");
    let mut found = account.ask(request, answers::account).await?;
    let left_out = truncate(&mut found.value.balances, MAX_BALANCES);
    let count = found.value.balances.len();
    let note = (left_out > 0).then(|| format!("{left_out} further balances are left out"));
    account.answer(found.map(|account| AccountAnswer { account, note }), count)
}

pub(super) async fn my_trades(account: &TradingAccount, listing: &Listing) -> Result<ToolOutput> {
    let request = listing.request(Endpoint::MY_TRADES, "fromId")?;
    let mut found = account.ask(request, answers::own_trades).await?;
    let list = Listed::new(&mut found.value);
    let count = list.count;
    account.answer(found.map(|trades| Trades { trades, list }), count)
}

pub(super) async fn order(account: &TradingAccount, wanted: &OneOrder, cx: &CallContext) -> Result<ToolOutput> {
    let found = account.find(&wanted.symbol, wanted.name()?, cx).await?;
    account.answer(found.map(|order| OrderAnswer { order }), 1)
}

pub(super) async fn open_orders(account: &TradingAccount, of: OneOrEverySymbol) -> Result<ToolOutput> {
    let request = Request::new(Endpoint::OPEN_ORDERS);
    let request = match of.symbol {
        Some(symbol) => request.symbol(&symbol).map_err(exchange_error)?,
        None => request,
    };
    orders(account, request).await
}

pub(super) async fn all_orders(account: &TradingAccount, listing: &Listing) -> Result<ToolOutput> {
    orders(account, listing.request(Endpoint::ALL_ORDERS, "orderId")?).await
}

async fn orders(account: &TradingAccount, request: Request) -> Result<ToolOutput> {
    let mut found = account.ask(request, answers::untimed).await?;
    let list = Listed::new(&mut found.value);
    let count = list.count;
    account.answer(found.map(|orders| Orders { orders, list }), count)
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
            return Err(Error::invalid_argument("start_time is after end_time: give the earlier one as start_time"));
        }
        let request = Request::new(endpoint).symbol(&self.symbol).map_err(exchange_error)?;
        Ok(request
            .limit(self.limit)
            .with_some("startTime", self.start_time)
            .with_some("endTime", self.end_time)
            .with_some(from_id, self.from_id))
    }
}
