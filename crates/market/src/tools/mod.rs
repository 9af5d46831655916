//! The tools of a market: one object for each, made of a form (what it is called and takes) and an
//! answer.

pub(crate) mod arguments;
mod forms;

pub use arguments::symbol as spelled_symbol;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use serde::Serialize;
use tribune_core::{CallContext, Error, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use crate::citing::Citing;
use crate::kinds::flow::FLOW_SECS;
use crate::kinds::klines::Range;
use crate::kinds::{self, Answer};
use crate::market::Market;
use arguments::{Arguments, normalise};
pub(crate) use forms::Form;
use tribune_analytics::cost::{Action, Size};
use tribune_analytics::ranking::Order;
use tribune_binance::number::{Notional, Price, Quantity};

/// Rows that trades and levels default to.
const DEFAULT_LEVELS: usize = 100;
const DEFAULT_TRADES: usize = 500;
const DEFAULT_CANDLES: usize = 500;
const DEFAULT_DEPTH_LEVELS: usize = 20;
const DEFAULT_HOURS: u32 = 24;
const DEFAULT_MARKETS: usize = 20;

/// Every tool that reads the market.
pub(crate) fn all(citing: &Arc<Citing>) -> Vec<Arc<dyn Tool>> {
    let tool = |form: &Form| -> Arc<dyn Tool> {
        Arc::new(MarketTool {
            form: *form,
            spec: form.spec(),
            citing: citing.clone(),
        })
    };
    Form::ALL.iter().map(tool).collect()
}

struct MarketTool {
    form: Form,
    spec: ToolSpec,
    citing: Arc<Citing>,
}

#[async_trait]
impl Tool for MarketTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// The names with a dot, which some hosts cannot take, and those without the venue.
    fn also_called(&self) -> Vec<String> {
        let bare = self.spec.name.trim_start_matches("binance_");
        vec![format!("binance.{bare}"), bare.to_owned()]
    }

    fn normalise(&self, args: &mut JsonObject) {
        let table = self.citing.market.known_symbols();
        normalise(args, table.as_deref());
    }

    async fn call(&self, args: JsonObject, _cx: &CallContext) -> Result<ToolOutput> {
        let args = Arguments(&args);
        let market = &self.citing.market;
        let symbols = args.symbols();
        if self.form == Form::CompareMarkets {
            if symbols.len() < 2 {
                return Err(Error::invalid_argument(format!(
                    "{} was not run: it takes two different symbols, and `symbols` has one; give another beside it",
                    self.spec.name
                )));
            }
            return self.several(market, &symbols, &args).await;
        }
        if self.form == Form::TopMarkets {
            return self.cited(&top_markets(market, &args).await?).await;
        }
        if self.form == Form::ExchangeInfo && symbols.is_empty() {
            return ToolOutput::structured(&kinds::info::exchange(market).await?, 1);
        }
        match symbols.as_slice() {
            [] => Err(Error::invalid_argument(format!(
                "{} was not run: give `symbol`, for example BTCUSDT. Search finds the symbol of an asset by its name.",
                self.spec.name
            ))),
            [one] if !args.is_list() => {
                let answer = self.answer(market, one, &args).await?;
                self.cited(&answer).await
            }
            several => self.several(market, several, &args).await,
        }
    }
}

