//! The report of one symbol: canonical as JSON, field for field as `schema.json` beside this file says.
//!
//! Prices, quantities and money are decimal strings; ratios, percentages and basis points are numbers with ten
//! places. What cannot be computed is null, and its section has the reason.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::analytics::{BookSide, Severity};

/// Grows in its first number when a reader of the one before would misread.
pub const SCHEMA_VERSION: &str = "1.0";
/// Levels a side that a report lists.
pub const LISTED_LEVELS: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    #[serde(rename = "schemaVersion")]
    pub schema_version: String,
    pub writer: Writer,
    /// When it was written last, by the writer's wall clock.
    #[serde(rename = "updatedAt")]
    pub updated_at: String,
    pub symbol: String,
    pub base_asset: String,
    pub quote_asset: String,
    pub venue: String,
    /// What labels everything that does not come from the exchange itself.
    pub simulated: Option<String>,
    /// When the fast fields were computed.
    pub generated_at: String,
    /// How long ago the exchange last confirmed what is here, by clocks that do not jump. Grows until it is read.
    pub data_age_ms: u64,
    pub ingestion: Ingestion,
    pub last_price: Option<Decimal>,
    pub change_24h_pct: Option<f64>,
    pub high_24h: Option<Decimal>,
    pub low_24h: Option<Decimal>,
    /// In the base asset.
    pub volume_24h: Option<Decimal>,
    pub quote_volume_24h: Option<Decimal>,
    pub best_bid: Option<Level>,
    pub best_ask: Option<Level>,
    pub spread_bps: Option<f64>,
    pub mid_price: Option<Decimal>,
    pub micro_price: Option<Decimal>,
    pub depth: Option<Depth>,
    pub flow: Option<Flow>,
    pub liquidity: Liquidity,
    /// What was found; empty if every check that could be made found nothing.
    pub anomalies: Option<Vec<Anomaly>>,
    pub health: Option<Health>,
    pub sections: Sections,
}

/// Who wrote it. Of two reports the one with the larger token is newer, of one token the one with the larger sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    #[serde(rename = "nodeId")]
    pub node_id: String,
    #[serde(rename = "writerToken")]
    pub writer_token: u64,
    pub sequence: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ingestion {
    pub status: IngestionStatus,
    /// The last change of the book or trade, by the exchange's clock where it says so.
    pub last_update: Option<String>,
    /// Why it is not `ok`.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IngestionStatus {
    Ok,
    Degraded,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    pub price: Decimal,
    pub qty: Decimal,
}

/// The best levels of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Depth {
    /// Best first, at most [`LISTED_LEVELS`].
    pub bids: Vec<Level>,
    pub asks: Vec<Level>,
    /// Of the levels listed.
    pub total_bid_qty: Decimal,
    pub total_ask_qty: Decimal,
    /// (bid − ask)/(bid + ask) of the totals.
    pub imbalance: Option<f64>,
    /// The update of the exchange after which the book was so.
    pub last_update_id: u64,
}

/// Trades of a window up to the moment of computing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Trades of the last ten seconds, divided by ten.
    pub orders_per_sec: Option<f64>,
    /// What buyers took less what sellers gave, in the base asset.
    pub net_flow: Decimal,
    pub buy_volume: Decimal,
    pub sell_volume: Decimal,
    pub trade_count: u64,
    pub window_sec: u32,
    pub window_end_ms: i64,
    /// Whether every trade of the window was seen.
    pub complete: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Liquidity {
    pub walls: Option<Vec<Wall>>,
    pub vacuums: Option<Vec<Vacuum>>,
    pub volume_profile: Option<VolumeProfile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    pub side: BookSide,
    pub price: Decimal,
    pub qty: Decimal,
    pub severity: Severity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vacuum {
    pub from: Decimal,
    pub to: Decimal,
    pub severity: Severity,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VolumeProfile {
    #[serde(rename = "POC")]
    pub poc: Decimal,
    #[serde(rename = "VAH")]
    pub vah: Decimal,
    #[serde(rename = "VAL")]
    pub val: Decimal,
    pub window_sec: u32,
    pub window_end_ms: i64,
    pub trade_count: u64,
    /// The share of the window for which there are trades: below 1 while the window fills.
    pub coverage: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anomaly {
    #[serde(rename = "type")]
    pub kind: String,
    pub severity: Severity,
    pub note: String,
}

/// One score of published parts: a convention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    pub score: Option<f64>,
    /// The sum of the weights that the score is taken over; 1 if every component has an input.
    pub weights_used: f64,
    pub components: Vec<Component>,
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Component {
    pub name: String,
    pub input: Option<f64>,
    pub input_unit: String,
    pub score: Option<f64>,
    pub weight: f64,
    pub contribution: Option<f64>,
    /// How the input becomes the score.
    pub mapping: String,
    pub reason: Option<String>,
}

/// When each part was computed, of which moment it is, and why something in it is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sections {
    pub ticker: Section,
    pub book: Section,
    pub flow: Section,
    pub walls: Section,
    pub vacuums: Section,
    pub volume_profile: Section,
    pub anomalies: Section,
    pub health: Section,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// By the writer's wall clock.
    pub computed_at: Option<String>,
    /// Of the data, by the exchange's clock; null where the exchange gives none.
    pub exchange_time: Option<String>,
    /// How old the data is, by clocks that do not jump. Grows until it is read.
    pub age_ms: Option<u64>,
    pub reason: Option<String>,
}

impl Sections {
    pub fn all_mut(&mut self) -> [&mut Section; 8] {
        [
            &mut self.ticker,
            &mut self.book,
            &mut self.flow,
            &mut self.walls,
            &mut self.vacuums,
            &mut self.volume_profile,
            &mut self.anomalies,
            &mut self.health,
        ]
    }
}
