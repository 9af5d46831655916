//! Sends orders: checked, capped, written down first.

use std::sync::Arc;

use reqwest::Method;
use serde_json::Value;
use tribune_core::{CallContext, Clock, Error, ErrorKind, Principal, Result};

use super::answers::OrderState;
use super::journal::{Entry, Event, Journal};
use super::order::{Estimate, Order};
use super::preview::Previews;
use super::{BestPrices, Market, Settings};
use crate::model::Symbol;
use crate::moment::Stamped;
use crate::number::Notional;
use crate::rest::answers::Decoded;
use crate::rest::request::Request;
use crate::rest::{Rest, RestError, Signer};

/// Prices older than this are nothing to reckon an order by.
const MAX_PRICE_AGE_MS: u64 = 10_000;

pub(super) struct Desk {
    rest: Rest,
    signer: Signer,
    market: Arc<dyn Market>,
    pub(super) cap: Notional,
    quote_assets: Vec<String>,
    symbols: Option<Vec<String>>,
    pub(super) previews: Previews,
    journal: Journal,
}

/// An order that may be sent, and what it was judged by.
pub(super) struct Judged {
    pub(super) rules: Symbol,
    pub(super) best: BestPrices,
    pub(super) estimate: Estimate,
}

/// One change of the account, on its way to the exchange.
pub(super) struct Change {
    pub(super) action: &'static str,
    pub(super) method: Method,
    pub(super) request: Request,
    pub(super) read: fn(&[u8]) -> Decoded<OrderState>,
    pub(super) symbol: String,
    /// Which order to look for if the outcome stays unknown.
    pub(super) client_order_id: String,
    /// For the journal.
    pub(super) described: Value,
}

/// What became of a change.
pub(super) struct Changed {
    pub(super) order: Stamped<OrderState>,
    /// The exchange took it, but the journal could not be told.
    pub(super) journal_failed: bool,
}

impl Desk {
    pub(super) fn new(settings: Settings, signer: Signer, rest: Rest, market: Arc<dyn Market>) -> Result<Self> {
        Ok(Self {
            previews: Previews::new(Arc::clone(rest.clock())),
            journal: Journal::open(&settings.journal)?,
            rest,
            signer,
            market,
            cap: settings.max_order_notional,
            quote_assets: settings.quote_assets,
            symbols: settings.symbols,
        })
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &**self.rest.clock()
    }

    /// Asks about the account; nothing changes by it.
    pub(super) async fn ask<T>(&self, request: Request, read: fn(&[u8]) -> Decoded<T>) -> Result<Stamped<T>> {
        Ok(self.rest.signed(&self.signer, Method::GET, request, read).await?)
    }

    /// Lets the exchange check an order without placing it.
    pub(super) async fn test<T>(&self, request: Request, read: fn(&[u8]) -> Decoded<T>) -> Result<Stamped<T>> {
        Ok(self.rest.signed(&self.signer, Method::POST, request, read).await?)
    }

    /// Against our own limits, the exchange's rules and the prices of the moment.
    pub(super) async fn judge(&self, order: &Order) -> Result<Judged> {
        let refuse = |kind, why: String| Err(Error::new(kind, format!("the order was not sent: {why}")));
        let symbol = &order.symbol;
        if let Some(allowed) = &self.symbols
            && !allowed.contains(symbol)
        {
            let why = format!("{symbol} may not be traded here; allowed are {}", allowed.join(", "));
            return refuse(ErrorKind::Forbidden, why);
        }
        let Some(rules) = self.market.symbol(symbol).await? else {
            return refuse(ErrorKind::NotFound, format!("the exchange has no symbol `{symbol}`"));
        };
        if !self.quote_assets.iter().any(|asset| **asset == *rules.quote) {
            let why = format!(
                "{symbol} is quoted in {}, in which no cap is set; pairs quoted in {} can be traded",
                rules.quote,
                self.quote_assets.join(", ")
            );
            return refuse(ErrorKind::Forbidden, why);
        }
        let best = self.market.best_prices(symbol).await?;
        if best.age_ms > MAX_PRICE_AGE_MS {
            let why = format!("the last known prices are {} s old; try again", best.age_ms / 1000);
            return refuse(ErrorKind::Unavailable, why);
        }
        let estimate = order.estimate(&best)?;
        order.check(&rules, &estimate)?;
        if estimate.notional > self.cap {
            let why = format!(
                "it is worth about {} {}, more than one order may be worth here ({})",
                estimate.notional, rules.quote, self.cap
            );
            return refuse(ErrorKind::Forbidden, why);
        }
        Ok(Judged { rules, best, estimate })
    }

