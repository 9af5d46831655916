//! Sends orders: checked, capped, written down first.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tribune_core::{CallContext, Clock, Error, ErrorKind, Principal, Result};

use super::answers::{self, OrderState};
use super::estimate::Estimate;
use super::journal::{Entry, Event, Journal};
use super::order::Order;
use super::preview::Previews;
use super::questions::{OrderName, Question, Questions};
use super::{CurrentBook, MAX_PRICE_AGE_MS, Market, Settings};
use crate::model::Symbol;
use crate::moment::Stamped;
use crate::number::Notional;
use crate::rest::answers::Decoded;
use crate::rest::error::seconds;
use crate::rest::request::Request;
use crate::rest::{Endpoint, Rest, RestError, Signer};

/// The exchange's code for an order it does not have.
const NO_SUCH_ORDER: i64 = -2013;

pub(super) struct Desk {
    rest: Rest,
    signer: Signer,
    market: Arc<dyn Market>,
    pub(super) cap: Notional,
    quote_assets: Vec<String>,
    symbols: Option<Vec<String>>,
    pub(super) previews: Previews,
    pub(super) journal: Journal,
    pub(super) questions: Questions,
}

/// An order that may be sent, and what it was judged by.
pub(super) struct Judged {
    pub(super) rules: Symbol,
    pub(super) book: CurrentBook,
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
    pub(super) order: OrderName,
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
        let journal = Journal::open(&settings.journal)?;
        let questions = Questions::of(&settings.journal, rest.clock().monotonic());
        for question in questions.list() {
            let (action, symbol, time) = (&question.action, &question.symbol, question.time);
            tracing::warn!(action, symbol, order = %question.order, %time, "the journal does not say what became of an order; look with binance_get_order");
        }
        Ok(Self {
            previews: Previews::new(Arc::clone(rest.clock())),
            journal,
            questions,
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
        let rest = self.rest.for_reading();
        Ok(rest.signed(&self.signer, Method::GET, request, read).await?)
    }

    /// One order as the exchange has it. If its outcome was unknown it is now written down.
    pub(super) async fn find(&self, symbol: &str, order: OrderName, cx: &CallContext) -> Result<Stamped<OrderState>> {
        let (parameter, value) = order.parameter();
        let request = Request::new(Endpoint::Order).symbol(symbol)?.with(parameter, &value);
        let found = self
            .rest
            .signed(&self.signer, Method::GET, request, answers::order)
            .await;
        match &found {
            Ok(state) => {
                if let Some(question) = self.questions.close_found(&state.value) {
                    self.resolve(Event::Found, question, Some(state), cx).await;
                } else if let Some(name) = self.journal.past.is_mended_by(&state.value) {
                    self.write_down(Event::Found, name, symbol, Some(state), cx).await;
                }
            }
            Err(error) if error.code() == Some(NO_SUCH_ORDER) => {
                let question = self.questions.lookup(symbol, &order);
                if let Some(left) = question.and_then(|question| question.may_arrive_for(self.clock().monotonic())) {
                    return Err(Error::unavailable(format!(
                        "the exchange has no such order yet, but it was sent a moment ago and may still arrive; look again in {} s before trying again",
                        seconds(left)
                    )));
                }
                if let Some(question) = self.questions.close(symbol, &[order]) {
                    self.resolve(Event::Absent, question, None, cx).await;
                }
            }
            Err(_) => (),
        }
        Ok(found?)
    }

    async fn resolve(&self, event: Event, question: Question, found: Option<&Stamped<OrderState>>, cx: &CallContext) {
        self.write_down(event, question.order, &question.symbol, found, cx)
            .await;
    }

    /// What an order turned out to have become.
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
        change.action == "place_order" && self.journal.past.is_placed(&change.order)
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
        order.check(&rules, &estimate)?;
        if estimate.counted > self.cap {
            let why = format!(
                "it is worth about {} {}, more than one order may be worth here ({})",
                estimate.counted, rules.quote, self.cap
            );
            return refuse(ErrorKind::Forbidden, why);
        }
        Ok(Judged { rules, book, estimate })
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
        let mut question = Question {
            action: change.action.to_owned(),
            symbol: change.symbol.clone(),
            order: change.order.clone(),
            time: intended.time,
            given_up: None,
        };
        self.questions.ask(question.clone());
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
            // A cancellation that was done tells that the order was there, whatever it was called when it was placed.
            Ok(order) => {
                self.questions.close_found(&order.value);
                self.questions
                    .close(&change.symbol, std::slice::from_ref(&change.order));
            }
            // It was found while its answer was waited for.
            Err(error) if error.leaves_outcome_unknown() && self.was_found(&change) => (),
            Err(error) if error.leaves_outcome_unknown() => {
                question.given_up = Some(self.clock().monotonic());
                self.questions.give_up(question);
            }
            Err(_) => self.questions.withdraw(&question),
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

/// What a failed change leaves its caller to do.
fn explain(error: RestError, change: &Change) -> Error {
    if !error.leaves_outcome_unknown() {
        // A refusal of the exchange's own says enough; of anything else a caller could think that it was done.
        let is_plain = error.code().is_some() || matches!(error, RestError::NoTime(_));
        let prefix = if is_plain { "" } else { "nothing was done: " };
        return Error::new(error.kind(), format!("{prefix}{error}"));
    }
    let message = format!(
        "execution status unknown: look with binance_get_order before trying again (symbol {}, {}); {}",
        change.symbol,
        change.order,
        what_happened(&error)
    );
    Error::new(ErrorKind::Unavailable, message)
}

/// What kept an order from being judged kept it from being sent.
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

/// Without the advice to try again, which is good for questions only.
fn what_happened(error: &RestError) -> String {
    match error {
        RestError::Server { status } | RestError::Status { status, .. } => format!("the exchange answered {status}"),
        RestError::Page { status, .. } => format!("the answer {status} was not in the exchange's own words"),
        RestError::Network(_) => "no whole answer came from the exchange in time".to_owned(),
        RestError::Refused { code, .. } => format!("the exchange does not know itself (code {code})"),
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
