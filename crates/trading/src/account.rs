//! The account: checks orders, writes them to the journal, then sends them.

use std::sync::Arc;

use serde_json::{Value, json};
use tribune_binance::rest::Method;
use tribune_core::{CallContext, Clock, Error, ErrorKind, Principal, Result};
use tribune_market_parts::exchange_error;

use super::answers::{self, Changed, OrderState};
use super::entry::{Entry, Event, OrderName};
use super::estimate::Estimate;
use super::journal::Journal;
use super::order::Order;
use super::preview::Previews;
use super::unresolved::{UnresolvedOrder, UnresolvedOrders};
use super::{CurrentBook, MAX_PRICE_AGE_MS, Market, Settings};
use tribune_binance::model::Symbol;
use tribune_binance::moment::Stamped;
use tribune_binance::number::Notional;
use tribune_binance::rest::answers::Decoded;
use tribune_binance::rest::error::seconds;
use tribune_binance::rest::request::Request;
use tribune_binance::rest::{Endpoint, Rest, RestError, Signer};

/// The exchange's code for an order it does not have.
const NO_SUCH_ORDER: i64 = -2013;

pub(super) struct TradingAccount {
    rest: Rest,
    signer: Signer,
    market: Arc<dyn Market>,
    pub(super) cap: Notional,
    quote_assets: Vec<String>,
    symbols: Option<Vec<String>>,
    pub(super) previews: Previews,
    pub(super) journal: Journal,
}

/// An order that may be sent, with the rules, the book and the estimate behind that decision.
pub(super) struct CheckedOrder {
    pub(super) rules: Symbol,
    pub(super) book: CurrentBook,
    pub(super) estimate: Estimate,
}

/// A signed request that changes the account.
pub(super) struct Change {
    pub(super) action: &'static str,
    pub(super) method: Method,
    pub(super) request: Request,
    pub(super) read: fn(&[u8]) -> Decoded<OrderState>,
    pub(super) symbol: String,
    /// Which order to look for if the outcome stays unknown.
    pub(super) order: OrderName,
    /// For the journal.
    pub(super) described: Value,
}

impl TradingAccount {
    pub(super) fn new(settings: Settings, signer: Signer, rest: Rest, market: Arc<dyn Market>) -> Result<Self> {
        let journal = Journal::open(&settings.journal, rest.clock().monotonic())?;
        for pending in journal.unresolved.list() {
            let (action, symbol, time) = (&pending.action, &pending.symbol, pending.time);
            tracing::warn!(action, symbol, order = %pending.order, %time, "the journal does not say what became of an order; look with binance_get_order");
        }
        Ok(Self {
            previews: Previews::new(Arc::clone(rest.clock())),
            journal,
            rest,
            signer,
            market,
            cap: settings.max_order_notional,
            quote_assets: settings.quote_assets,
            symbols: settings.symbols,
        })
    }

    pub(super) const fn unresolved(&self) -> &UnresolvedOrders {
        &self.journal.unresolved
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &**self.rest.clock()
    }

    /// A read-only request about the account.
    pub(super) async fn ask<T>(&self, request: Request, read: fn(&[u8]) -> Decoded<T>) -> Result<Stamped<T>> {
        let rest = self.rest.for_reading();
        rest.signed(&self.signer, Method::GET, request, read)
            .await
            .map_err(exchange_error)
    }

