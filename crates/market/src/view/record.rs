//! What an answer said, read back from its document. Pages draw from this alone, of an answer that was just made and of
//! one that was cited a month ago: there is one way from answer to picture, and a record needs nothing but its text.
//!
//! The text is as [`crate::answers::Answer::into_document`] writes it: sentences, a blank line, `Data:`, one
//! `name: value` a line, then for each table a blank line, `name (column,column):` and its rows. Anything else is not
//! read at all: a page then shows the text.

use std::sync::Arc;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::Value;
use tribune_core::Document;

use crate::book::{Depth, Level};
use crate::number::{Price, Quantity};
use crate::symbols::{Kind, MarketId};

const BEFORE_DATA: &str = "\n\nData:\n";
/// Longer names are no names of ours.
const MAX_NAME_CHARS: usize = 64;

/// What an answer said.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) symbol: Arc<str>,
    /// Empty of all markets of one money.
    pub(crate) base: String,
    pub(crate) quote: String,
    /// What it is about its symbol: `order book`, `cost to trade`.
    pub(crate) what: String,
    pub(crate) as_of: Option<Timestamp>,
    /// Where it is from and the data, as they are written.
    pub(crate) fields: IndexMap<String, String>,
    pub(crate) tables: Vec<ToldTable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToldTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Told {
    /// `None` if the document is not an answer in the form that answers have.
    pub(crate) fn read(document: &Document) -> Option<Self> {
        let id = MarketId::parse(&document.id).ok()??;
        let about = |name: &str| document.metadata.get(name)?.as_str().map(str::to_owned);
        let (_, data) = document.text.split_once(BEFORE_DATA)?;
        let mut parts = data.split("\n\n");
        let title = document.title.strip_prefix("SIMULATED ").unwrap_or(&document.title);
        let what = title.strip_prefix(&**id.symbol()).unwrap_or(title).trim();
        Some(Self {
            symbol: id.symbol().clone(),
            base: match id.kind() {
                Kind::Markets => String::new(),
                _ => about("base_asset")?,
            },
            quote: about("quote_asset")?,
            what: what.to_owned(),
            as_of: document.as_of,
            fields: fields(parts.next()?)?,
            tables: parts.map(ToldTable::read).collect::<Option<_>>()?,
        })
    }

    /// What was said under a name; `None` if nothing was, or null.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let text = self.fields.get(name)?.as_str();
        (text != "null").then_some(text)
    }

    /// For drawing only.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        finite(self.text(name)?)
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// A figure of parts.
    pub(crate) fn parts(&self, name: &str) -> Option<Value> {
        let text = self.text(name).filter(|text| text.starts_with(['{', '[']))?;
        serde_json::from_str(text).ok()
    }

    /// A figure of parts as an answer of its own.
    pub(crate) fn inner(&self, name: &str) -> Option<Self> {
        let Value::Object(parts) = self.parts(name)? else {
            return None;
        };
        let plain = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(Self {
            fields: parts.into_iter().map(|(name, value)| (name, plain(value))).collect(),
            tables: Vec::new(),
            ..self.clone()
        })
    }

    pub(crate) fn table(&self, name: &str) -> Option<&ToldTable> {
        self.tables.iter().find(|table| table.name == name)
    }

    pub(crate) fn age_ms(&self) -> Option<u64> {
        self.text("age_ms")?.parse().ok()
    }

    /// The same, so much later.
    pub(crate) fn aged(&self, millis: u64) -> Self {
        let mut told = self.clone();
        if let Some(age) = self.age_ms() {
            let age = age.saturating_add(millis);
            told.fields.insert("age_ms".to_owned(), age.to_string());
        }
        told
    }

    /// The levels that were listed, as a book: beyond them nothing is known.
    pub(crate) fn depth(&self) -> Option<Depth> {
        let bids = self.table("bids")?.levels()?;
        let asks = self.table("asks")?.levels()?;
        Some(Depth {
            bid_reach: bids.last().map(|level| level.price),
            ask_reach: asks.last().map(|level| level.price),
            bids: bids.into_iter().rev().collect(),
            asks: asks.into_iter().rev().collect(),
        })
    }
}

impl ToldTable {
    fn read(part: &str) -> Option<Self> {
        let (head, rows) = part.split_once('\n').unwrap_or((part, ""));
        let (name, columns) = head.strip_suffix("):")?.split_once(" (")?;
        let columns: Vec<String> = columns.split(',').map(str::to_owned).collect();
        if !is_name(name) || !columns.iter().all(|column| is_name(column)) {
            return None;
        }
        let row = |line: &str| {
            let cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            (cells.len() == columns.len()).then_some(cells)
        };
        Some(Self {
            rows: rows.lines().map(row).collect::<Option<_>>()?,
            name: name.to_owned(),
            columns,
        })
    }

    /// The place of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The cells of the columns that are named, row by row; `None` if one of them is not there.
    pub(crate) fn select<const N: usize>(&self, names: [&str; N]) -> Option<impl Iterator<Item = [&str; N]>> {
        let mut places = [0; N];
        for (place, name) in places.iter_mut().zip(names) {
            *place = self.column(name)?;
        }
        Some(self.rows.iter().map(move |row| places.map(|place| row[place].as_str())))
    }

