//! The tools: names, descriptions, arguments and output.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tribune_core::wire::object;
use tribune_core::{CallDisplay, Hints, JsonObject, Result, ToolSpec};

use super::arguments::Arguments;
use crate::kinds::schema::{Shape, book_schema, output_schema};
use crate::kinds::{Answer, anomalies, average, book, book_health, compare, cost, depth, flow, health, info, klines};
use crate::kinds::{profile, ranking, ticker, trades, vacuums};
use crate::market::Market;
use tribune_analytics::Order;
use tribune_binance::Interval;

/// Reads a market that changes by itself.
const READ_LIVE: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: true };
const MAX_SYMBOLS: usize = 20;
const ALIASES: [(&str, &str); 11] = [
    ("window_secs", "window_seconds"),
    ("startTime", "start_time"),
    ("endTime", "end_time"),
    ("depth", "depth_levels"),
    ("levels", "depth_levels"),
    ("ticker", "symbol"),
    ("pair", "symbol"),
    ("amount", "notional"),
    ("quote", "quote_asset"),
    ("sort", "sort_by"),
    ("by", "sort_by"),
];

/// The tool that loads several tickers with one request.
pub(super) const TICKER: &str = "binance_get_ticker";
/// The tool that describes the exchange if no symbol is given.
pub(super) const EXCHANGE_INFO: &str = "binance_get_exchange_info";

/// A tool, beside the symbols that all but one of them take.
pub(super) struct Form {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    pub(super) shape: Shape,
    arguments: Vec<Argument>,
    output: fn(Shape) -> JsonObject,
    /// The answer for one symbol; for all markets the symbol is empty.
    pub(super) load: Load,
}

type Load = for<'a> fn(&'a Market, &'a str, &'a Arguments<'a>) -> BoxFuture<'a, Result<Answer>>;

struct Argument {
    name: &'static str,
    schema: Value,
    is_required: bool,
}

