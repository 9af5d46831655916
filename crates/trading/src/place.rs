//! `binance_place_order`: first a preview, then, with its token, the order.

use std::sync::Arc;

use async_trait::async_trait;
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_binance::rest::Method;
use tribune_core::{CallContext, Error, JsonObject, Principal, Result, Tool, ToolOutput, ToolSpec};

use super::account::{Change, CheckedOrder, TradingAccount, caller};
use super::answers::{self, Changed, OrderState, Times};
use super::entry::OrderName;
use super::history::{Outcome, Placement};
use super::order::{Described, Order};
use super::preview::{Claim, Placing, Redeemed, Settled, VALID_FOR};
use super::spec::{self, CHANGE, Draft};
use super::unresolved::UnresolvedOrder;
use tribune_binance::number::{Notional, Price};
use tribune_binance::rest::Endpoint;
use tribune_binance::rest::request::Request;

pub(super) struct PlaceOrder {
    spec: ToolSpec,
    account: Arc<TradingAccount>,
}

#[derive(Serialize)]
struct Preview<'a> {
    status: &'static str,
    preview_token: String,
    expires_in_secs: u64,
    order: Described<'a>,
    client_order_id: String,
    estimate: EstimateAnswer,
    max_order_notional: Notional,
    next_step: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unresolved: Vec<UnresolvedOrder>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recent_orders: Vec<Placement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(flatten)]
    times: Times,
}

#[derive(Serialize)]
struct EstimateAnswer {
    notional: Notional,
    quote_asset: String,
    price: Option<Decimal>,
    worst_price: Option<Price>,
    basis: &'static str,
    best_bid: Option<Price>,
    best_ask: Option<Price>,
    trades_at_once: bool,
    price_age_ms: u64,
    fees_included: bool,
}

#[derive(Serialize)]
struct Placed<'a> {
    status: &'static str,
    order: &'a OrderState,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(flatten)]
    times: Times,
}

const NOT_TWICE: &str =
    "this is the order that an earlier call with this preview_token placed; nothing was placed again";
pub(super) const JOURNAL_FAILED: &str = "the exchange executed it, but the journal could not be written";

impl PlaceOrder {
    pub(super) fn new(account: &Arc<TradingAccount>) -> Self {
        Self {
            spec: draft(account.cap).spec(),
            account: Arc::clone(account),
        }
    }

    async fn preview(&self, order: &Order, cx: &CallContext) -> Result<ToolOutput> {
        let checked = self.account.check(order).await?;
        let request = order.write(Request::new(Endpoint::OrderTest))?;
        let tested = self.account.test(request, answers::tested).await?;
        let ticket = self.account.previews.issue(order, &cx.principal)?;
        let history = &self.account.journal.history;
        let answer = Preview {
            status: "preview",
            preview_token: ticket.token,
            expires_in_secs: VALID_FOR.as_secs(),
            order: order.describe(),
            client_order_id: ticket.client_order_id,
            estimate: estimate(order, &checked),
            max_order_notional: self.account.cap,
            next_step: "nothing was placed; show this to the person, and only if they agree call again with the same arguments and this preview_token",
            unresolved: self.account.unresolved().list(),
            recent_orders: history.recent(self.account.clock().now()),
            note: history.gap().map(|gap| {
                format!("{gap}; earlier orders may be missing here: look with binance_get_open_orders and binance_get_all_orders")
            }),
            times: Times::new(&tested, self.account.clock()),
        };
        ToolOutput::structured(&answer, 1)
    }

    /// Idempotent: the same token and order are placed once.
    async fn place(&self, order: &Order, token: &str, cx: &CallContext) -> Result<ToolOutput> {
        loop {
            match self.account.previews.redeem(token, order, &cx.principal)? {
                Redeemed::First(claim) => {
                    // Prices and the symbol's state may have changed since.
                    self.account.check(order).await?;
                    return self.first_answer(self.send(order, claim, cx)?).await;
                }
                Redeemed::Again(placing) => {
                    let name = placing.client_order_id.clone();
                    if let Some(settled) = placing.settled().await {
                        return self.later_answer(&name, settled);
                    }
                    // The first caller gave up before anything was sent: this one tries.
                }
                Redeemed::ForAnother(placing) => {
                    let name = placing.client_order_id.clone();
                    if placing.settled().await.is_some() {
                        return Err(self.unknown_token(&name, &cx.principal));
                    }
                }
                Redeemed::Unknown(name) => return Err(self.unknown_token(&name, &cx.principal)),
            }
        }
    }

