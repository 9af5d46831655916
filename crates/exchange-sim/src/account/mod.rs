//! Signed endpoints: one account for each API key, whose orders go to the simulated books.

mod ledger;
mod order_request;
mod orders;
mod signature;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::Method;
use serde_json::{Value, json};

use crate::api::Request;
use crate::api::error::ApiError;
use crate::interval::{DAY, Millis, SECOND};
use crate::markets::Markets;
use crate::number;
use crate::settings::ApiKey;
use crate::simulated::lock;
use ledger::Ledger;

pub const ENDPOINTS: [&str; 6] = ["account", "order", "order/test", "openOrders", "allOrders", "myTrades"];

/// Order times kept for the headers that count orders; the exchange allows so many per day.
const MAX_ORDER_TIMES: usize = 200_000;

#[derive(Debug)]
struct Account {
    secret: String,
    ledger: Ledger,
}

#[derive(Debug)]
pub struct Accounts {
    accounts: Mutex<HashMap<String, Account>>,
    order_times: Mutex<VecDeque<Millis>>,
}

impl Accounts {
    pub fn new(keys: &[ApiKey]) -> Self {
        let account = |key: &ApiKey| {
            let owned = |(asset, amount): &(String, String)| Some((asset.clone(), number::parse(amount)?));
            let account = Account {
                secret: key.secret.clone(),
                ledger: Ledger::with_balances(key.balances.iter().filter_map(owned)),
            };
            (key.key.clone(), account)
        };
        Self {
            accounts: Mutex::new(keys.iter().map(account).collect()),
            order_times: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders in the last ten seconds and in the last day.
    pub fn order_counts(&self, now: Millis) -> (usize, usize) {
        let times = self.order_times.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |start: Millis| times.len() - times.partition_point(|time| *time < start);
        (since(now - 10 * SECOND), since(now - DAY))
    }

    fn count_order(&self, now: Millis) {
        let mut times = self.order_times.lock().unwrap_or_else(PoisonError::into_inner);
        if times.len() == MAX_ORDER_TIMES {
            times.pop_front();
        }
        times.push_back(now);
    }

    pub fn dispatch(&self, markets: &Markets, request: &Request<'_>) -> Result<String, ApiError> {
        let key = request
            .key
            .filter(|key| !key.is_empty())
            .ok_or_else(|| ApiError::unauthorized(-2014, "API-key format invalid."))?;
        let mut accounts = self.lock();
        settle(markets, &mut accounts);
        let account = accounts
            .get_mut(key)
            .ok_or_else(|| ApiError::unauthorized(-2015, "Invalid API-key, IP, or permissions for action."))?;
        signature::check(request, &account.secret, markets.server_time())?;
        let ledger = &mut account.ledger;
        let answer = match (request.method, request.endpoint) {
            (&Method::GET, "account") => describe(ledger, request)?,
            (&Method::POST, "order") => {
                let placed = orders::place(markets, ledger, request)?;
                self.count_order(markets.now());
                placed
            }
            (&Method::POST, "order/test") => orders::test(markets, request)?,
            (&Method::GET, "order") => orders::find(ledger, request)?,
            (&Method::DELETE, "order") => orders::cancel(markets, ledger, request)?,
            (&Method::GET, "openOrders") => orders::open(markets, ledger, request)?,
            (&Method::DELETE, "openOrders") => orders::cancel_all(markets, ledger, request)?,
            (&Method::GET, "allOrders") => orders::all(markets, ledger, request)?,
            (&Method::GET, "myTrades") => orders::trades(markets, ledger, request)?,
            _ => return Err(ApiError::no_such_path()),
        };
        Ok(answer.to_string())
    }
}

/// Books the fills of resting orders since the last request.
fn settle(markets: &Markets, accounts: &mut HashMap<String, Account>) {
    if !accounts.values().any(|account| account.ledger.has_open_orders()) {
        return;
    }
    for instrument in markets.instruments.values() {
        let mut instrument = lock(instrument);
        let Some(engine) = &mut instrument.engine else {
            continue;
        };
        let executions = engine.take_watched_executions();
        let symbol = &instrument.market.symbol;
        for execution in &executions {
            for account in accounts.values_mut() {
                account.ledger.settle_maker(symbol, execution);
            }
        }
    }
}

fn describe(ledger: &Ledger, request: &Request<'_>) -> Result<Value, ApiError> {
    let omit_zero = request.params.get("omitZeroBalances") == Some("true");
    request.params.finish()?;
    Ok(json!({
        "makerCommission": 0,
        "takerCommission": 0,
        "buyerCommission": 0,
        "sellerCommission": 0,
        "commissionRates": {"maker": "0.00000000", "taker": "0.00000000", "buyer": "0.00000000", "seller": "0.00000000"},
        "canTrade": true,
        "canWithdraw": false,
        "canDeposit": false,
        "brokered": false,
        "requireSelfTradePrevention": false,
        "preventSor": false,
        "updateTime": ledger.updated,
        "accountType": "SPOT",
        "balances": ledger.balances_json(omit_zero),
        "permissions": ["SPOT"],
        "uid": 1
    }))
}
