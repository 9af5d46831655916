//! The account: checks orders, writes them to the journal, then sends them.

use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tribune_binance::{Endpoint, Method, Priority, Request, Rest, RestError, Signer, Stamped, Symbol};
use tribune_core::{CallContext, Clock, Error, ErrorKind, JsonObject, Principal, Result, ToolOutput};
use tribune_market_parts::exchange_error;

use super::answers::{self, Answer, OrderState, Restrictions};
use super::confirm::{self, WaitingOrder};
use super::entry::{Action, Entry, Event};
use super::estimate::Estimate;
use super::journal::Journal;
use super::order::{Order, OrderName};
use super::preview::{Previews, VALID_FOR};
use super::{CurrentBook, MAX_PRICE_AGE_MS, Market, Settings};
use tribune_binance::rest::answers::Decoded;
use tribune_binance::rest::error::seconds;

/// The exchange's code for an order it does not have.
const NO_SUCH_ORDER: i64 = -2013;
const JOURNAL_FAILED: &str = "the exchange executed it, but the journal could not be written";

pub(super) struct TradingAccount {
    rest: Rest,
    signer: Signer,
    market: Arc<dyn Market>,
    pub(super) settings: Settings,
    pub(super) previews: Previews,
    pub(super) journal: Journal,
}

/// An order that may be sent, with the rules, the book and the estimate behind that decision.
pub(super) struct CheckedOrder {
    pub(super) rules: Symbol,
    pub(super) book: CurrentBook,
    pub(super) estimate: Estimate,
}

pub(super) struct Change {
    pub(super) method: Method,
    pub(super) request: Request,
    pub(super) read: fn(&[u8]) -> Decoded<OrderState>,
    /// The line of the journal before it is sent.
    pub(super) intent: Entry,
}