    /// Runs in its own task: other callers may wait for the outcome after this one has gone.
    fn send(&self, order: &Order, claim: Claim, cx: &CallContext) -> Result<Placing> {
        let change = Self::change(order, &claim.client_order_id)?;
        let placing = claim.begin();
        let (account, cx) = (Arc::clone(&self.account), cx.clone());
        tokio::spawn(async move { claim.settle(account.change(change, &cx).await) });
        Ok(placing)
    }

    fn change(order: &Order, client_order_id: &str) -> Result<Change> {
        let request = order
            .write(Request::new(Endpoint::Order))?
            .with("newClientOrderId", client_order_id)
            .with("newOrderRespType", "RESULT");
        let described = serde_json::to_value(order.describe())
            .map_err(|error| Error::internal("the order could not be serialised").caused_by(error))?;
        Ok(Change {
            action: "place_order",
            method: Method::POST,
            request,
            read: answers::placed,
            symbol: order.symbol.clone(),
            order: OrderName::Client(client_order_id.to_owned()),
            described,
        })
    }

    async fn first_answer(&self, placing: Placing) -> Result<ToolOutput> {
        match placing.settled().await {
            Some(Ok(changed)) => self.placed(&changed, None),
            Some(Err(error)) => Err(copy(&error)),
            None => Err(Error::internal("the order was not sent because of an internal error")),
        }
    }

    fn later_answer(&self, name: &str, settled: Settled) -> Result<ToolOutput> {
        let error = match settled {
            Ok(changed) => return self.placed(&changed, Some(NOT_TWICE.to_owned())),
            Err(error) => error,
        };
        // A lookup may have found it since.
        let placement = self.account.journal.history.lookup(name);
        if let Some(placement) = &placement
            && matches!(placement.outcome, Outcome::Placed | Outcome::Absent)
        {
            return Err(Error::invalid_argument(placement.explain()));
        }
        let next = match placement.map(|placement| placement.outcome) {
            None | Some(Outcome::Refused) => "; call again without preview_token for a new preview",
            Some(_) => "",
        };
        let message = format!(
            "{}; this was the outcome of the first call with this preview_token (client_order_id {name}), and nothing was sent again{next}",
            error.message()
        );
        Err(Error::new(error.kind(), message))
    }

    /// For a token from before a restart, an expired one, one for another order, or one that never existed.
    fn unknown_token(&self, name: &str, principal: &Principal) -> Error {
        let history = &self.account.journal.history;
        let placement = history.lookup(name);
        if let Some(placement) = placement.filter(|placement| placement.caller == caller(principal)) {
            return Error::invalid_argument(placement.explain());
        }
        let next = match history.gap() {
            None => "call again without preview_token for a new preview".to_owned(),
            Some(gap) => format!("but {gap}: look with binance_get_all_orders before you ask for a new preview"),
        };
        Error::invalid_argument(format!(
            "nothing was sent: the preview_token is unknown, and you have placed no order with it; {next}"
        ))
    }

    fn placed(&self, changed: &Changed, more: Option<String>) -> Result<ToolOutput> {
        let unwritten = changed.journal_failed.then(|| JOURNAL_FAILED.to_owned());
        let notes = changed.order.value.caveat().into_iter().chain(unwritten).chain(more);
        let notes: Vec<String> = notes.collect();
        let answer = Placed {
            status: "placed",
            order: &changed.order.value,
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            times: Times::new(&changed.order, self.account.clock()),
        };
        ToolOutput::structured(&answer, 1)
    }
}

/// Errors cannot be cloned.
fn copy(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.message());
    match std::error::Error::source(error) {
        Some(cause) => copy.caused_by(cause.to_string()),
        None => copy,
    }
}