    /// On a task of its own: a caller who goes away must not leave the journal without the end.
    pub(super) async fn change(self: &Arc<Self>, change: Change, cx: &CallContext) -> Result<Changed> {
        let (desk, caller, correlation_id) = (Arc::clone(self), caller(&cx.principal), cx.correlation_id.clone());
        let sending = tokio::spawn(async move { desk.send(change, caller, correlation_id).await });
        sending.await.unwrap_or_else(|error| {
            Err(
                Error::internal("execution status unknown: look with binance_get_order before trying again")
                    .caused_by(error),
            )
        })
    }

    async fn send(&self, change: Change, caller: String, correlation_id: Arc<str>) -> Result<Changed> {
        let entry = |event, outcome: Option<&Result<Stamped<OrderState>, RestError>>| Entry {
            time: self.clock().now(),
            event,
            action: change.action,
            caller: caller.clone(),
            correlation_id: Arc::clone(&correlation_id),
            client_order_id: change.client_order_id.clone(),
            request: change.described.clone(),
            result: outcome
                .and_then(|outcome| outcome.as_ref().ok())
                .and_then(|order| serde_json::to_value(&order.value).ok()),
            error: outcome
                .and_then(|outcome| outcome.as_ref().err())
                .map(RestError::to_string),
            simulated: outcome
                .and_then(|outcome| outcome.as_ref().ok())
                .map(|order| order.simulated),
        };
        let intent = self.journal.record(&entry(Event::Intent, None)).await;
        intent.map_err(|error| Error::internal(format!("nothing was sent: {error}")).caused_by(error))?;
        let request = change.request.clone();
        let outcome = self
            .rest
            .signed(&self.signer, change.method.clone(), request, change.read)
            .await;
        let event = match &outcome {
            Ok(_) => Event::Done,
            Err(error) if error.leaves_outcome_unknown() => Event::Unknown,
            Err(_) => Event::Refused,
        };
        let recorded = self.journal.record(&entry(event, Some(&outcome))).await;
        if let Err(error) = &recorded {
            tracing::error!(%error, action = change.action, order = change.client_order_id, "an outcome is not in the journal");
        }
        let order = outcome.map_err(|error| explain(error, &change))?;
        Ok(Changed {
            order,
            journal_failed: recorded.is_err(),
        })
    }
}

/// What a failed change leaves its caller to do.
fn explain(error: RestError, change: &Change) -> Error {
    if !error.leaves_outcome_unknown() {
        return error.into();
    }
    let message = format!(
        "execution status unknown: look with binance_get_order before trying again (symbol {}, client_order_id {}); {}",
        change.symbol,
        change.client_order_id,
        what_happened(&error)
    );
    Error::new(ErrorKind::Unavailable, message)
}

/// Without the advice to try again, which is good for questions only.
fn what_happened(error: &RestError) -> String {
    match error {
        RestError::Server { status } | RestError::Status { status, .. } => format!("the exchange answered {status}"),
        RestError::Network(_) => "no whole answer came from the exchange in time".to_owned(),
        RestError::Refused { code, .. } => format!("the exchange does not know itself (code {code})"),
        _ => "the exchange's answer could not be read".to_owned(),
    }
}

fn caller(principal: &Principal) -> String {
    match principal {
        Principal::Local => "local".to_owned(),
        Principal::Anonymous => "anonymous".to_owned(),
        Principal::User(name) => format!("user {name}"),
    }
}
