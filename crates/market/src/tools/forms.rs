//! What each tool is called, takes and gives.

use serde_json::{Map, Value, json};
use tribune_core::wire::object;
use tribune_core::{CallDisplay, Hints, JsonObject, ToolSpec};

use crate::kinds;
use crate::kinds::schema::{Shape, output_schema};
use tribune_analytics::ranking::Order;
use tribune_binance::model::Interval;

/// Reads a market that changes by itself.
const READ_LIVE: Hints = Hints {
    read_only: true,
    destructive: false,
    idempotent: true,
    open_world: true,
};
const MAX_SYMBOLS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Ticker,
    OrderBook,
    RecentTrades,
    Klines,
    ExchangeInfo,
    AveragePrice,
    OrderBookL1,
    OrderBookL2,
    OrderBookHealth,
    OrderFlow,
    VolumeProfile,
    Anomalies,
    MicrostructureHealth,
    LiquidityVacuums,
    CostToTrade,
    CompareMarkets,
    TopMarkets,
}

/// Name, title and description.
type Texts = (&'static str, &'static str, &'static str);

impl Form {
    pub(crate) const ALL: [Self; 17] = [
        Self::Ticker,
        Self::OrderBook,
        Self::RecentTrades,
        Self::Klines,
        Self::ExchangeInfo,
        Self::AveragePrice,
        Self::OrderBookL1,
        Self::OrderBookL2,
        Self::OrderBookHealth,
        Self::OrderFlow,
        Self::VolumeProfile,
        Self::Anomalies,
        Self::MicrostructureHealth,
        Self::LiquidityVacuums,
        Self::CostToTrade,
        Self::CompareMarkets,
        Self::TopMarkets,
    ];

    const fn texts(self) -> Texts {
        match self {
            Self::Ticker => (
                "binance_get_ticker",
                "Price and 24 hours",
                "Use this for the current price of a cryptocurrency on Binance and its last 24 hours: last price, change, high, low, volume, best bid and ask, with exchange time and age. Several symbols in one call with `symbols`. Not for history (binance_get_klines).",
            ),
            Self::OrderBook => (
                "binance_get_orderbook",
                "Order book",
                "Use this for the levels of a Binance order book: bids and asks with price and size, best first, from the live book. At most 100 levels a side are listed; larger limits give totals. For a summary use binance_orderbook_l2, for the price of a trade binance_cost_to_trade.",
            ),
            Self::RecentTrades => (
                "binance_get_recent_trades",
                "Recent trades",
                "Use this for the newest single trades of a symbol on Binance, newest first, each with price, size, time and who crossed the spread. For sums over a window use binance_get_order_flow.",
            ),
            Self::Klines => (
                "binance_get_klines",
                "Candles",
                "Use this for price history on Binance: candles (open, high, low, close, volume, trades), the last one marked closed or still open, with realised volatility and average true range. Intervals from 1s to 1M (1m is a minute, 1M a month).",
            ),
            Self::ExchangeInfo => (
                "binance_get_exchange_info",
                "Trading rules",
                "Use this for whether a symbol is traded on Binance, its price and quantity steps and order limits. Without a symbol it tells how many symbols there are and the request budget.",
            ),
            Self::AveragePrice => (
                "binance_get_avg_price",
                "Average price",
                "Use this for the average price of the last minutes of a symbol, as Binance reckons it.",
            ),
            Self::OrderBookL1 => (
                "binance_orderbook_l1",
                "Best bid and ask",
                "Use this for the best bid and ask of a symbol on Binance now: mid, spread in basis points, microprice, imbalance, from the live book with its update id, state and age.",
            ),
            Self::OrderBookL2 => (
                "binance_orderbook_l2",
                "Order book depth",
                "Use this for how deep a Binance market is: money within 10, 25, 50 and 100 basis points of mid on both sides, each said to be complete or a lower bound, and the imbalance of the best levels.",
            ),
            Self::OrderBookHealth => (
                "binance_orderbook_health",
                "Order book health",
                "Use this for the state of one order book: spread, depth, imbalance, and unusually large levels that stay (walls, a hint).",
            ),
            Self::OrderFlow => (
                "binance_get_order_flow",
                "Order flow",
                "Use this for who is buying or selling now: volume taken by buyers and sellers in the last 10 to 300 seconds, net flow, cumulative delta, order rate, VWAP, and order-flow imbalance of the best levels. Describes the window; does not predict.",
            ),
            Self::VolumeProfile => (
                "binance_get_volume_profile",
                "Volume profile",
                "Use this for where volume is concentrated: the price with most volume (point of control), the value area with 70% of it, and volume by price, over the last 1 to 168 hours, from candles.",
            ),
            Self::Anomalies => (
                "binance_detect_market_anomalies",
                "Market anomalies",
                "Use this for what is unusual about a market against its own past: quote rate, liquidity, volume, returns, icebergs, large levels that vanished. Hints, each with its numbers; a check that cannot be made yet says why.",
            ),
            Self::MicrostructureHealth => (
                "binance_get_microstructure_health",
                "Market health score",
                "Use this for one score from 0 to 100 of how healthy a market is, with its components, mappings and weights (spread, depth, balance, flow, anomalies, freshness). A convention, not advice.",
            ),
            Self::LiquidityVacuums => (
                "binance_get_liquidity_vacuums",
                "Liquidity vacuums",
                "Use this for price ranges of the last 1 to 168 hours in which little was traded between ranges with volume. Describes the past.",
            ),
            Self::CostToTrade => (
                "binance_cost_to_trade",
                "Cost to trade",
                "Use this for what it would cost to buy or sell an amount now: the levels of the live book are walked; average price, slippage against mid in basis points and money, worst price, and whether the book holds enough. Give `notional` (quote asset, 200000 for 200,000 dollars of SOLUSDT) or `quantity` (base asset). Fees not included.",
            ),
            Self::CompareMarkets => (
                "binance_compare_markets",
                "Compare markets",
                "Use this to put 2 to 20 symbols side by side: price, change, range, volume, spread, depth, volatility.",
            ),
            Self::TopMarkets => (
                "binance_top_markets",
                "Top markets",
                "Use this when no symbol is named: which markets on Binance are traded most, gained most, lost most or moved most in the last 24 hours, each with price, change, range, volume and its share of the volume of all.",
            ),
        }
    }

    fn arguments(self) -> (JsonObject, Vec<&'static str>) {
        let mut arguments = Map::new();
        let mut add = |name: &str, schema: Value| {
            arguments.insert(name.to_owned(), schema);
        };
        match self {
            Self::CompareMarkets => {
                add("symbols", symbols(2));
                return (arguments, vec!["symbols"]);
            }
            Self::TopMarkets => {
                add(
                    "sort_by",
                    json!({
                        "type": "string", "enum": Order::ALL.map(Order::as_str), "default": Order::Volume.as_str(),
                        "description": "volume: most traded first; gain and loss: largest change first; range: widest between high and low (default volume).",
                    }),
                );
                add(
                    "quote_asset",
                    json!({
                        "type": "string", "minLength": 1, "maxLength": 32,
                        "description": "Only markets priced in this asset, for example USDT, BTC or EUR; USDT where it is not given.",
                    }),
                );
                add("limit", whole("How many markets", 1, 100, 20));
                return (arguments, Vec::new());
            }
            Self::Ticker | Self::AveragePrice | Self::ExchangeInfo | Self::OrderBookL1 => {
                add("symbol", symbol());
                add("symbols", symbols(1));
                return (arguments, Vec::new());
            }
            _ => add("symbol", symbol()),
        }
        let mut required = vec!["symbol"];
        match self {
            Self::OrderBook => add(
                "limit",
                json!({
                    "type": "integer", "enum": [5, 10, 20, 50, 100, 500, 1000, 5000], "default": 100,
                    "description": "Levels a side: 5, 10, 20, 50, 100, 500, 1000 or 5000; the best 100 are listed.",
                }),
            ),
            Self::RecentTrades => add("limit", whole("How many trades", 1, 1_000, 500)),
            Self::Klines => {
                required.push("interval");
                let intervals: Vec<&str> = Interval::ALL.iter().map(|interval| interval.as_str()).collect();
                add(
                    "interval",
                    json!({"type": "string", "enum": intervals, "description": "Length of a candle; upper and lower case differ (1m is a minute, 1M a month)."}),
                );
                add(
                    "limit",
                    whole(
                        "How many candles; as many as fit into one answer are listed, some 400, and the answer says how many",
                        1,
                        1_000,
                        500,
                    ),
                );
                add(
                    "start_time",
                    time("From this time: without end_time the oldest from there"),
                );
                add(
                    "end_time",
                    time("Up to this time: without start_time the newest up to it"),
                );
            }
            Self::OrderBookL2 => add("depth_levels", whole("Levels a side for the imbalance", 5, 100, 20)),
            Self::OrderFlow => add("window_seconds", whole("How many seconds back", 10, 300, 60)),
            Self::VolumeProfile => {
                add("hours", whole("How many hours back", 1, 168, 24));
                add(
                    "tick_size",
                    decimal(
                        "Width of a price row; chosen from the range where it is not given",
                        "0.5",
                    ),
                );
            }
            Self::LiquidityVacuums => add("hours", whole("How many hours back", 1, 168, 24)),
            Self::CostToTrade => {
                required.push("side");
                add(
                    "side",
                    json!({"type": "string", "enum": ["buy", "sell"], "description": "Whether to buy or to sell the base asset."}),
                );
                add(
                    "notional",
                    decimal("How much in the quote asset (the second of the pair)", "200000"),
                );
                add(
                    "quantity",
                    decimal("How much in the base asset, instead of notional", "1.5"),
                );
            }
            _ => {}
        }
        (arguments, required)
    }

    fn output_schema(self) -> JsonObject {
        let of_book = matches!(
            self,
            Self::OrderBook
                | Self::OrderBookL1
                | Self::OrderBookL2
                | Self::OrderBookHealth
                | Self::MicrostructureHealth
                | Self::CostToTrade
                | Self::Anomalies
                | Self::CompareMarkets
        );
        match self {
            Self::Ticker => output_schema::<kinds::ticker::Ticker>(Shape::OneOrSeveral, of_book),
            Self::OrderBook => output_schema::<kinds::book::OrderBook>(Shape::Symbol, of_book),
            Self::RecentTrades => output_schema::<kinds::trades::RecentTrades>(Shape::Symbol, of_book),
            Self::Klines => output_schema::<kinds::klines::Klines>(Shape::Symbol, of_book),
            Self::ExchangeInfo => output_schema::<kinds::info::RulesOrExchange>(Shape::OneOrSeveral, of_book),
            Self::AveragePrice => output_schema::<kinds::average::AveragePrice>(Shape::OneOrSeveral, of_book),
            Self::OrderBookL1 => output_schema::<kinds::book::BestPrices>(Shape::OneOrSeveral, of_book),
            Self::OrderBookL2 => output_schema::<kinds::depth::MarketDepth>(Shape::Symbol, of_book),
            Self::OrderBookHealth => output_schema::<kinds::book_health::BookHealth>(Shape::Symbol, of_book),
            Self::OrderFlow => output_schema::<kinds::flow::OrderFlow>(Shape::Symbol, of_book),
            Self::VolumeProfile => output_schema::<kinds::profile::Profile>(Shape::Symbol, of_book),
            Self::Anomalies => output_schema::<kinds::anomalies::MarketAnomalies>(Shape::Symbol, of_book),
            Self::MicrostructureHealth => output_schema::<kinds::health::MarketHealth>(Shape::Symbol, of_book),
            Self::LiquidityVacuums => output_schema::<kinds::vacuums::LiquidityVacuums>(Shape::Symbol, of_book),
            Self::CostToTrade => output_schema::<kinds::cost::CostToTrade>(Shape::Symbol, of_book),
            Self::CompareMarkets => output_schema::<kinds::compare::Comparison>(Shape::Several, of_book),
            Self::TopMarkets => output_schema::<kinds::ranking::TopMarkets>(Shape::AllMarkets, of_book),
        }
    }

    pub(super) fn spec(self) -> ToolSpec {
        let (name, title, description) = self.texts();
        let (properties, required) = self.arguments();
        ToolSpec {
            name: name.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            input_schema: object(json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })),
            output_schema: self.output_schema(),
            hints: READ_LIVE,
            icon: None,
            display: CallDisplay::default(),
            aliases: vec![
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
            ],
        }
    }
}

