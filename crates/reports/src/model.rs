//! The report of one symbol: one type, from which the JSON, the schema, the text, the page and the citation record
//! derive. The comment of a field is its description in the schema.
//!
//! Prices, quantities and money are decimal strings; ratios, percentages and basis points are numbers with ten
//! places. What cannot be computed is null, and its section has the reason.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use tribune_analytics::{AnomalyKind, BookSide, Severity};
use tribune_binance::{Price, Quantity};
use tribune_core::JsonObject;
use tribune_market_parts::tool_schema;

/// Grows in its first number when a reader of the one before would misread.
pub const SCHEMA_VERSION: &str = "1.0";
/// Levels a side that a report lists.
pub const LISTED_LEVELS: usize = 20;

/// The JSON Schema of a report.
pub fn schema() -> JsonObject {
    tool_schema::<Report>(SchemaSettings::draft2020_12().for_serialize())
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this schema; a reader of 1.0 can read every 1.x.
    #[serde(rename = "schemaVersion")]
    pub schema_version: String,
    /// Who wrote the report.
    pub writer: Writer,
    /// When the report was written last, by the writer's clock.
    #[serde(rename = "updatedAt")]
    pub updated_at: String,
    /// The symbol as the exchange writes it.
    pub symbol: String,
    /// The asset that is traded; quantities are amounts of it.
    pub base_asset: String,
    /// The asset that prices are in.
    pub quote_asset: String,
    /// The exchange.
    pub venue: String,
    /// A label that says so if the data do not come from a real market; null if they do.
    pub simulated: Option<String>,
    /// When the fast figures were computed, by the writer's clock.
    pub generated_at: String,
    /// Milliseconds since the exchange last confirmed these values, by a monotonic clock.
    pub data_age_ms: u64,
    /// How fresh the data are.
    pub ingestion: Ingestion,
    /// Price of the last trade, in the quote asset.
    pub last_price: Option<Decimal>,
    /// Change from the first price of 24 hours to last_price in percent, to ten places.
    pub change_24h_pct: Option<f64>,
    /// Highest price of 24 hours, in the quote asset.
    pub high_24h: Option<Decimal>,
    /// Lowest price of 24 hours, in the quote asset.
    pub low_24h: Option<Decimal>,
    /// What was traded in 24 hours, in the base asset.
    pub volume_24h: Option<Decimal>,
    /// What was traded in 24 hours, in the quote asset.
    pub quote_volume_24h: Option<Decimal>,
    /// The highest price that is bid.
    pub best_bid: Option<Level>,
    /// The lowest price that is asked.
    pub best_ask: Option<Level>,
    /// Best ask less best bid, in basis points of the mid price, to ten places.
    pub spread_bps: Option<f64>,
    /// Half way between best bid and best ask, in the quote asset, exact.
    pub mid_price: Option<Decimal>,
    /// Best bid and ask, each weighted by the size of the other, in the quote asset, to ten places.
    pub micro_price: Option<Decimal>,
    /// The best levels of the book.
    pub depth: Option<Depth>,
    /// What was traded in the last seconds.
    pub flow: Option<Flow>,
    /// Where much rests or little was traded.
    pub liquidity: Liquidity,
    /// What differs from the symbol's own past: hints; empty if the checks that could be made found nothing.
    pub anomalies: Option<Vec<Anomaly>>,
    /// One score of published parts: a convention.
    pub health: Option<Health>,
    /// When each part was computed, and why something in it is null.
    pub sections: Sections,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Writer {
    /// The process that wrote it.
    #[serde(rename = "nodeId")]
    pub node_id: String,
    /// Grows with every change of the writer of the symbol; the report with the larger token is newer.
    #[serde(rename = "writerToken")]
    pub writer_token: u64,
    /// Grows with every report of one token; the one with the larger sequence is newer.
    pub sequence: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ingestion {
    /// ok, degraded (data older than 1 s for 2 s), or down (data older than 5 s).
    pub status: IngestionStatus,
    /// The last change of the book or trade, by the exchange's clock where it says so.
    pub last_update: Option<String>,
    /// Why the status is not ok; null if it is.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IngestionStatus {
    Ok,
    Degraded,
    #[default]
    Down,
}

/// One level of a book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Its price, in the quote asset.
    pub price: Price,
    /// What rests there, in the base asset.
    pub qty: Quantity,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Depth {
    /// Bids, best first.
    pub bids: Vec<Level>,
    /// Asks, best first.
    pub asks: Vec<Level>,
    /// Sum of the bids listed, in the base asset.
    pub total_bid_qty: Decimal,
    /// Sum of the asks listed, in the base asset.
    pub total_ask_qty: Decimal,
    /// (bid - ask)/(bid + ask) of the totals, from -1 to 1, to ten places.
    pub imbalance: Option<f64>,
    /// The exchange's update after which the book was so.
    pub last_update_id: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Single trades of the last ten seconds of the window, counted by their ids, divided by ten; null if some are missing.
    pub orders_per_sec: Option<f64>,
    /// What buyers took less what sellers gave, in the base asset.
    pub net_flow: Decimal,
    /// What buyers took from asks, in the base asset.
    pub buy_volume: Decimal,
    /// What sellers gave to bids, in the base asset.
    pub sell_volume: Decimal,
    /// Single trades, by their ids.
    pub trade_count: u64,
    /// Length of the window in seconds.
    pub window_sec: u32,
    /// End of the window, which belongs to it, in milliseconds since 1970 by the exchange's clock.
    pub window_end_ms: i64,
    /// Whether every trade of the window was seen; if not, figures are of those that were.
    pub complete: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Liquidity {
    /// Levels at least ten times the median of their side that have stayed for five seconds, largest first: hints.
    pub walls: Option<Vec<Wall>>,
    /// Price ranges within the volume profile in which little was traded, lowest first.
    pub vacuums: Option<Vec<Vacuum>>,
    /// At which prices volume was traded.
    pub volume_profile: Option<VolumeProfile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wall {
    /// The side of the book.
    pub side: BookSide,
    /// Its price, in the quote asset.
    pub price: Decimal,
    /// What rests there, in the base asset.
    pub qty: Decimal,
    /// Size: medium from 20 times the median, high from 50.
    pub severity: Severity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vacuum {
    /// Its lower end, in the quote asset.
    pub from: Decimal,
    /// Its upper end, in the quote asset.
    pub to: Decimal,
    /// Emptiness: medium if 95% below the median row, high if 99%.
    pub severity: Severity,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeProfile {
    /// Middle of the row with the largest volume, in the quote asset.
    #[serde(rename = "POC")]
    pub poc: Decimal,
    /// Upper end of the rows around POC that have 70% of the volume, in the quote asset.
    #[serde(rename = "VAH")]
    pub vah: Decimal,
    /// Lower end of the rows around POC that have 70% of the volume, in the quote asset.
    #[serde(rename = "VAL")]
    pub val: Decimal,
    /// Length of the window in seconds.
    pub window_sec: u32,
    /// End of the window in milliseconds since 1970 by the exchange's clock.
    pub window_end_ms: i64,
    /// Single trades of the window, by their ids.
    pub trade_count: u64,
    /// Share of the window whose trades are complete, to ten places.
    pub coverage: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Anomaly {
    /// What was compared.
    #[serde(rename = "type")]
    #[schemars(with = "AnomalyKind")]
    pub kind: String,
    /// How far beyond the threshold: medium from twice, high from four times.
    pub severity: Severity,
    /// The figures, and what they are.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// From 0 to 100: scores times weights, over the weights used.
    pub score: Option<f64>,
    /// Sum of the weights of the components that have a score.
    pub weights_used: f64,
    /// What the score is made of.
    pub components: Vec<Component>,
    /// What the score is not.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// spread, depth, balance, flow, anomalies or freshness.
    pub name: String,
    /// The figure that is scored, in the unit of input_unit.
    pub input: Option<f64>,
    /// What the input is, and its unit.
    pub input_unit: String,
    /// From 0 to 100.
    pub score: Option<f64>,
    /// Its weight; all weights add up to 1.
    pub weight: f64,
    /// Its part of the score, in points of the score.
    pub contribution: Option<f64>,
    /// How the input becomes the score.
    pub mapping: String,
    /// Why the score is null, or what limits the input.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sections {
    /// Of last_price and the figures of 24 hours.
    pub ticker: Section,
    /// Of best prices, what follows from them, and depth.
    pub book: Section,
    /// Of flow.
    pub flow: Section,
    /// Of liquidity.walls.
    pub walls: Section,
    /// Of liquidity.vacuums.
    pub vacuums: Section,
    /// Of liquidity.volume_profile.
    pub volume_profile: Section,
    /// Of anomalies.
    pub anomalies: Section,
    /// Of health.
    pub health: Section,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Section {
    /// When it was computed, by the writer's clock, in UTC; null if it was not yet.
    pub computed_at: Option<String>,
    /// Of which moment the data are, by the exchange's clock, in UTC; null where the exchange gives none.
    pub exchange_time: Option<String>,
    /// Age of the data in milliseconds, by a clock that does not jump; null if there are none.
    pub age_ms: Option<u64>,
    /// Why something in it is null, partial or old; null if there is nothing to say.
    pub reason: Option<String>,
}

impl Sections {
    pub fn all(&self) -> [&Section; 8] {
        let Self { ticker, book, flow, walls, vacuums, volume_profile, anomalies, health } = self;
        [ticker, book, flow, walls, vacuums, volume_profile, anomalies, health]
    }
}

impl Report {
    /// Every age that is known, in the order of the JSON, to let it grow.
    pub fn ages_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        let Sections { ticker, book, flow, walls, vacuums, volume_profile, anomalies, health } = &mut self.sections;
        let sections = [ticker, book, flow, walls, vacuums, volume_profile, anomalies, health];
        let ages = sections.into_iter().filter_map(|section| section.age_ms.as_mut());
        std::iter::once(&mut self.data_age_ms).chain(ages)
    }
}
