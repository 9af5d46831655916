//! The account: checks orders, writes them to the journal, then sends them.

use std::sync::Arc;

use futures::FutureExt;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_binance::rest::Method;
use tribune_core::{CallContext, Clock, Error, ErrorKind, Principal, Result, ToolOutput};
use tribune_market_parts::exchange_error;

use super::answers::{self, Answer, Changed, OrderState, Sending};
use super::entry::{Action, Entry, Event};
use super::estimate::Estimate;
use super::journal::Journal;
use super::order::{Order, OrderName};
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
pub(super) const JOURNAL_FAILED: &str = "the exchange executed it, but the journal could not be written";

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
    pub(super) action: Action,
    pub(super) method: Method,
    pub(super) request: Request,
    pub(super) read: fn(&[u8]) -> Decoded<OrderState>,
    /// Which order to look for if the outcome stays unknown.
    pub(super) order: OrderName,
    /// For the journal; has the symbol.
    pub(super) described: Value,
}

impl TradingAccount {
    pub(super) fn new(settings: Settings, signer: Signer, rest: Rest, market: Arc<dyn Market>) -> Result<Self> {
        let journal = Journal::open(&settings.journal, rest.clock().monotonic())?;
        for pending in journal.unresolved.list() {
            let UnresolvedOrder { action, symbol, time, order, .. } = &pending;
            tracing::warn!(?action, symbol, %order, %time, "the journal does not say what became of an order; look with binance_get_order");
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
        rest.signed(&self.signer, Method::GET, request, read).await.map_err(exchange_error)
    }

    /// The answer of a tool.
    pub(super) fn answer<T: Serialize>(&self, value: Stamped<T>, count: usize) -> Result<ToolOutput> {
        ToolOutput::structured(&Answer::new(value, self.clock()), count)
    }

    /// Looks an order up. If its outcome was unknown, the journal now records it.
    pub(super) async fn find(&self, symbol: &str, order: OrderName, cx: &CallContext) -> Result<Stamped<OrderState>> {
        let (parameter, value) = order.parameter();
        let request = Request::new(Endpoint::Order).symbol(symbol).map_err(exchange_error)?;
        let request = request.with(parameter, &value);
        let found = self.rest.signed(&self.signer, Method::GET, request, answers::order).await;
        let outcome = match &found {
            Ok(state) => {
                let [client, number] = state.value.names();
                let is_lacking = self.journal.history.lacks(&state.value).then(|| client.clone());
                let closed = self.unresolved().close(symbol, &[client, number]);
                let mended = closed.map(|pending| pending.order).or(is_lacking);
                mended.map(|order| (Event::Found, order))
            }
            Err(error) if error.code() == Some(NO_SUCH_ORDER) => {
                let pending = self.unresolved().lookup(symbol, &order);
                if let Some(left) = pending.and_then(|pending| pending.may_arrive_for(self.clock().monotonic())) {
                    return Err(Error::unavailable(format!(
                        "the exchange has no such order yet, but it was sent a moment ago and may still arrive; look again in {} s before trying again",
                        seconds(left)
                    )));
                }
                let closed = self.unresolved().close(symbol, &[order]);
                closed.map(|pending| (Event::Absent, pending.order))
            }
            Err(_) => None,
        };
        if let Some((event, order)) = outcome {
            let mut entry = self.entry(event, Action::Find, order, json!({"symbol": symbol}), cx);
            if let Ok(state) = &found {
                entry.note_answer(state);
            }
            if let Err(error) = self.record(&entry).await {
                tracing::error!(%error, order = %entry.order, "what became of an order is not in the journal");
            }
        }
        found.map_err(exchange_error)
    }

    /// A line for the journal, without an outcome.
    fn entry(&self, event: Event, action: Action, order: OrderName, request: Value, cx: &CallContext) -> Entry {
        Entry {
            time: self.clock().now(),
            event,
            action,
            caller: caller(&cx.principal),
            correlation_id: cx.correlation_id.to_string(),
            order,
            request,
            result: Value::Null,
            error: None,
            simulated: None,
        }
    }

    async fn record(&self, entry: &Entry) -> Result<()> {
        self.journal.record(entry, self.clock().monotonic()).await
    }

    /// Lets the exchange check an order without placing it.
    pub(super) async fn test<T>(&self, request: Request, read: fn(&[u8]) -> Decoded<T>) -> Result<Stamped<T>> {
        self.rest.signed(&self.signer, Method::POST, request, read).await.map_err(exchange_error)
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

    /// Sends a change in a task of its own, so that the journal gets the outcome even if every caller hangs up.
    pub(super) fn start(self: &Arc<Self>, change: Change, cx: &CallContext) -> Sending {
        let (account, cx, order) = (Arc::clone(self), cx.clone(), change.order.clone());
        let task = tokio::spawn(async move { account.send(change, &cx).await });
        let settled = async move {
            let outcome = task.await.unwrap_or_else(|error| {
                let message =
                    format!("execution status unknown: look with binance_get_order before trying again ({order})");
                Err(Error::internal(message).caused_by(error))
            });
            outcome.map(Arc::new).map_err(Arc::new)
        };
        settled.boxed().shared()
    }

    async fn send(&self, change: Change, cx: &CallContext) -> Result<Changed> {
        let Change { action, method, request, read, order, described } = change;
        let mut entry = self.entry(Event::Intent, action, order, described, cx);
        let intent = self.record(&entry).await;
        intent.map_err(|error| Error::internal(format!("nothing was sent: {error}")).caused_by(error))?;
        let outcome = self.rest.signed(&self.signer, method, request, read).await;
        entry.time = self.clock().now();
        match &outcome {
            Ok(order) => {
                entry.event = Event::Done;
                entry.note_answer(order);
            }
            Err(error) if error.leaves_outcome_unknown() => {
                entry.event = Event::Unknown;
                entry.error = Some(what_happened(error));
            }
            Err(error) => {
                entry.event = Event::Refused;
                entry.error = Some(error.to_string());
            }
        }
        let recorded = self.record(&entry).await;
        if let Err(error) = &recorded {
            tracing::error!(%error, ?action, order = %entry.order, "an outcome is not in the journal");
        }
        Ok(Changed { order: outcome.map_err(|error| explain(error, &entry))?, journal_failed: recorded.is_err() })
    }
}

/// What happened, and what the caller should do next.
fn explain(error: RestError, sent: &Entry) -> Error {
    if !error.leaves_outcome_unknown() {
        // A refusal by the exchange is clear; for other errors, say that nothing was done.
        let is_plain = error.code().is_some() || matches!(error, RestError::NoTime(_));
        let prefix = if is_plain { "" } else { "nothing was done: " };
        let message = format!("{prefix}{error}");
        return Error::new(exchange_error(error).kind(), message);
    }
    Error::unavailable(format!(
        "execution status unknown: look with binance_get_order before trying again (symbol {}, {}); {}",
        sent.symbol(),
        sent.order,
        what_happened(&error)
    ))
}

/// An order that could not be checked was not sent.
fn unsent(error: Error) -> Error {
    let message = format!("the order was not sent: {}", error.message());
    Error::new(error.kind(), message).caused_by(error)
}

/// Without the advice to try again, which fits read-only requests only.
fn what_happened(error: &RestError) -> String {
    match error {
        RestError::Server { status } => format!("the exchange answered {status}"),
        RestError::Status { status, .. } => format!("the answer {status} did not come from the exchange"),
        RestError::Timeout | RestError::BrokenOff => "no complete answer arrived in time".to_owned(),
        RestError::Refused { code, .. } => format!("the exchange does not know the outcome either (code {code})"),
        _ => "the exchange's answer could not be read".to_owned(),
    }
}

/// Errors cannot be cloned.
pub(super) fn copy(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.message());
    match std::error::Error::source(error) {
        Some(cause) => copy.caused_by(cause.to_string()),
        None => copy,
    }
}

pub(super) fn caller(principal: &Principal) -> String {
    match principal {
        Principal::Local => "local".to_owned(),
        Principal::Anonymous => "anonymous".to_owned(),
        Principal::User(name) => format!("user {name}"),
    }
}