    /// Looks an order up. If its outcome was unknown, the journal now records it.
    pub(super) async fn find(&self, symbol: &str, order: OrderName, cx: &CallContext) -> Result<Stamped<OrderState>> {
        let (parameter, value) = order.parameter();
        let request = Request::new(Endpoint::Order).symbol(symbol).map_err(exchange_error)?;
        let request = request.with(parameter, &value);
        let found = self
            .rest
            .signed(&self.signer, Method::GET, request, answers::order)
            .await;
        match &found {
            Ok(state) => {
                if let Some(pending) = self.unresolved().close_found(&state.value) {
                    self.resolve(Event::Found, pending, Some(state), cx).await;
                } else if let Some(name) = self.journal.history.is_mended_by(&state.value) {
                    self.write_down(Event::Found, name, symbol, Some(state), cx).await;
                }
            }
            Err(error) if error.code() == Some(NO_SUCH_ORDER) => {
                let pending = self.unresolved().lookup(symbol, &order);
                if let Some(left) = pending.and_then(|pending| pending.may_arrive_for(self.clock().monotonic())) {
                    return Err(Error::unavailable(format!(
                        "the exchange has no such order yet, but it was sent a moment ago and may still arrive; look again in {} s before trying again",
                        seconds(left)
                    )));
                }
                if let Some(pending) = self.unresolved().close(symbol, &[order]) {
                    self.resolve(Event::Absent, pending, None, cx).await;
                }
            }
            Err(_) => (),
        }
        found.map_err(exchange_error)
    }

    async fn resolve(
        &self,
        event: Event,
        pending: UnresolvedOrder,
        found: Option<&Stamped<OrderState>>,
        cx: &CallContext,
    ) {
        self.write_down(event, pending.order, &pending.symbol, found, cx).await;
    }

    /// Records the outcome of an order that was looked up.
    async fn write_down(
        &self,
        event: Event,
        order: OrderName,
        symbol: &str,
        found: Option<&Stamped<OrderState>>,
        cx: &CallContext,
    ) {
        let entry = Entry {
            time: self.clock().now(),
            event,
            action: "get_order",
            caller: caller(&cx.principal),
            correlation_id: Arc::clone(&cx.correlation_id),
            order,
            request: json!({"symbol": symbol}),
            result: found.and_then(|found| serde_json::to_value(&found.value).ok()),
            error: None,
            simulated: found.map(|found| found.simulated),
        };
        if let Err(error) = self.journal.record(&entry).await {
            tracing::error!(%error, order = %entry.order, "what became of an order is not in the journal");
        }
    }

    fn was_found(&self, change: &Change) -> bool {
        change.action == "place_order" && self.journal.history.is_placed(&change.order)
    }

    /// Lets the exchange check an order without placing it.
    pub(super) async fn test<T>(&self, request: Request, read: fn(&[u8]) -> Decoded<T>) -> Result<Stamped<T>> {
        self.rest
            .signed(&self.signer, Method::POST, request, read)
            .await
            .map_err(exchange_error)
    }