impl Form {
    pub(super) fn all() -> Vec<Self> {
        let intervals: Vec<&str> = Interval::ALL.iter().map(|interval| interval.as_str()).collect();
        vec![
            Self {
                name: TICKER,
                title: "Price and 24 hours",
                description: "Use this for the current price of a cryptocurrency on Binance and its last 24 hours: last price, change, high, low, volume, best bid and ask, with exchange time and age. Several symbols in one call with `symbols`. Not for history (binance_get_klines).",
                shape: Shape::OneOrSeveral,
                arguments: vec![],
                output: output_schema::<ticker::Ticker>,
                load: |market, symbol, _| ticker::load(market, symbol).boxed(),
            },
            Self {
                name: "binance_get_orderbook",
                title: "Order book",
                description: "Use this for the levels of a Binance order book: bids and asks with price and size, best first, from the live book. At most 100 levels a side are listed; larger limits give totals. For a summary use binance_orderbook_l2, for the price of a trade binance_cost_to_trade.",
                shape: Shape::Symbol,
                arguments: vec![optional(
                    "limit",
                    json!({
                        "type": "integer", "enum": [5, 10, 20, 50, 100, 500, 1000, 5000], "default": 100,
                        "description": "Levels a side: 5, 10, 20, 50, 100, 500, 1000 or 5000; the best 100 are listed.",
                    }),
                )],
                output: book_schema::<book::OrderBook>,
                load: |market, symbol, args| book::load(market, symbol, args.count("limit")).boxed(),
            },
            Self {
                name: "binance_get_recent_trades",
                title: "Recent trades",
                description: "Use this for the newest single trades of a symbol on Binance, newest first, each with price, size, time and who crossed the spread. For sums over a window use binance_get_order_flow.",
                shape: Shape::Symbol,
                arguments: vec![whole("limit", "How many trades", 1, 1_000, 500)],
                output: output_schema::<trades::RecentTrades>,
                load: |market, symbol, args| trades::load(market, symbol, args.count("limit")).boxed(),
            },
            Self {
                name: "binance_get_klines",
                title: "Candles",
                description: "Use this for price history on Binance: candles (open, high, low, close, volume, trades), the last one marked closed or still open, with realised volatility and average true range. Intervals from 1s to 1M (1m is a minute, 1M a month).",
                shape: Shape::Symbol,
                arguments: vec![
                    required(
                        "interval",
                        json!({
                            "type": "string", "enum": intervals,
                            "description": "Length of a candle; upper and lower case differ (1m is a minute, 1M a month).",
                        }),
                    ),
                    whole(
                        "limit",
                        "How many candles; as many as fit into one answer are listed, some 400, and the answer says how many",
                        1,
                        1_000,
                        500,
                    ),
                    time("start_time", "From this time: without end_time the oldest from there"),
                    time("end_time", "Up to this time: without start_time the newest up to it"),
                ],
                output: output_schema::<klines::Klines>,
                load: |market, symbol, args| async { klines::load(market, symbol, args.candles()?).await }.boxed(),
            },
            Self {
                name: EXCHANGE_INFO,
                title: "Trading rules",
                description: "Use this for whether a symbol is traded on Binance, its price and quantity steps and order limits. Without a symbol it gives the number of symbols and the request budget.",
                shape: Shape::OneOrSeveral,
                arguments: vec![],
                output: output_schema::<info::RulesOrExchange>,
                load: |market, symbol, _| info::load(market, symbol).boxed(),
            },
            Self {
                name: "binance_get_avg_price",
                title: "Average price",
                description: "Use this for the average price of a symbol over the last minutes, as Binance computes it.",
                shape: Shape::OneOrSeveral,
                arguments: vec![],
                output: output_schema::<average::AveragePrice>,
                load: |market, symbol, _| average::load(market, symbol).boxed(),
            },
            Self {
                name: "binance_orderbook_l1",
                title: "Best bid and ask",
                description: "Use this for the best bid and ask of a symbol on Binance now: mid, spread in basis points, microprice, imbalance, from the live book with its update id, state and age.",
                shape: Shape::OneOrSeveral,
                arguments: vec![],
                output: book_schema::<book::BestPrices>,
                load: |market, symbol, _| book::load_best(market, symbol).boxed(),
            },
            Self {
                name: "binance_orderbook_l2",
                title: "Order book depth",
                description: "Use this for how deep a Binance market is: money within 10, 25, 50 and 100 basis points of mid on both sides, each said to be complete or a lower bound, and the imbalance of the best levels.",
                shape: Shape::Symbol,
                arguments: vec![whole("depth_levels", "Levels a side for the imbalance", 5, 100, 20)],
                output: book_schema::<depth::MarketDepth>,
                load: |market, symbol, args| depth::load(market, symbol, args.count("depth_levels")).boxed(),
            },
            Self {
                name: "binance_orderbook_health",
                title: "Order book health",
                description: "Use this for the state of one order book: spread, depth, imbalance, and unusually large levels that stay (walls, a hint).",
                shape: Shape::Symbol,
                arguments: vec![],
                output: book_schema::<book_health::BookHealth>,
                load: |market, symbol, _| book_health::load(market, symbol).boxed(),
            },
            Self {
                name: "binance_get_order_flow",
                title: "Order flow",
                description: "Use this for who is buying or selling now: volume taken by buyers and sellers in the last 10 to 300 seconds, net flow, cumulative delta, order rate, VWAP, and order-flow imbalance of the best levels. Describes the window; does not predict.",
                shape: Shape::Symbol,
                arguments: vec![whole("window_seconds", "How many seconds back", 10, 300, flow::FLOW_SECS)],
                output: output_schema::<flow::OrderFlow>,
                load: |market, symbol, args| flow::load(market, symbol, args.whole("window_seconds")).boxed(),
            },
            Self {
                name: "binance_get_volume_profile",
                title: "Volume profile",
                description: "Use this for where volume is concentrated: the price with most volume (point of control), the value area with 70% of it, and volume by price, over the last 1 to 168 hours, from candles.",
                shape: Shape::Symbol,
                arguments: vec![
                    hours(),
                    decimal("tick_size", "Width of a price row; chosen from the range where it is not given", "0.5"),
                ],
                output: output_schema::<profile::Profile>,
                load: |market, symbol, args| {
                    let width = args.decimal("tick_size");
                    async { profile::load(market, symbol, args.whole("hours"), width?).await }.boxed()
                },
            },
            Self {
                name: "binance_detect_market_anomalies",
                title: "Market anomalies",
                description: "Use this for what is unusual about a market against its own past: quote rate, liquidity, volume, returns, icebergs, large levels that vanished. Hints, each with its numbers; a check that cannot be made yet says why.",
                shape: Shape::Symbol,
                arguments: vec![],
                output: book_schema::<anomalies::MarketAnomalies>,
                load: |market, symbol, _| anomalies::load(market, symbol).boxed(),
            },
            Self {
                name: "binance_get_microstructure_health",
                title: "Market health score",
                description: "Use this for one score from 0 to 100 of how healthy a market is, with its components, mappings and weights (spread, depth, balance, flow, anomalies, freshness). A convention, not advice.",
                shape: Shape::Symbol,
                arguments: vec![],
                output: book_schema::<health::MarketHealth>,
                load: |market, symbol, _| health::load(market, symbol).boxed(),
            },
            Self {
                name: "binance_get_liquidity_vacuums",
                title: "Liquidity vacuums",
                description: "Use this for price ranges of the last 1 to 168 hours in which little was traded between ranges with volume. Describes the past.",
                shape: Shape::Symbol,
                arguments: vec![hours()],
                output: output_schema::<vacuums::LiquidityVacuums>,
                load: |market, symbol, args| vacuums::load(market, symbol, args.whole("hours")).boxed(),
            },
            Self {
                name: "binance_cost_to_trade",
                title: "Cost to trade",
                description: "Use this for what it would cost to buy or sell an amount now: the levels of the live book are walked; average price, slippage against mid in basis points and money, worst price, and whether the book holds enough. Give `notional` (quote asset, 200000 for 200,000 dollars of SOLUSDT) or `quantity` (base asset). Fees not included.",
                shape: Shape::Symbol,
                arguments: vec![
                    required(
                        "side",
                        json!({"type": "string", "enum": ["buy", "sell"], "description": "Whether to buy or to sell the base asset."}),
                    ),
                    decimal("notional", "How much in the quote asset (the second of the pair)", "200000"),
                    decimal("quantity", "How much in the base asset, instead of notional", "1.5"),
                ],
                output: book_schema::<cost::CostToTrade>,
                load: |market, symbol, args| {
                    async { cost::load(market, symbol, args.side(), args.size()?).await }.boxed()
                },
            },
            Self {
                name: "binance_compare_markets",
                title: "Compare markets",
                description: "Use this to put 2 to 20 symbols side by side: price, change, range, volume, spread, depth, volatility.",
                shape: Shape::Several,
                arguments: vec![],
                output: book_schema::<compare::Comparison>,
                load: |market, symbol, _| compare::load(market, symbol).boxed(),
            },
            Self {
                name: "binance_top_markets",
                title: "Top markets",
                description: "Use this when no symbol is named: which markets on Binance are traded most, gained most, lost most or moved most in the last 24 hours, each with price, change, range, volume and its share of the volume of all.",
                shape: Shape::AllMarkets,
                arguments: vec![
                    optional(
                        "sort_by",
                        json!({
                            "type": "string", "enum": Order::ALL.map(Order::as_str), "default": Order::Volume.as_str(),
                            "description": "volume: most traded first; gain and loss: largest change first; range: widest between high and low (default volume).",
                        }),
                    ),
                    optional(
                        "quote_asset",
                        json!({
                            "type": "string", "minLength": 1, "maxLength": 32,
                            "description": "Only markets priced in this asset, for example USDT, BTC or EUR; USDT where it is not given.",
                        }),
                    ),
                    whole("limit", "How many markets", 1, 100, 20),
                ],
                output: output_schema::<ranking::Markets<ranking::TopMarkets>>,
                load: |market, _, args| {
                    ranking::load_top(market, args.text("quote_asset"), args.order(), args.count("limit")).boxed()
                },
            },
        ]
    }