fn symbol() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "description": "The symbol on Binance, for example BTCUSDT (base and quote asset together); BTC/USDT is understood.",
    })
}

fn symbols(fewest: usize) -> Value {
    json!({
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": 64},
        "minItems": fewest,
        "maxItems": MAX_SYMBOLS,
        "description": format!("Several symbols at once, at most {MAX_SYMBOLS}, for example [\"BTCUSDT\", \"ETHUSDT\"]."),
    })
}

fn whole(meaning: &str, low: u32, high: u32, default: u32) -> Value {
    json!({
        "type": "integer", "minimum": low, "maximum": high, "default": default,
        "description": format!("{meaning} ({low}-{high}, default {default})."),
    })
}

/// As text, which every host can send: numbers are taken as well.
fn time(meaning: &str) -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": 64,
        "description": format!("{meaning}. A time such as 2026-11-15T00:00:00Z, a day such as 2026-11-15 (UTC), or milliseconds since 1970."),
    })
}

fn decimal(meaning: &str, example: &str) -> Value {
    json!({
        "type": "string",
        "pattern": r"^[0-9]{1,20}(\.[0-9]{1,8})?$",
        "description": format!("{meaning}. A decimal number above zero with at most 8 places after the point, for example \"{example}\"."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_takes_every_tool() {
        for form in Form::ALL {
            let spec = form.spec();
            assert_eq!(tribune_core::lint::faults(&spec), Vec::<String>::new(), "{}", spec.name);
            assert!(spec.name.starts_with("binance_"), "{}", spec.name);
        }
    }

    /// Models read all of them: what they take of a context is bounded.
    #[test]
    fn output_schemas_stay_small() {
        let sizes = Form::ALL.map(|form| {
            let schema = Value::Object(form.output_schema()).to_string();
            (form, schema.len())
        });
        let all: usize = sizes.iter().map(|(_, size)| size).sum();
        assert!(all <= 21_000, "{all}: {sizes:?}");
    }
}