    /// Checks an order against our limits, the exchange's rules and current prices.
    pub(super) async fn check(&self, order: &Order) -> Result<CheckedOrder> {
        let refuse = |kind, why: String| Err(Error::new(kind, format!("the order was not sent: {why}")));
        let symbol = &order.symbol;
        if let Some(allowed) = &self.symbols
            && !allowed.contains(symbol)
        {
            let why = format!("{symbol} may not be traded here; allowed are {}", allowed.join(", "));
            return refuse(ErrorKind::Forbidden, why);
        }
        let Some(rules) = self.market.symbol(symbol).await.map_err(unsent)? else {
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
        let book = self.market.book(symbol).await.map_err(unsent)?;
        if book.age_ms > MAX_PRICE_AGE_MS {
            let why = format!("the last known prices are {} s old; try again", book.age_ms / 1000);
            return refuse(ErrorKind::Unavailable, why);
        }
        let estimate = order.estimate(&book.depth)?;
        order.check(&rules, estimate.notional)?;
        if estimate.counted > self.cap {
            let why = format!(
                "its value of about {} {} is above the limit for one order ({})",
                estimate.counted, rules.quote, self.cap
            );
            return refuse(ErrorKind::Forbidden, why);
        }
        Ok(CheckedOrder { rules, book, estimate })
    }

    /// Runs in its own task, so that the journal gets the outcome even if the caller hangs up.
    pub(super) async fn change(self: &Arc<Self>, change: Change, cx: &CallContext) -> Result<Changed> {
        let (account, caller, correlation_id) = (Arc::clone(self), caller(&cx.principal), cx.correlation_id.clone());
        let sending = tokio::spawn(async move { account.send(change, caller, correlation_id).await });
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
            order: change.order.clone(),
            request: change.described.clone(),
            result: outcome
                .and_then(|outcome| outcome.as_ref().ok())
                .and_then(|order| serde_json::to_value(&order.value).ok()),
            error: outcome.and_then(|outcome| outcome.as_ref().err()).map(reason),
            simulated: outcome
                .and_then(|outcome| outcome.as_ref().ok())
                .map(|order| order.simulated),
        };
        let intended = entry(Event::Intent, None);
        let intent = self.journal.record(&intended).await;
        intent.map_err(|error| Error::internal(format!("nothing was sent: {error}")).caused_by(error))?;
        let mut pending = UnresolvedOrder {
            action: change.action.to_owned(),
            symbol: change.symbol.clone(),
            order: change.order.clone(),
            time: intended.time,
            given_up: None,
        };
        self.unresolved().add(pending.clone());
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
        match &outcome {
            // A successful cancellation proves that the order existed, under either of its names.
            Ok(order) => {
                self.unresolved().close_found(&order.value);
                self.unresolved()
                    .close(&change.symbol, std::slice::from_ref(&change.order));
            }
            // It was found by a lookup while we waited for the answer.
            Err(error) if error.leaves_outcome_unknown() && self.was_found(&change) => (),
            Err(error) if error.leaves_outcome_unknown() => {
                pending.given_up = Some(self.clock().monotonic());
                self.unresolved().give_up(pending);
            }
            Err(_) => self.unresolved().remove(&pending),
        }
        let recorded = self.journal.record(&entry(event, Some(&outcome))).await;
        if let Err(error) = &recorded {
            tracing::error!(%error, action = change.action, order = %change.order, "an outcome is not in the journal");
        }
        let order = outcome.map_err(|error| explain(error, &change))?;
        Ok(Changed {
            order,
            journal_failed: recorded.is_err(),
        })
    }
}

/// What happened, and what the caller should do next.
fn explain(error: RestError, change: &Change) -> Error {
    if !error.leaves_outcome_unknown() {
        // A refusal by the exchange is clear; for other errors, say that nothing was done.
        let is_plain = error.code().is_some() || matches!(error, RestError::NoTime(_));
        let prefix = if is_plain { "" } else { "nothing was done: " };
        let message = format!("{prefix}{error}");
        return Error::new(exchange_error(error).kind(), message);
    }
    let message = format!(
        "execution status unknown: look with binance_get_order before trying again (symbol {}, {}); {}",
        change.symbol,
        change.order,
        what_happened(&error)
    );
    Error::new(ErrorKind::Unavailable, message)
}

/// An order that could not be checked was not sent.
fn unsent(error: Error) -> Error {
    let message = format!("the order was not sent: {}", error.message());
    Error::new(error.kind(), message).caused_by(error)
}

/// For the journal.
fn reason(error: &RestError) -> String {
    match error.leaves_outcome_unknown() {
        true => what_happened(error),
        false => error.to_string(),
    }
}

/// Without the advice to try again, which fits read-only requests only.
fn what_happened(error: &RestError) -> String {
    match error {
        RestError::Server { status } | RestError::Status { status, .. } => format!("the exchange answered {status}"),
        RestError::Page { status, .. } => format!("the answer {status} did not come from the exchange"),
        RestError::Network(_) => "no complete answer arrived in time".to_owned(),
        RestError::Refused { code, .. } => format!("the exchange does not know the outcome either (code {code})"),
        _ => "the exchange's answer could not be read".to_owned(),
    }
}

pub(super) fn caller(principal: &Principal) -> String {
    match principal {
        Principal::Local => "local".to_owned(),
        Principal::Anonymous => "anonymous".to_owned(),
        Principal::User(name) => format!("user {name}"),
    }
}