/// What became of a change: the order as the exchange has it, and a note if the journal could not be written.
pub(super) type Changed = (Stamped<OrderState>, Option<&'static str>);

impl TradingAccount {
    pub(super) fn new(settings: Settings, signer: Signer, rest: Rest, market: Arc<dyn Market>) -> Result<Self> {
        let journal = Journal::open(&settings.journal, rest.clock().monotonic())?;
        for change in journal.history.unresolved() {
            tracing::warn!(%change, "the journal does not say what became of this; look with binance_get_order");
        }
        let valid_for = if settings.waiting.is_some() { confirm::VALID_FOR } else { VALID_FOR };
        let previews = Previews::new(Arc::clone(rest.clock()), valid_for);
        Ok(Self { previews, journal, rest, signer, market, settings })
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &**self.rest.clock()
    }

    /// A read-only request about the account.
    pub(super) async fn ask<T>(&self, request: Request, read: fn(&[u8]) -> Decoded<T>) -> Result<Stamped<T>> {
        // Reading must not use up the weight that is reserved for orders.
        let rest = self.rest.with_priority(Priority::Interactive);
        rest.signed(&self.signer, Method::GET, request, read).await.map_err(exchange_error)
    }

    pub(super) fn answer<T: Serialize>(&self, value: Stamped<T>, count: usize) -> Result<ToolOutput> {
        ToolOutput::structured(&Answer::new(value, self.clock()), count)
    }

    /// Looks an order up. If its outcome was unknown, the journal now records it.
    pub(super) async fn find(&self, symbol: &str, order: OrderName, cx: &CallContext) -> Result<Stamped<OrderState>> {
        let (parameter, value) = order.parameter();
        let request = Request::new(Endpoint::ORDER).symbol(symbol).map_err(exchange_error)?;
        let request = request.with(parameter, &value);
        let found = self.rest.signed(&self.signer, Method::GET, request, answers::order).await;
        let (event, names) = match &found {
            Ok(state) => (Event::Found, state.value.names().to_vec()),
            Err(error) if error.code() == Some(NO_SUCH_ORDER) => (Event::Absent, vec![order]),
            Err(_) => return found.map_err(exchange_error),
        };
        let doubtful = self.journal.history.doubtful(symbol, &names);
        let Some(change) = doubtful.filter(|change| event == Event::Found || change.is_open()) else {
            return found.map_err(exchange_error);
        };
        if event == Event::Absent
            && let Some(left) = change.may_arrive_for(self.clock().monotonic())
        {
            return Err(Error::unavailable(format!(
                "the exchange has no such order yet, but it was sent a moment ago and may still arrive; look again in {} s before trying again",
                seconds(left)
            )));
        }
        let mut entry = self.entry(Action::Find, change.line.order, json!({"symbol": symbol}), cx);
        entry.event = event;
        if let Ok(state) = &found {
            entry.note_answer(state);
        }
        self.record(&entry).await;
        found.map_err(exchange_error)
    }

    pub(super) fn entry(&self, action: Action, order: OrderName, request: Value, cx: &CallContext) -> Entry {
        Entry {
            time: self.clock().now(),
            event: Event::Intent,
            action,
            caller: caller(&cx.principal),
            correlation_id: cx.correlation_id.to_string(),
            order,
            request,
            notional: None,
            result: Value::Null,
            error: None,
            simulated: None,
        }
    }

    /// Writes what has happened; whether the journal has it.
    async fn record(&self, entry: &Entry) -> bool {
        let written = self.journal.record(entry).await;
        if let Err(error) = &written {
            tracing::error!(%error, action = ?entry.action, order = %entry.order, "an outcome is not in the journal");
        }
        self.journal.history.note(entry, self.clock().monotonic(), false);
        written.is_ok()
    }

    /// Lets the exchange check an order without placing it.
    pub(super) async fn test(&self, request: Request) -> Result<Stamped<JsonObject>> {
        self.rest.signed(&self.signer, Method::POST, request, answers::untimed).await.map_err(exchange_error)
    }

    /// Refuses orders while the operator's file is there, or if the key can withdraw. Returns a note for previews.
    pub(super) async fn check_permission(&self) -> Result<Option<&'static str>> {
        self.check_stop().await?;
        let request = Request::new(Endpoint::API_RESTRICTIONS);
        let restrictions = self.rest.signed(&self.signer, Method::GET, request, answers::untimed).await;
        match restrictions {
            Ok(Stamped { value: Restrictions { enable_withdrawals: true }, .. }) => refuse(
                ErrorKind::Forbidden,
                "this API key can withdraw; switch \"Enable Withdrawals\" off for it at the exchange, or use another key",
            ),
            Ok(_) => Ok(None),
            Err(RestError::Status { status: 404, .. }) => {
                tracing::warn!("the exchange does not say whether the API key can withdraw");
                Ok(Some("the exchange does not say whether this API key can withdraw: make sure that it cannot"))
            }
            Err(error) => Err(unsent(exchange_error(error))),
        }
    }

    /// An unreadable folder stops orders too.
    pub(super) async fn check_stop(&self) -> Result<()> {
        let file = &self.settings.stop_file;
        match tokio::fs::try_exists(file).await {
            Ok(false) => Ok(()),
            _ => refuse(
                ErrorKind::Forbidden,
                format_args!(
                    "the operator has stopped all orders with the file {}; cancelling still works",
                    file.display()
                ),
            ),
        }
    }

    /// Checks an order against our limits, the exchange's rules and current prices.
    pub(super) async fn check(&self, order: &Order) -> Result<CheckedOrder> {
        let (symbol, settings) = (&order.symbol, &self.settings);
        if let Some(allowed) = &settings.symbols
            && !allowed.contains(symbol)
        {
            let why = format!("{symbol} may not be traded here; allowed are {}", allowed.join(", "));
            return refuse(ErrorKind::Forbidden, why);
        }
        let Some(rules) = self.market.symbol(symbol).await.map_err(unsent)? else {
            return refuse(ErrorKind::NotFound, format_args!("the exchange has no symbol `{symbol}`"));
        };
        if !settings.quote_assets.iter().any(|asset| **asset == *rules.quote) {
            let why = format!(
                "{symbol} is quoted in {}, in which no cap is set; pairs quoted in {} can be traded",
                rules.quote,
                settings.quote_assets.join(", ")
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
        let cap = settings.limits.order_notional;
        if estimate.counted > cap {
            let (counted, quote) = (estimate.counted, &rules.quote);
            let why = format!("its value of about {counted} {quote} is above the limit for one order ({cap})");
            return refuse(ErrorKind::Forbidden, why);
        }
        self.journal.history.check(&settings.limits, self.clock().now(), estimate.counted)?;
        Ok(CheckedOrder { rules, book, estimate })
    }

    /// Whether a person has confirmed the order, where that is needed; if not, it waits.
    pub(super) async fn check_confirmed(&self, name: &str, order: &Order, cx: &CallContext) -> Result<()> {
        let Some(waiting) = self.settings.waiting.clone() else { return Ok(()) };
        let (client_order_id, caller) = (name.to_owned(), caller(&cx.principal));
        let wanted = WaitingOrder { client_order_id, caller, order: json!(order) };
        let confirmed = tokio::task::spawn_blocking(move || waiting.is_confirmed(&wanted)).await;
        match confirmed.map_err(std::io::Error::other).flatten() {
            Ok(true) => Ok(()),
            Ok(false) => refuse(
                ErrorKind::Forbidden,
                format_args!(
                    "a person must confirm it first, with the command `tribune orders confirm {name}` on the server; then call again with the same arguments and preview_token"
                ),
            ),
            Err(error) => Err(Error::internal("the order was not sent: it cannot wait for a person").caused_by(error)),
        }
    }

    /// Sends a change, whose intent the history has, in a task of its own, so that the journal gets the outcome even if
    /// the caller hangs up.
    pub(super) async fn send(self: &Arc<Self>, change: Change) -> Result<Changed> {
        let (account, mut intent) = (Arc::clone(self), change.intent.clone());
        let task = tokio::spawn(async move { account.send_once(change).await });
        task.await.unwrap_or_else(|error| {
            intent.event = Event::Unknown;
            self.journal.history.note(&intent, self.clock().monotonic(), false);
            Err(unknown(&intent, "this program failed").caused_by(error))
        })
    }

    async fn send_once(&self, change: Change) -> Result<Changed> {
        let Change { method, request, read, intent: mut entry } = change;
        if let Err(error) = self.journal.record(&entry).await {
            let message = format!("nothing was sent: {error}");
            (entry.event, entry.error) = (Event::Refused, Some(message.clone()));
            self.journal.history.note(&entry, self.clock().monotonic(), false);
            return Err(Error::internal(message).caused_by(error));
        }
        let outcome = self.rest.signed(&self.signer, method, request, read).await;
        entry.time = self.clock().now();
        let outcome = outcome.map_err(|error| explain(error, &entry));
        match &outcome {
            Ok(order) => {
                entry.event = Event::Done;
                entry.note_answer(order);
            }
            Err((event, why, _)) => (entry.event, entry.error) = (*event, Some(why.clone())),
        }
        let note = (!self.record(&entry).await).then_some(JOURNAL_FAILED);
        Ok((outcome.map_err(|(_, _, error)| error)?, note))
    }
}

/// For the journal, what happened; for the caller, also what to do next.
fn explain(error: RestError, sent: &Entry) -> (Event, String, Error) {
    if error.leaves_outcome_unknown() {
        let what = what_happened(&error);
        return (Event::Unknown, what.clone(), unknown(sent, &what));
    }
    // A refusal by the exchange is clear; for other errors, say that nothing was done.
    let is_plain = error.code().is_some() || matches!(error, RestError::NoTime(_));
    let message = format!("{}{error}", if is_plain { "" } else { "nothing was done: " });
    (Event::Refused, message.clone(), Error::new(exchange_error(error).kind(), message))
}

fn unknown(sent: &Entry, what: &str) -> Error {
    Error::unavailable(format!(
        "execution status unknown: look with binance_get_order before trying again (symbol {}, {}); {what}",
        sent.symbol(),
        sent.order,
    ))
}

fn refuse<T>(kind: ErrorKind, why: impl Display) -> Result<T> {
    Err(Error::new(kind, format!("the order was not sent: {why}")))
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

pub(super) fn caller(principal: &Principal) -> String {
    match principal {
        Principal::Local => "local".to_owned(),
        Principal::Anonymous => "anonymous".to_owned(),
        Principal::User(name) => format!("user {name}"),
    }
}
