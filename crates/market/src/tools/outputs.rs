//! What each tool gives: where it is from, and the figures that it always has, from one table.

use serde_json::{Map, Value, json};
use tribune_core::JsonObject;
use tribune_core::wire::object;

use super::forms::Form;

/// What every answer about one thing has. A `?` may be null; what begins with `~` is not always there.
const COMMON: &[&str] = &[
    "id string",
    "title string",
    "url string",
    "quote_asset string",
    "venue string",
    "source string",
    "exchange_time string?",
    "received_time string",
    "age_ms integer",
    "~simulated string",
    "~clock_note string",
];
const OF_SYMBOL: &[&str] = &["symbol string", "base_asset string"];
const OF_BOOK: &[&str] = &[
    "book_state string",
    "~book_state_reason string",
    "last_update_id integer",
];

const RESULTS: &str = "One for each symbol, with the figures that one alone has.";
const FAILED: &str = "Symbols without an answer, and why.";
const NUMBERS: &str = "Prices, sizes and money are decimal strings. null is not known; a reason says why.";

impl Form {
    /// Figures of its answer, in the notation of [`COMMON`].
    const fn figures(self) -> &'static [&'static str] {
        match self {
            Self::Ticker => &[
                "last_price string?",
                "price_change string?",
                "price_change_pct number?",
                "open_price string?",
                "high_price string?",
                "low_price string?",
                "volume_base string",
                "quote_volume string",
                "trades integer?",
                "window_start string",
                "window_end string",
                "~best_bid object?",
                "~best_ask object?",
                "~spread_bps number?",
            ],
            Self::OrderBook => &[
                "best_bid object?",
                "best_ask object?",
                "mid string?",
                "spread_bps number?",
                "bids_total object",
                "asks_total object",
                "bids object",
                "asks object",
            ],
            Self::RecentTrades => &["~trades_used integer", "~summary object", "~trades object"],
            Self::Klines => &[
                "interval string",
                "candles integer",
                "last_closed boolean?",
                "~high_price string?",
                "~low_price string?",
                "realised_volatility object",
                "average_true_range object",
                "klines object",
            ],
            Self::ExchangeInfo => &[
                "status string",
                "tick_size string?",
                "step_size string?",
                "min_quantity string?",
                "max_quantity string?",
                "min_notional string?",
                "max_notional string?",
                "~symbols_traded integer",
                "~request_weight_used_this_minute integer",
                "~request_weight_budget_a_minute integer",
            ],
            Self::AveragePrice => &["average_price string?", "window_minutes integer", "window_end string?"],
            Self::OrderBookL1 => &[
                "best_bid object?",
                "best_ask object?",
                "mid string?",
                "spread string?",
                "spread_bps number?",
                "microprice string?",
                "imbalance_l1 number?",
            ],
            Self::OrderBookL2 => &[
                "mid string?",
                "spread_bps number?",
                "microprice string?",
                "top_levels object",
                "bands array|object",
                "cost_to_trade object",
                "bids object",
                "asks object",
            ],
            Self::OrderBookHealth => &[
                "mid string?",
                "spread_bps number?",
                "imbalance_l1 number?",
                "top_levels object",
                "bands array|object",
                "walls object",
            ],
            Self::OrderFlow => &[
                "~window_secs number",
                "~trades integer",
                "~buy_volume_base string",
                "~sell_volume_base string",
                "~net_flow_base string",
                "~cvd_base string",
                "~orders_per_sec number?",
                "~vwap string?",
                "~complete boolean",
                "covered_secs number",
                "order_flow_imbalance object",
                "price_impact object",
            ],
            Self::VolumeProfile => &[
                "hours integer",
                "poc string",
                "vah string",
                "val string",
                "value_area_share number?",
                "vwap string?",
                "total_volume_base string",
                "coverage number?",
                "volume_by_row object",
            ],
            Self::Anomalies => &[
                "book_state string",
                "found integer",
                "checked integer",
                "checks array",
                "candles object",
            ],
            Self::MicrostructureHealth => &[
                "score number?",
                "weights_used number",
                "complete boolean",
                "components array",
            ],
            Self::LiquidityVacuums => &[
                "hours integer",
                "vacuums array",
                "median_row_base string",
                "coverage number?",
            ],
            Self::CostToTrade => &[
                "side string",
                "filled boolean",
                "filled_base string",
                "filled_quote string",
                "mid string?",
                "vwap string",
                "worst_price string",
                "slippage_bps number?",
                "cost_bps number?",
                "cost_quote string?",
                "levels_used integer",
                "complete boolean",
                "~order_note string",
            ],
            Self::CompareMarkets => &[
                "book_state string",
                "last_price string?",
                "price_change_pct number?",
                "high_price string?",
                "low_price string?",
                "quote_volume string?",
                "mid string?",
                "spread_bps number?",
                "depth_25_bps object",
                "realised_volatility_24h_pct number?",
                "reasons object?",
            ],
            Self::TopMarkets => &[
                "sort_by string",
                "markets_counted integer",
                "rose integer",
                "fell integer",
                "unchanged integer",
                "quote_volume string?",
                "volume_share_of_first_10_pct number?",
                "markets object",
            ],
        }
    }

    const fn is_of_book(self) -> bool {
        matches!(
            self,
            Self::OrderBook
                | Self::OrderBookL1
                | Self::OrderBookL2
                | Self::OrderBookHealth
                | Self::MicrostructureHealth
                | Self::CostToTrade
        )
    }

    /// Whether it may be asked of several symbols at once, and then gives a list.
    const fn takes_several(self) -> bool {
        matches!(
            self,
            Self::Ticker | Self::AveragePrice | Self::ExchangeInfo | Self::OrderBookL1
        )
    }

    /// What one answer has, and which of it always.
    fn one(self) -> (JsonObject, Vec<&'static str>) {
        let of_symbol: &[&str] = if self == Self::TopMarkets { &[] } else { OF_SYMBOL };
        let of_book: &[&str] = if self.is_of_book() { OF_BOOK } else { &[] };
        let all = [COMMON, of_symbol, of_book, self.figures()].concat();
        let mut properties = Map::new();
        let mut always = Vec::new();
        for (name, kinds) in all.iter().filter_map(|figure| figure.split_once(' ')) {
            let bare = name.trim_start_matches('~');
            if bare == name {
                always.push(bare);
            }
            properties.insert(bare.to_owned(), json!({"type": type_of(kinds)}));
        }
        (properties, always)
    }

    pub(super) fn output(self) -> JsonObject {
        let (mut properties, always) = self.one();
        let failed = json!({"type": "array", "items": {"type": "object"}, "description": FAILED});
        if self == Self::CompareMarkets {
            let row = json!({"type": "object", "properties": properties, "required": always});
            return object(json!({
                "type": "object",
                "description": NUMBERS,
                "properties": {"results": {"type": "array", "items": row}, "failed": failed},
                "required": ["results", "failed"],
            }));
        }
        if self.takes_several() {
            let results = json!({"type": "array", "items": {"type": "object"}, "description": RESULTS});
            properties.insert("results".to_owned(), results);
            properties.insert("failed".to_owned(), failed);
            return object(json!({"type": "object", "description": NUMBERS, "properties": properties}));
        }
        object(json!({"type": "object", "description": NUMBERS, "properties": properties, "required": always}))
    }
}

/// `string?` is a string or null, `array|object` either.
fn type_of(kinds: &str) -> Value {
    let bare = kinds.trim_end_matches('?');
    let null = (bare != kinds).then_some("null");
    let kinds: Vec<&str> = bare.split('|').chain(null).collect();
    match kinds.as_slice() {
        [one] => json!(one),
        several => json!(several),
    }
}
