//! The seven tools: what hosts see of them, and which function runs each.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::Value;
use tribune_binance::parse_time;
use tribune_core::{CallContext, JsonObject, Result, Scope, Tool, ToolOutput, ToolSpec};

use super::account::TradingAccount;
use super::cancel::{self, cancel_order};
use super::place::{self, place_order};
use super::queries::{self, AccountAnswer, Listing, Nothing, OneOrEverySymbol, OrderAnswer, Orders, Trades};
use super::spec::{LOOK, OneOrder, arguments, spec};

type Run = for<'a> fn(&'a Arc<TradingAccount>, JsonObject, &'a CallContext) -> BoxFuture<'a, Result<ToolOutput>>;

struct TradingTool {
    spec: ToolSpec,
    run: Run,
    account: Arc<TradingAccount>,
}

/// In the order in which hosts see them, which is part of the contract.
pub(super) fn all(account: &Arc<TradingAccount>) -> Vec<Arc<dyn Tool>> {
    let tool = |spec: ToolSpec, run: Run| -> Arc<dyn Tool> {
        Arc::new(TradingTool { spec, run, account: Arc::clone(account) })
    };
    vec![
        tool(
            spec::<Nothing, AccountAnswer>(
                "binance_get_account",
                "Account balances",
                "Shows what the account holds: each asset with what is free and what is locked in open orders, and \
                 whether it may trade. Changes nothing. Empty balances are left out.",
                LOOK,
            ),
            |account, _, _| Box::pin(queries::balances(account)),
        ),
        tool(
            spec::<Listing, Trades>(
                "binance_get_my_trades",
                "My trades",
                "Lists the account's own trades in one symbol, with price, quantity, commission and order. Changes \
                 nothing. Without times or from_id: the latest.",
                LOOK,
            ),
            |account, args, _| Box::pin(async move { queries::my_trades(account, &arguments(args)?).await }),
        ),
        tool(place_order(account.settings.limits.order_notional), |account, args, cx| {
            Box::pin(async move { place::call(account, &arguments(args)?, cx).await })
        }),
        tool(cancel_order(), |account, args, cx| {
            Box::pin(async move { cancel::call(account, arguments(args)?, cx).await })
        }),
        tool(
            spec::<OneOrder, OrderAnswer>(
                "binance_get_order",
                "Look at an order",
                "Shows one order of the account: its status and how much of it is filled. Changes nothing. Name it by \
                 symbol and order_id or client_order_id. Use it after an answer that says \"execution status \
                 unknown\": if the exchange has no such order, it was not placed.",
                LOOK,
            ),
            |account, args, cx| Box::pin(async move { queries::order(account, &arguments(args)?, cx).await }),
        ),
        tool(
            spec::<OneOrEverySymbol, Orders>(
                "binance_get_open_orders",
                "Open orders",
                "Lists the account's open orders, of one symbol or of all. Changes nothing. One symbol is much cheaper \
                 for the exchange's request budget than all.",
                LOOK,
            ),
            |account, args, _| Box::pin(async move { queries::open_orders(account, arguments(args)?).await }),
        ),
        tool(
            spec::<Listing, Orders>(
                "binance_get_all_orders",
                "All orders of a symbol",
                "Lists the account's orders in one symbol, open, filled and cancelled. Changes nothing. Without times \
                 or from_id: the latest.",
                LOOK,
            ),
            |account, args, _| Box::pin(async move { queries::all_orders(account, &arguments(args)?).await }),
        ),
    ]
}

#[async_trait]
impl Tool for TradingTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn scope(&self) -> Scope {
        Scope::Trade
    }

    /// What cannot be read is left for the schema to refuse.
    fn normalise(&self, args: &mut JsonObject) {
        // `btc/usdt` becomes `BTCUSDT`; nothing else is guessed.
        if let Some(Value::String(symbol)) = args.get_mut("symbol") {
            *symbol = symbol.trim().to_uppercase().replace(['/', '-', '_', ' '], "");
        }
        for name in ["side", "type", "time_in_force"] {
            if let Some(Value::String(word)) = args.get_mut(name) {
                *word = word.trim().to_ascii_uppercase();
            }
        }
        // Readable times become milliseconds.
        for name in ["start_time", "end_time"] {
            let Some(value) = args.get_mut(name) else { continue };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if let Some(time) = parse_time(&text) {
                *value = Value::from(time);
            }
        }
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        (self.run)(&self.account, args, cx).await
    }
}
