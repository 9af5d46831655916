//! What a report should say, from the recorded lines alone: integers of 10⁻⁸ where figures are exact, floating point
//! where they are ratios. It shares no code with what it judges.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::oracle::{Book, units};

/// What the issue allows.
pub const ALLOWED: f64 = 1e-8;

/// Figures that are judged, one of each list.
pub const FIGURES: &[&str] = &[
    "/last_price",
    "/change_24h_pct",
    "/high_24h",
    "/low_24h",
    "/volume_24h",
    "/quote_volume_24h",
    "/best_bid/price",
    "/best_bid/qty",
    "/best_ask/price",
    "/best_ask/qty",
    "/spread_bps",
    "/mid_price",
    "/micro_price",
    "/depth/bids/3/price",
    "/depth/bids/3/qty",
    "/depth/asks/7/price",
    "/depth/asks/7/qty",
    "/depth/total_bid_qty",
    "/depth/total_ask_qty",
    "/depth/imbalance",
    "/depth/last_update_id",
    "/flow/orders_per_sec",
    "/flow/net_flow",
    "/flow/buy_volume",
    "/flow/sell_volume",
    "/flow/trade_count",
    "/liquidity/walls/0/price",
    "/liquidity/walls/0/qty",
    "/liquidity/vacuums/0/from",
    "/liquidity/vacuums/0/to",
    "/liquidity/volume_profile/POC",
    "/liquidity/volume_profile/VAH",
    "/liquidity/volume_profile/VAL",
    "/liquidity/volume_profile/trade_count",
    "/liquidity/volume_profile/coverage",
    "/health/score",
    "/health/components/0/input",
    "/health/components/0/score",
    "/health/components/1/score",
    "/health/components/2/input",
    "/health/components/3/input",
    "/health/components/4/score",
    "/health/components/5/score",
];

/// Decimal text in 10⁻¹⁰.
pub fn parts(text: &str) -> i128 {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    assert!(fraction.len() <= 10, "{text} has more places");
    let number: i128 = format!("{whole}{fraction:0<10}").parse().expect("a number");
    sign * number
}

/// The same back.
pub fn text(parts: i128) -> String {
    let (whole, fraction) = (parts.abs() / 10_000_000_000, parts.abs() % 10_000_000_000);
    format!("{}{whole}.{fraction:010}", if parts < 0 { "-" } else { "" })
}

#[derive(Debug, Clone, Copy)]
pub struct Trade {
    pub time: i64,
    pub price: i128,
    pub quantity: i128,
    pub bought: bool,
}

/// A level that was large when last looked at: what rested there, and since when.
#[derive(Debug, Clone, Copy)]
pub struct Large {
    pub quantity: i128,
    pub since: i64,
    pub times_median: f64,
}

#[derive(Debug, Default)]
pub struct Looks {
    pub started: i64,
    pub last: i64,
    /// Bids, then asks; `None` where there were too few levels.
    pub large: [Option<BTreeMap<i128, Large>>; 2],
}

pub struct Truth {
    pub book: Book,
    pub trades: Vec<Trade>,
    /// From when on all trades are known.
    pub known_from: i64,
    pub tick: i128,
    pub ticker: Option<Value>,
    pub looks: Looks,
}

/// What differs, in words.
#[derive(Default)]
pub struct Wrong(pub Vec<String>);

impl Wrong {
    /// An exact figure, in 10⁻⁸.
    pub fn exact(&mut self, what: &str, result: &Value, expected: i128) {
        if result.as_str().map(parts) != Some(expected * 100) {
            self.0.push(format!("{what} is {result}, not {expected} of 10^-8"));
        }
    }

    pub fn near(&mut self, what: &str, result: &Value, expected: f64) {
        self.within(what, result, expected, ALLOWED);
    }

    /// A figure that is reported with fewer places.
    pub fn within(&mut self, what: &str, result: &Value, expected: f64, off: f64) {
        if !result.as_f64().is_some_and(|result| (result - expected).abs() <= off) {
            self.0.push(format!("{what} is {result}, not {expected}"));
        }
    }

    pub fn same(&mut self, what: &str, result: &Value, expected: impl Into<Value>) {
        let expected = expected.into();
        if *result != expected {
            self.0.push(format!("{what} is {result}, not {expected}"));
        }
    }
}

impl Truth {
    pub fn new(snapshot: &Value, opened: i64, tick: i128) -> Self {
        Self {
            book: Book::of(snapshot),
            trades: Vec::new(),
            known_from: opened,
            tick,
            ticker: None,
            looks: Looks::default(),
        }
    }

    /// The data of one line.
    pub fn heard(&mut self, data: &Value, symbol: &str) {
        if let Some(tickers) = data.as_array() {
            let own = tickers.iter().find(|ticker| ticker["s"] == symbol);
            self.ticker = own.cloned().or(self.ticker.take());
        } else if data["e"] == "depthUpdate" {
            self.book.apply(data);
        } else if data["e"] == "trade" {
            let trade = Trade {
                time: data["T"].as_i64().expect("a time"),
                price: units(&data["p"]),
                quantity: units(&data["q"]),
                bought: data["m"] == false,
            };
            if self.trades.is_empty() {
                // Single trades are counted from the first one on.
                self.known_from = self.known_from.max(trade.time);
            }
            self.trades.push(trade);
        }
    }

    /// Those of the milliseconds after `end − millis`, up to `end`.
    pub fn window(&self, end: i64, millis: i64) -> impl Iterator<Item = &Trade> {
        let within = move |trade: &&Trade| trade.time > end - millis && trade.time <= end;
        self.trades.iter().filter(within)
    }

    pub fn knows_since(&self, start: i64) -> bool {
        self.known_from <= start + 1
    }

    /// Whether the recording went on without a pause until then.
    pub fn is_fresh(report: &Value) -> bool {
        report["data_age_ms"].as_u64().is_some_and(|age| age <= 1_000)
    }

    /// Everything that is wrong with a report of this moment.
    pub fn differences(&self, report: &Value) -> Vec<String> {
        let mut wrong = Wrong::default();
        self.judge_ticker(report, &mut wrong);
        self.judge_book(report, &mut wrong);
        self.judge_flow(report, &mut wrong);
        self.judge_walls(&report["liquidity"]["walls"], &mut wrong);
        self.judge_profile(report, &mut wrong);
        self.judge_health(report, &mut wrong);
        wrong.0
    }
}
