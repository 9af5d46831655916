//! What a page shows of a document, besides or instead of its text: the words of sources for pages. A source says what
//! there is to see; how it looks is decided in one place, for all of them.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::id::DocumentId;

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
    /// Whose words they are: `Jane Citizen`.
    pub byline: Option<String>,
    /// What else is said of them: party, seat, office.
    pub byline_details: Vec<String>,
    pub date: Option<Date>,
    /// Where it stands on record: chamber, debate, page, file.
    pub reference: Option<String>,
    /// How to cite it, in one line, without the address.
    pub cite_as: String,
    /// What else is known, as `(label, value)`, for people.
    pub facts: Vec<(String, String)>,
    /// What stands before and after it in the same record or folder.
    pub previous: Option<Neighbour>,
    pub next: Option<Neighbour>,
    /// Other documents, by what they have in common: `("More by Jane Citizen", …)`.
    pub groups: Vec<(String, Vec<Neighbour>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextFormat {
    /// Paragraphs are set apart by blank lines.
    #[default]
    Plain,
    Markdown,
}

/// Another document, to go to.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    pub id: DocumentId,
    pub title: String,
    /// A date, a place: what tells it from others of the same title.
    pub note: Option<String>,
}

/// Figures, charts and tables about one thing: a market, a report, a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Board {
    /// What it is about: `BTC/USDT`, a task's title. Replaces the document's title on the page.
    pub title: String,
    /// `Bitcoin / Tether`.
    pub subtitle: Option<String>,
    pub badges: Vec<Badge>,
    pub headline: Option<Headline>,
    /// What a reader has to know before the figures, such as why a book is not live.
    pub notes: Vec<String>,
    pub panels: Vec<Panel>,
    /// The documents about the same thing; this one may be among them.
    pub links: Vec<Neighbour>,
    /// It changes by itself: a page of it that shows the present goes on showing it.
    pub is_live: bool,
    /// Whether the document's own text is worth showing below: folded, in full.
    pub shows_text: bool,
}

/// One word about the whole, or about a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Badge {
    pub label: String,
    pub tone: Tone,
    /// For those who want to know what the word means.
    pub meaning: Option<String>,
}

/// How something is to be taken; never told by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Warning,
    Bad,
    /// Not from the world: SIMULATED.
    Simulated,
    /// For what rises and buys, and for what falls and sells: a pair that everybody can tell apart.
    Up,
    Down,
}

/// The figure that people came for.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    pub label: String,
    pub value: Amount,
    /// `+1.703 %`, and over which time.
    pub change: Option<(Amount, Tone)>,
    pub as_of: Option<Timestamp>,
    /// How old it was when it was read.
    pub age_ms: Option<u64>,
    /// The next most wanted, in a row.
    pub figures: Vec<Figure>,
}

/// An exact decimal as the source has it (`-1234.50`), or words where there is no number; pages group its digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Amount {
    pub text: String,
    pub unit: Option<String>,
}

/// One named value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    pub label: String,
    /// `None` if it is not known: `note` then says why.
    pub value: Option<Amount>,
    pub note: Option<String>,
    pub tone: Tone,
}

/// One part of a board, renewed as a whole while the page is live.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Tells it from the others of the board, from one moment to the next; fit to be part of an HTML id.
    pub key: &'static str,
    pub title: String,
    /// What it is of: window, count, units, standing (exact, descriptive, a convention, a hint).
    pub note: Option<String>,
    pub width: Width,
    pub content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Width {
    #[default]
    Half,
    Whole,
}

#[derive(Debug, Clone, PartialEq)]
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
    /// Why there is nothing to see.
    Missing(String),
}

/// Rows of the same kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Column {
    pub title: String,
    /// Numbers stand to the right.
    pub is_number: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
    pub link: Option<DocumentId>,
    /// From 0 to 1: a bar behind the number.
    pub share: Option<f64>,
}

/// Candles with volume, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candles {
    pub interval: String,
    pub candles: Vec<Candle>,
    pub price_unit: String,
    pub volume_unit: String,
    /// Digits after the point that prices have.
    pub price_places: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
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

/// Quantity within a price, cumulated from the best price outwards. Best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DepthChart {
    /// `(price, quantity up to it)`.
    pub bids: Vec<(f64, f64)>,
    pub asks: Vec<(f64, f64)>,
    pub price_unit: String,
    pub quantity_unit: String,
    pub price_places: usize,
}

/// Volume by price, lowest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileChart {
    pub bins: Vec<ProfileBin>,
    /// Where most was traded, and the area around it.
    pub poc: Option<f64>,
    pub value_area: Option<(f64, f64)>,
    pub last_price: Option<f64>,
    pub price_unit: String,
    pub volume_unit: String,
    pub price_places: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfileBin {
    pub from: f64,
    pub to: f64,
    pub volume: f64,
}

/// One or more lines over the same time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lines {
    pub unit: String,
    pub places: usize,
    /// Ends of the scale where they are given by what it is: imbalance from −1 to 1.
    pub range: Option<(f64, f64)>,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    pub label: String,
    /// `None` where nothing was known: a gap, never a guess.
    pub points: Vec<(Timestamp, Option<f64>)>,
}

/// The best levels of an order book.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ladder {
    /// Best first.
    pub bids: Vec<Rung>,
    pub asks: Vec<Rung>,
    pub spread: Option<Amount>,
    pub price_unit: String,
    pub quantity_unit: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rung {
    /// Exact decimals.
    pub price: String,
    pub quantity: String,
    /// The quantity up to this level.
    pub total: String,
    /// `total` as a share of the largest of both sides, from 0 to 1.
    pub share: f64,
}

impl Amount {
    pub fn new(text: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            unit: Some(unit.into()),
        }
    }

    /// A number without a unit, or words.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            unit: None,
        }
    }
}

impl Figure {
    pub fn new(label: impl Into<String>, value: Amount) -> Self {
        Self {
            label: label.into(),
            value: Some(value),
            ..Self::default()
        }
    }

    /// A value that is not known, and why.
    pub fn unknown(label: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            note: Some(why.into()),
            ..Self::default()
        }
    }
}
