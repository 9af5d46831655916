//! Signed endpoints: one account for each API key, whose orders go to the simulated books.

mod ledger;
mod order_request;
mod orders;
mod signature;

use std::collections::HashMap;

use axum::http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::api::Request;
use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::markets::Markets;
use crate::number;
use crate::settings::ApiKey;
use ledger::Ledger;

const ENDPOINTS: [&str; 7] =
    ["account", "order", "order/test", "openOrders", "allOrders", "myTrades", "apiRestrictions"];
/// A key that begins so may withdraw, for tests of clients that refuse it.
const WITHDRAWS: &str = "withdraw";

#[derive(Debug)]
struct Account {
    secret: String,
    ledger: Ledger,
}

#[derive(Debug)]
pub struct Accounts(Mutex<HashMap<String, Account>>);

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
        Self(Mutex::new(keys.iter().map(account).collect()))
    }

    pub fn dispatch(&self, markets: &Markets, request: &Request<'_>) -> Result<Value, ApiError> {
        if !ENDPOINTS.contains(&request.endpoint) {
            return Err(ApiError::no_such_path());
        }
        let key = request
            .key
            .filter(|key| !key.is_empty())
            .ok_or_else(|| ApiError::unauthorized(-2014, "API-key format invalid."))?;
        let mut accounts = self.0.lock();
        let account = accounts
            .get_mut(key)
            .ok_or_else(|| ApiError::unauthorized(-2015, "Invalid API-key, IP, or permissions for action."))?;
        signature::check(request, &account.secret, markets.server_time())?;
        let (ledger, params) = (&mut account.ledger, &request.params);
        orders::settle(markets, ledger);
        match (request.method, request.endpoint) {
            (&Method::GET, "account") => describe(ledger, params),
            (&Method::GET, "apiRestrictions") => restrictions(key, params),
            (&Method::POST, "order") => orders::place(markets, ledger, params),
            (&Method::POST, "order/test") => orders::test(markets, params),
            (&Method::GET, "order") => orders::find(ledger, params),
            (&Method::DELETE, "order") => orders::cancel(markets, ledger, params),
            (&Method::GET, "openOrders") => orders::open(markets, ledger, params),
            (&Method::GET, "allOrders") => orders::all(markets, ledger, params),
            (&Method::GET, "myTrades") => orders::trades(markets, ledger, params),
            _ => Err(ApiError::no_such_path()),
        }
    }
}

/// What the key may do.
fn restrictions(key: &str, params: &Params) -> Result<Value, ApiError> {
    params.finish()?;
    Ok(json!({
        "ipRestrict": false,
        "createTime": 1_600_000_000_000i64,
        "enableReading": true,
        "enableSpotAndMarginTrading": true,
        "enableWithdrawals": key.starts_with(WITHDRAWS)
    }))
}

fn describe(ledger: &Ledger, params: &Params) -> Result<Value, ApiError> {
    let omit_zero = params.get("omitZeroBalances") == Some("true");
    params.finish()?;
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