    pub(super) fn spec(&self) -> ToolSpec {
        let of_symbols = match self.shape {
            Shape::Symbol => vec![required("symbol", symbol())],
            Shape::OneOrSeveral => vec![optional("symbol", symbol()), optional("symbols", symbols(1))],
            Shape::Several => vec![required("symbols", symbols(2))],
            Shape::AllMarkets => vec![],
        };
        let (mut properties, mut always) = (Map::new(), Vec::new());
        for argument in of_symbols.iter().chain(&self.arguments) {
            properties.insert(argument.name.to_owned(), argument.schema.clone());
            always.extend(argument.is_required.then_some(argument.name));
        }
        ToolSpec {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            description: self.description.to_owned(),
            input_schema: object(json!({
                "type": "object",
                "properties": properties,
                "required": always,
                "additionalProperties": false,
            })),
            output_schema: (self.output)(self.shape),
            hints: READ_LIVE,
            icon: None,
            display: CallDisplay { subject: Some("symbol"), ..CallDisplay::default() },
            aliases: ALIASES.to_vec(),
        }
    }
}

fn symbol() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": 64,
        "description": "The symbol on Binance, for example BTCUSDT (base and quote asset together); BTC/USDT is understood.",
    })
}

fn symbols(fewest: usize) -> Value {
    json!({
        "type": "array", "minItems": fewest, "maxItems": MAX_SYMBOLS,
        "items": {"type": "string", "minLength": 1, "maxLength": 64},
        "description": format!("Several symbols at once, at most {MAX_SYMBOLS}, for example [\"BTCUSDT\", \"ETHUSDT\"]."),
    })
}

