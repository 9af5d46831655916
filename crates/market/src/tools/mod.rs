//! The tools of a market: one object for each, made of a form (what it is called and takes) and an
//! answer.

pub(crate) mod arguments;
mod forms;
mod outputs;

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Value, json};
use tribune_core::{CallContext, Error, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use crate::analytics::cost::{Action, Size};
use crate::analytics::ranking::Order;
use crate::answers::candles::Range;
use crate::answers::flow::FLOW_SECS;
use crate::answers::{self, Answer};
use crate::market::Market;
use crate::number::{Notional, Price, Quantity};
use crate::source::MarketSource;
pub(crate) use arguments::symbol as spelled_symbol;
use arguments::{Arguments, normalise};
pub(crate) use forms::Form;

/// Rows that trades and levels default to.
const DEFAULT_LEVELS: usize = 100;
const DEFAULT_TRADES: usize = 500;
const DEFAULT_CANDLES: usize = 500;
const DEFAULT_DEPTH_LEVELS: usize = 20;
const DEFAULT_HOURS: u32 = 24;
const DEFAULT_MARKETS: usize = 20;

/// Every tool that reads the market.
pub(crate) fn all(source: &Arc<MarketSource>) -> Vec<Arc<dyn Tool>> {
    let tool = |form: &Form| -> Arc<dyn Tool> {
        Arc::new(MarketTool {
            form: *form,
            spec: form.spec(),
            source: source.clone(),
        })
    };
    Form::ALL.iter().map(tool).collect()
}

struct MarketTool {
    form: Form,
    spec: ToolSpec,
    source: Arc<MarketSource>,
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
        let table = self.source.market().ok().and_then(|market| market.known_symbols());
        normalise(args, table.as_deref());
    }

    async fn call(&self, args: JsonObject, _cx: &CallContext) -> Result<ToolOutput> {
        let args = Arguments(&args);
        let market = self.source.market()?;
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
            return ToolOutput::structured(&self.cited(top_markets(market, &args).await?), 1);
        }
        if self.form == Form::ExchangeInfo && symbols.is_empty() {
            return ToolOutput::structured(&answers::info::overview(market).await?, 1);
        }
        match symbols.as_slice() {
            [] => Err(Error::invalid_argument(format!(
                "{} was not run: give `symbol`, for example BTCUSDT. Search finds the symbol of an asset by its name.",
                self.spec.name
            ))),
            [one] if !args.is_list() => {
                let answer = self.answer(market, one, &args).await?;
                ToolOutput::structured(&self.cited(answer), 1)
            }
            several => self.several(market, several, &args).await,
        }
    }
}

impl MarketTool {
    async fn answer(&self, market: &Market, symbol: &str, args: &Arguments<'_>) -> Result<Answer> {
        match self.form {
            Form::Ticker => answers::ticker::ticker(market, symbol).await,
            Form::AveragePrice => answers::ticker::average(market, symbol).await,
            Form::OrderBook => {
                let limit = args.count("limit").unwrap_or(DEFAULT_LEVELS);
                answers::book::levels(market, symbol, limit).await
            }
            Form::RecentTrades => {
                let limit = args.count("limit").unwrap_or(DEFAULT_TRADES);
                answers::trades::trades(market, symbol, limit).await
            }
            Form::Klines => {
                let range = Range {
                    interval: args.interval()?,
                    limit: args.count("limit").unwrap_or(DEFAULT_CANDLES),
                    start: args.millis("start_time")?,
                    end: args.millis("end_time")?,
                };
                answers::candles::candles(market, symbol, range).await
            }
            Form::ExchangeInfo => answers::info::info(market, symbol).await,
            Form::OrderBookL1 => answers::book::l1(market, symbol).await,
            Form::OrderBookL2 => {
                let levels = args.count("depth_levels").unwrap_or(DEFAULT_DEPTH_LEVELS);
                answers::book::l2(market, symbol, levels).await
            }
            Form::OrderBookHealth => answers::anomalies::book_health(market, symbol).await,
            Form::OrderFlow => {
                let window = args.small("window_seconds").unwrap_or(FLOW_SECS);
                answers::flow::order_flow(market, symbol, window).await
            }
            Form::VolumeProfile => {
                let width = args.decimal("tick_size", Price::parse)?;
                let hours = args.small("hours").unwrap_or(DEFAULT_HOURS);
                answers::profile::profile(market, symbol, hours, width).await
            }
            Form::LiquidityVacuums => {
                let hours = args.small("hours").unwrap_or(DEFAULT_HOURS);
                answers::profile::liquidity_vacuums(market, symbol, hours).await
            }
            Form::Anomalies => answers::anomalies::anomalies(market, symbol).await,
            Form::MicrostructureHealth => answers::anomalies::health_score(market, symbol).await,
            Form::CostToTrade => self.cost(market, symbol, args).await,
            Form::CompareMarkets => answers::compare::row(market, symbol).await,
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
        answers::cost::cost_to_trade(market, symbol, side, size).await
    }

    fn cited(&self, answer: Answer) -> JsonObject {
        let answer = answer.fitted();
        let url = self.source.cite(&answer.document());
        answer.into_object(&url)
    }

    /// One answer for each symbol; one that fails does not take the others with it.
    async fn several(&self, market: &Market, symbols: &[String], args: &Arguments<'_>) -> Result<ToolOutput> {
        let answers = match self.form {
            Form::Ticker => answers::ticker::tickers(market, symbols).await,
            _ => join_all(symbols.iter().map(|symbol| self.answer(market, symbol, args))).await,
        };
        let mut results = Vec::new();
        let mut failed = Vec::new();
        for (symbol, answer) in symbols.iter().zip(answers) {
            match answer {
                Ok(answer) => results.push(Value::Object(self.cited(answer))),
                Err(error) => failed.push((symbol, error)),
            }
        }
        several_of(results, failed)
    }
}

async fn top_markets(market: &Market, args: &Arguments<'_>) -> Result<Answer> {
    let asked = args.text("sort_by");
    let known = Order::ALL.into_iter().find(|order| Some(order.as_str()) == asked);
    let order = known.unwrap_or(Order::Volume);
    let most = args.count("limit").unwrap_or(DEFAULT_MARKETS);
    answers::ranking::top(market, args.text("quote_asset"), order, most).await
}

/// Fails only if everything did.
fn several_of(results: Vec<Value>, failed: Vec<(&String, Error)>) -> Result<ToolOutput> {
    if results.is_empty()
        && let Some((_, first)) = failed.first()
    {
        let mut reasons: Vec<&str> = failed.iter().map(|(_, error)| error.message()).collect();
        reasons.dedup();
        return Err(Error::new(first.kind(), reasons.join(" ")));
    }
    let count = results.len();
    let failed: Vec<Value> = failed
        .iter()
        .map(|(symbol, error)| json!({"symbol": symbol, "reason": error.message()}))
        .collect();
    ToolOutput::structured(&json!({"results": results, "failed": failed}), count)
}