fn estimate(order: &Order, checked: &CheckedOrder) -> EstimateAnswer {
    EstimateAnswer {
        notional: checked.estimate.notional,
        quote_asset: checked.rules.quote.to_string(),
        price: checked.estimate.price,
        worst_price: checked.estimate.worst_price,
        basis: checked.estimate.basis,
        best_bid: checked.book.depth.bids.best().map(|level| level.price),
        best_ask: checked.book.depth.asks.best().map(|level| level.price),
        trades_at_once: order.crosses(&checked.book.depth),
        price_age_ms: checked.book.age_ms,
        fees_included: false,
    }
}

#[async_trait]
impl Tool for PlaceOrder {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn normalise(&self, args: &mut JsonObject) {
        spec::normalise_symbol(args);
        for name in ["side", "type", "time_in_force"] {
            if let Some(Value::String(word)) = args.get_mut(name) {
                *word = word.trim().to_ascii_uppercase();
            }
        }
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let order = Order::read(&args)?;
        match spec::text(&args, "preview_token") {
            None => self.preview(&order, cx).await,
            Some(token) => self.place(&order, token, cx).await,
        }
    }
}

fn draft(cap: Notional) -> Draft {
    Draft {
        name: "binance_place_order",
        title: "Place an order",
        description: format!(
            "Trades with real money, in two steps. Without preview_token it places nothing: it checks the order \
             against the exchange's rules and answers with what would be sent, the estimated cost without fees, and a \
             preview_token that is good once within 60 seconds. Show that to the person. Only with their consent call \
             again with exactly the same arguments and the token: that places the order. Sent again, the same token \
             places nothing more and answers with what became of the order. LIMIT needs price and \
             quantity; MARKET needs quantity (base asset) or quote_quantity (quote asset). One order may be worth at \
             most {cap} of its quote asset. If an answer says \"execution status unknown\", look with \
             binance_get_order before trying again."
        ),
        arguments: json!({
            "symbol": spec::symbol(),
            "side": {"type": "string", "enum": ["BUY", "SELL"], "description": "Whether to buy or sell the base asset."},
            "type": {"type": "string", "enum": ["LIMIT", "MARKET"], "description": "LIMIT at `price` or better; MARKET at whatever price there is."},
            "quantity": spec::decimal("How much of the base asset."),
            "quote_quantity": spec::decimal("MARKET only, instead of quantity: how much of the quote asset to spend or receive."),
            "price": spec::decimal("LIMIT only: the worst acceptable price, a multiple of the tick size."),
            "time_in_force": {
                "type": "string",
                "enum": ["GTC", "IOC", "FOK"],
                "description": "LIMIT only: until cancelled (GTC, the default), at once as far as possible (IOC), or all at once or nothing (FOK).",
            },
            "preview_token": {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "Leave it out the first time. The second time: the preview_token of the preview the person agreed to.",
            },
        }),
        required: &["symbol", "side", "type"],
        output: spec::with_times(json!({
            "status": {"type": "string", "enum": ["preview", "placed"], "description": "Whether an order was placed."},
            "preview_token": {"type": "string"},
            "expires_in_secs": {"type": "integer"},
            "order": {"type": "object", "description": "What would be sent; or, once placed, the order as the exchange has it."},
            "client_order_id": {"type": "string"},
            "estimate": {
                "type": "object",
                "description": "What it would come to in the quote asset by the book of now, without fees: the average price, the worst that is needed, and whether it would trade at once. A market order can fill at worse prices.",
            },
            "max_order_notional": {"type": "string"},
            "next_step": {"type": "string"},
            "unresolved": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Earlier orders and cancellations whose outcome is unknown. Look at each with binance_get_order, and tell the person, before anything else is placed.",
            },
            "recent_orders": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Orders that are on their way to the exchange, or were placed in the last minute: `outcome` is in_flight or placed. Make sure that this is not one of them once more.",
            },
            "note": {"type": "string"},
        })),
        output_required: &["status", "order", "received_time", "age_ms", "source", "simulated"],
        hints: CHANGE,
    }
}