impl MarketTool {
    async fn answer(&self, market: &Market, symbol: &str, args: &Arguments<'_>) -> Result<Answer> {
        match self.form {
            Form::Ticker => kinds::ticker::load(market, symbol).await,
            Form::AveragePrice => kinds::average::load(market, symbol).await,
            Form::OrderBook => {
                let limit = args.count("limit").unwrap_or(DEFAULT_LEVELS);
                kinds::book::load(market, symbol, limit).await
            }
            Form::RecentTrades => {
                let limit = args.count("limit").unwrap_or(DEFAULT_TRADES);
                kinds::trades::load(market, symbol, limit).await
            }
            Form::Klines => {
                let range = Range {
                    interval: args.interval()?,
                    limit: args.count("limit").unwrap_or(DEFAULT_CANDLES),
                    start: args.millis("start_time")?,
                    end: args.millis("end_time")?,
                };
                kinds::klines::load(market, symbol, range).await
            }
            Form::ExchangeInfo => kinds::info::load(market, symbol).await,
            Form::OrderBookL1 => kinds::book::load_best(market, symbol).await,
            Form::OrderBookL2 => {
                let levels = args.count("depth_levels").unwrap_or(DEFAULT_DEPTH_LEVELS);
                kinds::depth::load(market, symbol, levels).await
            }
            Form::OrderBookHealth => kinds::book_health::load(market, symbol).await,
            Form::OrderFlow => {
                let window = args.small("window_seconds").unwrap_or(FLOW_SECS);
                kinds::flow::load(market, symbol, window).await
            }
            Form::VolumeProfile => {
                let width = args.decimal("tick_size", Price::parse)?;
                let hours = args.small("hours").unwrap_or(DEFAULT_HOURS);
                kinds::profile::load(market, symbol, hours, width).await
            }
            Form::LiquidityVacuums => {
                let hours = args.small("hours").unwrap_or(DEFAULT_HOURS);
                kinds::vacuums::load(market, symbol, hours).await
            }
            Form::Anomalies => kinds::anomalies::load(market, symbol).await,
            Form::MicrostructureHealth => kinds::health::load(market, symbol).await,
            Form::CostToTrade => self.cost(market, symbol, args).await,
            Form::CompareMarkets => kinds::compare::load(market, symbol).await,
            Form::TopMarkets => top_markets(market, args).await,
        }
    }

    async fn cost(&self, market: &Market, symbol: &str, args: &Arguments<'_>) -> Result<Answer> {
        let side = match args.text("side") {
            Some("sell") => Action::Sell,
            _ => Action::Buy,
        };
        let money = args.decimal("notional", Notional::parse)?;
        let quantity = args.decimal("quantity", Quantity::parse)?;
        let size = match (money, quantity) {
            (Some(money), None) => Size::Quote(money),
            (None, Some(quantity)) => Size::Base(quantity),
            _ => {
                return Err(Error::invalid_argument(
                    "binance_cost_to_trade was not run: give either `notional` (an amount of the quote asset) or `quantity` (an amount of the base asset).",
                ));
            }
        };
        kinds::cost::load(market, symbol, side, size).await
    }

    async fn cited(&self, answer: &Answer) -> Result<ToolOutput> {
        let url = self.citing.cite(answer).await;
        ToolOutput::structured(&answer.object(&url), 1)
    }

    /// One answer for each symbol; one that fails does not take the others with it.
    async fn several(&self, market: &Market, symbols: &[String], args: &Arguments<'_>) -> Result<ToolOutput> {
        let answers = match self.form {
            Form::Ticker => kinds::ticker::load_several(market, symbols).await,
            _ => join_all(symbols.iter().map(|symbol| self.answer(market, symbol, args))).await,
        };
        let (mut answered, mut failed) = (Vec::new(), Vec::new());
        for (symbol, answer) in symbols.iter().zip(answers) {
            match answer {
                Ok(answer) => answered.push((self.citing.cite(&answer).await, answer)),
                Err(error) => failed.push((symbol, error)),
            }
        }
        several_of(&answered, &failed)
    }
}

async fn top_markets(market: &Market, args: &Arguments<'_>) -> Result<Answer> {
    let asked = args.text("sort_by");
    let known = Order::ALL.into_iter().find(|order| Some(order.as_str()) == asked);
    let order = known.unwrap_or(Order::Volume);
    let most = args.count("limit").unwrap_or(DEFAULT_MARKETS);
    kinds::ranking::load_top(market, args.text("quote_asset"), order, most).await
}

#[derive(Serialize)]
struct Several<R> {
    results: Vec<R>,
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct Failed {
    symbol: String,
    reason: String,
}

/// Fails only if everything did.
fn several_of(answered: &[(String, Answer)], failed: &[(&String, Error)]) -> Result<ToolOutput> {
    if answered.is_empty()
        && let Some((_, first)) = failed.first()
    {
        let mut reasons: Vec<&str> = failed.iter().map(|(_, error)| error.message()).collect();
        reasons.dedup();
        return Err(Error::new(first.kind(), reasons.join(" ")));
    }
    let failure = |(symbol, error): &(&String, Error)| Failed {
        symbol: (*symbol).clone(),
        reason: error.message().to_owned(),
    };
    let several = Several {
        results: answered.iter().map(|(url, answer)| answer.object(url)).collect(),
        failed: failed.iter().map(failure).collect(),
    };
    ToolOutput::structured(&several, answered.len())
}