    /// Best first, as they are written.
    fn levels(&self) -> Option<Vec<Level>> {
        let level = |[price, quantity]: [&str; 2]| {
            Some(Level {
                price: Price::parse(price).ok()?,
                quantity: Quantity::parse(quantity).ok()?,
            })
        };
        self.select(["price", "quantity_base"])?.map(level).collect()
    }
}

fn fields(part: &str) -> Option<IndexMap<String, String>> {
    let field = |line: &str| {
        let (name, value) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
        is_name(name).then(|| (name.to_owned(), value.to_owned()))
    };
    part.lines().map(field).collect()
}

fn is_name(text: &str) -> bool {
    let of_name = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_';
    (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(of_name)
}

pub(crate) fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Digits after the point that these numbers have at most.
pub(crate) fn places<'a>(numbers: impl IntoIterator<Item = &'a str>) -> usize {
    let places = |number: &str| number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    numbers.into_iter().map(places).max().unwrap_or(0).min(10)
}

/// The same number with so many digits after the point at least, so that numbers of a column stand in line.
pub(crate) fn padded(number: &str, places: usize) -> String {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if places <= fraction.len() || !whole.bytes().any(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    format!("{whole}.{fraction:0<places$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use tribune_core::{DocumentId, JsonObject};

    fn document(text: &str) -> Document {
        let about = json!({"symbol": "BTCUSDT", "base_asset": "BTC", "quote_asset": "USDT"});
        Document {
            id: DocumentId::parse("orderbook:BTCUSDT").expect("an id"),
            title: "SIMULATED BTCUSDT order book".to_owned(),
            text: text.to_owned(),
            url: None,
            as_of: None,
            metadata: about.as_object().cloned().unwrap_or_else(JsonObject::new),
            passages: Vec::new(),
        }
    }

    const BOOK: &str = "BTCUSDT: best bid 99.\nAs of then.\n\nData:\nvenue: binance\nage_ms: 12\nmid: 100\n\
        best_bid: {\"price\":\"99\",\"quantity_base\":\"1\"}\nreason: null\n\nbids (price,quantity_base):\n99,1\n98.5,2\n\n\
        asks (price,quantity_base):\n101,3";

    #[test]
    fn fields_and_tables_are_as_they_were() {
        let told = Told::read(&document(BOOK)).expect("an answer");
        assert_eq!((&*told.symbol, &*told.what), ("BTCUSDT", "order book"));
        assert_eq!((told.text("mid"), told.number("mid")), (Some("100"), Some(100.0)));
        assert_eq!(
            (told.text("reason"), told.text("nothing"), told.age_ms()),
            (None, None, Some(12))
        );
        assert_eq!(told.parts("best_bid").expect("parts")["price"], "99");
        assert_eq!(told.tables[0].rows, [["99", "1"], ["98.5", "2"]]);
        let depth = told.depth().expect("a book");
        assert_eq!(depth.bids.best().map(|level| level.price), Price::parse("99").ok());
        assert_eq!(depth.bid_reach, Price::parse("98.5").ok());
        assert_eq!(depth.known_asks().count(), 1);
    }

    #[test]
    fn what_is_not_in_this_form_is_not_read() {
        let without = |part: &str| Told::read(&document(&BOOK.replace(part, ""))).is_none();
        assert!(without("\n\nData:"));
        for wrong in [
            BOOK.replace("99,1", "99,1,7"),
            BOOK.replace("99,1", "99"),
            BOOK.replace("mid: 100", "The mid: 100"),
            BOOK.replace("mid: 100", "no field"),
            BOOK.replace("bids (", "The Bids ("),
            BOOK.replace("):", ")"),
        ] {
            assert!(Told::read(&document(&wrong)).is_none(), "{wrong}");
        }
        // Numbers that are none make no book, and the rest stands.
        let odd = Told::read(&document(&BOOK.replace("98.5", "NaN"))).expect("an answer");
        assert!(odd.depth().is_none() && odd.number("mid").is_some());
        let mut other = document(BOOK);
        other.metadata.clear();
        assert!(Told::read(&other).is_none());
        other.id = DocumentId::parse("notes:1").expect("an id");
        assert!(Told::read(&other).is_none());
    }

    #[test]
    fn numbers_of_a_column_have_as_many_places() {
        assert_eq!(
            (&*padded("1", 2), &*padded("1.5", 2), &*padded("-1.234", 2)),
            ("1.00", "1.50", "-1.234")
        );
        assert_eq!(
            (&*padded("1", 0), &*padded("null", 2), &*padded("", 3)),
            ("1", "null", "")
        );
    }

    #[test]
    fn places_are_counted() {
        assert_eq!(places(["1", "2.50", "3.5"]), 2);
        assert_eq!(places(["1"]), 0);
        assert_eq!(places([] as [&str; 0]), 0);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}(\n|: |,|\\(|\\):|Data:|\n\n){0,6}\\PC{0,40}") {
            let _ = Told::read(&document(&format!("words\n\nData:\n{text}")));
            let _ = Told::read(&document(&text));
        }
    }
}
