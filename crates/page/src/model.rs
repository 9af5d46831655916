//! What a page shows of a document. A source fills these types; the other modules draw them.
//!
//! Documents are named by the text of their id, so that this crate depends on no other: the caller that draws a page passes a
//! function that turns an id into an address ([`Hrefs`]).

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;

/// Turns the id of a document into the address of its page.
pub type Hrefs<'a> = &'a dyn Fn(&str) -> String;

/// How a document is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum View {
    Reading(Box<Reading>),
    Board(Box<Board>),
}

/// A text to be read: a speech, a note.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    pub format: TextFormat,
    /// The author or speaker: `Jane Citizen`.
    pub byline: Option<String>,
    /// More about the author: party, seat, office.
    pub byline_details: Vec<String>,
    pub date: Option<Date>,
    /// The reference: chamber, debate, page, file.
    pub reference: Option<String>,
    /// How to cite it, in one line, without the address.
    pub cite_as: String,
    /// Further metadata as `(label, value)`.
    pub facts: Vec<(String, String)>,
    /// The neighbours in the same record or folder.
    pub previous: Option<Neighbour>,
    pub next: Option<Neighbour>,
    /// Other documents, by what they have in common: `("More by Jane Citizen", …)`.
    pub groups: Vec<(String, Vec<Neighbour>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextFormat {
    /// Paragraphs are separated by blank lines.
    #[default]
    Plain,
    Markdown,
}

/// A link to another document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Neighbour {
    /// The document's id.
    pub id: String,
    pub title: String,
    /// A date or a file: distinguishes documents with the same title.
    pub note: Option<String>,
}

/// Figures, charts and tables about one thing: a market, a report, a task.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'static"))]
pub struct Board {
    /// What it is about: `BTC/USDT`, a task's title. Replaces the document's title on the page.
    pub title: String,
    /// `Bitcoin / Tether`.
    pub subtitle: Option<String>,
    pub badges: Vec<Badge>,
    pub headline: Option<Headline>,
    /// Notes above the figures, such as why a book is not live.
    pub notes: Vec<String>,
    pub panels: Vec<Panel>,
    /// Documents about the same subject; this one may be among them.
    pub links: Vec<Neighbour>,
    /// Whether it changes by itself, so that its page is updated live.
    pub is_live: bool,
    /// Whether the page shows the document's full text below, folded.
    pub shows_text: bool,
}

/// A short label for the whole or a part.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Badge {
    pub label: String,
    #[serde(default)]
    pub tone: Tone,
    /// An explanation of the label.
    pub meaning: Option<String>,
}

/// The tone of a value; never shown by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Warning,
    Bad,
    /// From a simulated exchange: SIMULATED.
    Simulated,
    /// Rising or buying, and falling or selling: distinguishable without colour.
    Up,
    Down,
}

/// The main figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Headline {
    pub label: String,
    pub value: Amount,
    /// `+1.703 %`, and its period.
    pub change: Option<(Amount, Tone)>,
    pub as_of: Option<Timestamp>,
    /// Its age when it was read.
    pub age_ms: Option<u64>,
    /// Further figures, in a row.
    pub figures: Vec<Figure>,
}

/// An exact decimal (`-1234.50`), whose digits pages group, or words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Amount {
    pub text: String,
    pub unit: Option<String>,
}

/// One named value.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Figure {
    pub label: String,
    /// `None` if it is unknown; `note` then says why.
    pub value: Option<Amount>,
    pub note: Option<String>,
    pub tone: Tone,
}

/// One part of a board, updated as a whole while the page is live.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Panel {
    /// Identifies the panel within its board across updates; part of an HTML id.
    pub key: &'static str,
    pub title: String,
    /// Window, count, units, and standing (exact, descriptive, a convention, a hint).
    pub note: Option<String>,
    pub width: Width,
    pub content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Width {
    #[default]
    Half,
    Whole,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    Figures(Vec<Figure>),
    Table(Table),
    Candles(Candles),
    Depth(DepthChart),
    Profile(ProfileChart),
    Lines(Lines),
    Ladder(Ladder),
    Text(String),
    Markdown(String),
    /// Why there is nothing to show.
    Missing(String),
}

/// Rows of the same kind.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Column {
    pub title: String,
    /// Numbers are right-aligned.
    pub is_number: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
    pub link: Option<String>,
    /// Length of a bar behind the number, 0 to 1.
    pub share: Option<f64>,
}

/// Candles with volume, oldest first.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Candles {
    pub interval: String,
    pub candles: Vec<Candle>,
    pub price_unit: String,
    pub volume_unit: String,
    /// Decimal places of prices.
    pub price_places: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Candle {
    pub opened: Timestamp,
    pub open: f64,
    pub high: f64,
    pub low: f64,
    pub close: f64,
    pub volume: f64,
    /// Whether it can still change.
    pub is_open: bool,
}

/// Cumulative quantity from the best price outwards, best first.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct DepthChart {
    /// `(price, quantity up to it)`.
    pub bids: Vec<(f64, f64)>,
    pub asks: Vec<(f64, f64)>,
    pub price_unit: String,
    pub quantity_unit: String,
    pub price_places: usize,
}

/// Volume by price, lowest first.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ProfileChart {
    pub bins: Vec<ProfileBin>,
    /// The point of control; the value area follows.
    pub poc: Option<f64>,
    pub value_area: Option<(f64, f64)>,
    pub last_price: Option<f64>,
    pub price_unit: String,
    pub volume_unit: String,
    pub price_places: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct ProfileBin {
    pub from: f64,
    pub to: f64,
    pub volume: f64,
}

/// One or more lines over the same time.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Lines {
    pub unit: String,
    pub places: usize,
    /// Fixed ends of the scale, such as −1 to 1 for imbalance.
    pub range: Option<(f64, f64)>,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Line {
    pub label: String,
    /// `None` is a gap.
    pub points: Vec<(Timestamp, Option<f64>)>,
}

/// The best levels of an order book.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Ladder {
    /// Best first.
    pub bids: Vec<Rung>,
    pub asks: Vec<Rung>,
    pub spread: Option<Amount>,
    pub price_unit: String,
    pub quantity_unit: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Rung {
    /// Exact decimals.
    pub price: String,
    pub quantity: String,
    /// The quantity up to this level.
    pub total: String,
    /// `total` as a share of the largest total of both sides, 0 to 1.
    pub share: f64,
}

impl Amount {
    pub fn new(text: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { text: text.into(), unit: Some(unit.into()) }
    }

    /// A number without a unit, or words.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), unit: None }
    }
}

impl Figure {
    pub fn new(label: impl Into<String>, value: Amount) -> Self {
        Self { label: label.into(), value: Some(value), ..Self::default() }
    }

    /// An unknown value, and why.
    pub fn unknown(label: impl Into<String>, why: impl Into<String>) -> Self {
        Self { label: label.into(), note: Some(why.into()), ..Self::default() }
    }
}
