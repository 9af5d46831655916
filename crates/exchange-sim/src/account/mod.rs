//! Signed endpoints: an account for each configured key, whose orders go through the simulated books.

mod draft;
mod ledger;
mod orders;
mod signature;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::Method;
use serde_json::{Value, json};

use crate::interval::{DAY, Millis, SECOND};
use crate::number;
use crate::rest::error::ApiError;
use crate::rest::{Request, no_such_path};
use crate::settings::ApiKey;
use crate::venue::{Venue, lock};
use ledger::Ledger;

pub const ENDPOINTS: [&str; 6] = ["account", "order", "order/test", "openOrders", "allOrders", "myTrades"];

/// Orders whose times are remembered for the headers that count them.
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
                ledger: Ledger::owning(key.balances.iter().filter_map(owned)),
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

    /// Orders of the last ten seconds and of the last day.
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
}

pub fn answer(venue: &Venue, request: &Request<'_>) -> Result<String, ApiError> {
    let key = request
        .key
        .filter(|key| !key.is_empty())
        .ok_or_else(|| ApiError::unauthorized(-2014, "API-key format invalid."))?;
    let mut accounts = venue.accounts.lock();
    settle(venue, &mut accounts);
    let account = accounts
        .get_mut(key)
        .ok_or_else(|| ApiError::unauthorized(-2015, "Invalid API-key, IP, or permissions for action."))?;
    signature::check(request, &account.secret, venue.told_time())?;
    let ledger = &mut account.ledger;
    let answer = match (request.method, request.endpoint) {
        (&Method::GET, "account") => describe(ledger, request)?,
        (&Method::POST, "order") => orders::place(venue, ledger, request)?,
        (&Method::POST, "order/test") => orders::test(venue, request)?,
        (&Method::GET, "order") => orders::find(ledger, request)?,
        (&Method::DELETE, "order") => orders::cancel(venue, ledger, request)?,
        (&Method::GET, "openOrders") => orders::open(venue, ledger, request)?,
        (&Method::DELETE, "openOrders") => orders::cancel_all(venue, ledger, request)?,
        (&Method::GET, "allOrders") => orders::all(venue, ledger, request)?,
        (&Method::GET, "myTrades") => orders::trades(venue, ledger, request)?,
        _ => return Err(no_such_path()),
    };
    Ok(answer.to_string())
}

/// Takes in what happened to resting orders since somebody last looked.
fn settle(venue: &Venue, accounts: &mut HashMap<String, Account>) {
    let watching = accounts.values().any(|account| account.ledger.has_open_orders());
    if !watching {
        return;
    }
    for (name, listed) in &venue.listed {
        let mut listed = lock(listed);
        let Some(engine) = &mut listed.engine else {
            continue;
        };
        let executions = engine.take_watched_executions();
        let symbol = &listed.market.symbol;
        for execution in &executions {
            for account in accounts.values_mut() {
                account.ledger.settle_maker(name, symbol, execution);
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