fn required(name: &'static str, schema: Value) -> Argument {
    Argument { name, schema, is_required: true }
}

fn optional(name: &'static str, schema: Value) -> Argument {
    Argument { is_required: false, ..required(name, schema) }
}

fn whole(name: &'static str, meaning: &str, low: u32, high: u32, default: u32) -> Argument {
    let description = format!("{meaning} ({low}-{high}, default {default}).");
    let schema =
        json!({"type": "integer", "minimum": low, "maximum": high, "default": default, "description": description});
    optional(name, schema)
}

fn hours() -> Argument {
    whole("hours", "How many hours back", 1, 168, 24)
}

/// As text, which every host can send: numbers are taken as well.
fn time(name: &'static str, meaning: &str) -> Argument {
    let description = format!(
        "{meaning}. A time such as 2026-11-15T00:00:00Z, a day such as 2026-11-15 (UTC), or milliseconds since 1970."
    );
    let schema = json!({"type": "string", "minLength": 1, "maxLength": 64, "description": description});
    optional(name, schema)
}

fn decimal(name: &'static str, meaning: &str, example: &str) -> Argument {
    let description = format!(
        "{meaning}. A decimal number above zero with at most 8 places after the point, for example \"{example}\"."
    );
    let schema = json!({"type": "string", "pattern": r"^[0-9]{1,20}(\.[0-9]{1,8})?$", "description": description});
    optional(name, schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_takes_every_tool() {
        for form in Form::all() {
            let spec = form.spec();
            assert_eq!(tribune_registry::lint::faults(&spec), Vec::<String>::new(), "{}", spec.name);
            assert!(spec.name.starts_with("binance_"), "{}", spec.name);
        }
    }

    /// Models read all of them: what they take of a context is bounded.
    #[test]
    fn output_schemas_stay_small() {
        let size = |form: Form| (form.name, Value::Object(form.spec().output_schema).to_string().len());
        let sizes: Vec<(&str, usize)> = Form::all().into_iter().map(size).collect();
        let all: usize = sizes.iter().map(|(_, size)| size).sum();
        assert!(all <= 21_000, "{all}: {sizes:?}");
    }
}
