//! An answer of any kind: its market, the source and time of its figures, and the figures by name. A tool's JSON, the
//! document, the page and the citation record are made from it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tribune_core::{Document, DocumentId, JsonObject, Result};

use super::time::Time;
use super::{Figures, title};
use crate::market::{BookReading, Market, Origin};
use tribune_binance::{BookState, Millis, Moment, Symbol};
use tribune_citations::record;
use tribune_market_resolve::id::{Kind, MarketId};

/// Where a citation record keeps its values, in the metadata of its document.
const RECORD: &str = "answer";

/// The market that an answer is about, or all markets of one quote asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_asset: Option<Arc<str>>,
    quote_asset: Arc<str>,
}

impl About {
    pub fn symbol(symbol: &Symbol) -> Self {
        Self {
            symbol: Some(symbol.name.clone()),
            base_asset: Some(symbol.base.clone()),
            quote_asset: symbol.quote.clone(),
        }
    }

    pub const fn all_markets(quote_asset: Arc<str>) -> Self {
        Self { symbol: None, base_asset: None, quote_asset }
    }

    /// The symbol; of all markets their quote asset.
    pub fn name(&self) -> &Arc<str> {
        self.symbol.as_ref().unwrap_or(&self.quote_asset)
    }

    pub fn base(&self) -> &str {
        self.base_asset.as_deref().unwrap_or_default()
    }

    pub fn quote(&self) -> &str {
        &self.quote_asset
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    pub venue: Cow<'static, str>,
    pub source: Origin,
    /// By the exchange's clock; null where the exchange gives none.
    pub exchange_time: Option<Time>,
    pub received_time: Time,
    pub age_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book_state: Option<BookState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book_state_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Cow<'static, str>>,
}

impl Provenance {
    pub fn new(market: &Market, origin: Origin, exchange_time: Option<Millis>, received: Moment) -> Self {
        let exchange_time = exchange_time.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        Self {
            venue: "binance".into(),
            source: origin,
            exchange_time: exchange_time.map(Time),
            received_time: Time(received.wall),
            age_ms: received.age_ms(&*market.clock),
            book_state: None,
            book_state_reason: None,
            clock_note: market.clock_note(),
            simulated: market.simulated().map(Cow::Borrowed),
        }
    }

    pub fn of_book(market: &Market, book: &BookReading) -> Self {
        let mut provenance = Self::new(market, book.origin, book.view.exchange_time, book.received);
        provenance.book_state = Some(book.state);
        provenance.book_state_reason.clone_from(&book.reason);
        provenance
    }

    pub fn as_of(&self) -> Timestamp {
        self.exchange_time.unwrap_or(self.received_time).0
    }

    fn sentence(&self) -> String {
        let when = match &self.exchange_time {
            Some(time) => format!("As of {time} (exchange time)"),
            None => format!("Received {}", self.received_time),
        };
        let from = match self.source {
            Origin::Stream => "from the exchange's streams",
            Origin::Rest => "requested from the exchange",
        };
        let state = self.book_state.map(|state| format!("; live book: {}", state.as_str()));
        let reason = self.book_state_reason.as_ref().map(|reason| format!(" ({reason})"));
        let (state, reason) = (state.unwrap_or_default(), reason.unwrap_or_default());
        format!("{when}, {} ms old, {from}{state}{reason}.", self.age_ms)
    }
}

/// The figures of one kind of answer, by name, and what a page needs to know of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// What the answer is about its market: `order book`, `cost to trade`.
    #[serde(default)]
    pub(crate) what: String,
    /// See [`Figures::headline`].
    #[serde(default)]
    pub(crate) headline: Cow<'static, str>,
    pub(crate) figures: JsonObject,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub id: DocumentId,
    pub(crate) kind: Kind,
    pub about: About,
    pub provenance: Provenance,
    figures: Arc<dyn Figures>,
    /// Made when it is first needed: a search result is only a sentence.
    named: OnceLock<Named>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Envelope<'a, F> {
    id: &'a str,
    title: Cow<'a, str>,
    url: &'a str,
    #[serde(flatten)]
    about: Cow<'a, About>,
    #[serde(flatten)]
    provenance: Cow<'a, Provenance>,
    #[serde(flatten)]
    figures: F,
}

impl Answer {
    pub(crate) fn new(
        kind: Kind,
        symbol: &Symbol,
        provenance: Provenance,
        figures: impl Figures + 'static,
    ) -> Result<Self> {
        let id = MarketId::new(kind, symbol.name.clone());
        Self::about(&id, About::symbol(symbol), provenance, figures)
    }

    pub(crate) fn about(
        id: &MarketId,
        about: About,
        provenance: Provenance,
        figures: impl Figures + 'static,
    ) -> Result<Self> {
        let (kind, id, figures) = (id.kind(), id.document_id()?, Arc::new(figures));
        Ok(Self { id, kind, about, provenance, figures, named: OnceLock::new() })
    }

    pub(crate) fn named(&self) -> &Named {
        self.named.get_or_init(|| Named {
            what: self.what(),
            headline: self.figures.headline().into(),
            figures: self.figures.fields(),
        })
    }

    pub(crate) fn what(&self) -> String {
        self.figures.what(&self.about).unwrap_or_else(|| title(self.kind).into_owned())
    }

    pub fn title(&self) -> String {
        let what = self.what();
        let label = self.provenance.simulated.as_ref().map(|_| "SIMULATED");
        let parts = [label, self.about.symbol.as_deref(), Some(&*what)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// What matters most, in one sentence.
    pub(crate) fn brief(&self) -> String {
        self.figures.sentences(&self.about).into_iter().next().unwrap_or_default()
    }

    pub(crate) fn object<'a>(&'a self, url: &'a str) -> Envelope<'a, &'a JsonObject> {
        Envelope {
            id: self.id.as_str(),
            title: self.title().into(),
            url,
            about: Cow::Borrowed(&self.about),
            provenance: Cow::Borrowed(&self.provenance),
            figures: &self.named().figures,
        }
    }

    /// A document: sentences first, then the data.
    pub(crate) fn document(&self) -> Document {
        let provenance = self.provenance.fields();
        let label = self.provenance.simulated.as_ref().map(|label| format!("{label}."));
        let mut lines: Vec<String> = label.into_iter().chain(self.figures.sentences(&self.about)).collect();
        lines.push(self.provenance.sentence());
        let note = self.provenance.clock_note.as_ref();
        lines.extend(note.map(|note| format!("Note: {note}.")));
        lines.push("\nData:".to_owned());
        let mut tables = Vec::new();
        for (name, value) in provenance.iter().chain(&self.named().figures) {
            match columns_and_rows(value) {
                Some(table) => tables.push((name, table)),
                None => lines.push(format!("{name}: {}", plain(value))),
            }
        }
        let cells = |row: &[Value]| row.iter().map(plain).collect::<Vec<_>>().join(",");
        for (name, (columns, rows)) in tables {
            lines.push(format!("\n{name} ({}):", cells(columns)));
            lines.extend(rows.iter().filter_map(Value::as_array).map(|row| cells(row)));
        }
        let mut metadata = self.about.fields();
        metadata.extend(provenance);
        // Every document's `source` is the scheme of its id.
        if let Some(source) = metadata.shift_remove("source") {
            metadata.insert("data_source".to_owned(), source);
        }
        Document {
            id: self.id.clone(),
            title: self.title(),
            text: lines.join("\n"),
            url: None,
            as_of: Some(self.provenance.as_of()),
            metadata,
            passages: Vec::new(),
        }
    }

    /// What a record keeps of it: `document` with the figures, and what a page shows beside them.
    pub(crate) fn record(
        &self,
        document: &Document,
        snippet: Option<&str>,
        surroundings: Option<&RawValue>,
    ) -> Result<String> {
        let answer = Record {
            about: Cow::Borrowed(&self.about),
            provenance: Cow::Borrowed(&self.provenance),
            answer: Cow::Borrowed(self.named()),
            snippet: snippet.map(Cow::Borrowed),
            surroundings,
        };
        record(document, Some(BTreeMap::from([(RECORD, answer)])))
    }
}

/// What a citation record keeps of an answer beside its text.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record<'a, Surroundings = JsonObject> {
    pub(crate) about: Cow<'a, About>,
    pub(crate) provenance: Cow<'a, Provenance>,
    pub(crate) answer: Cow<'a, Named>,
    /// The sentence that a search result showed.
    pub(crate) snippet: Option<Cow<'a, str>>,
    /// The chart and the book of the moment, by the names that figures have.
    pub(crate) surroundings: Option<Surroundings>,
}

impl Record<'static> {
    /// `None` of a document that has only a text.
    pub(crate) fn read(document: &Document) -> Option<serde_json::Result<Self>> {
        document.metadata.get(RECORD).map(Self::deserialize)
    }

    /// The document without its figures, which only the page needs.
    pub(crate) fn without(document: &mut Document) {
        document.metadata.shift_remove(RECORD);
    }
}

/// The fields of a value, as JSON has them.
pub(crate) trait Fields {
    fn fields(&self) -> JsonObject;
}

impl<V: Serialize> Fields for V {
    fn fields(&self) -> JsonObject {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => JsonObject::new(),
        }
    }
}

/// The parts of a table, if the value is one.
pub(crate) fn columns_and_rows(value: &Value) -> Option<(&[Value], &[Value])> {
    let object = value.as_object().filter(|object| object.len() == 2)?;
    Some((object.get("columns")?.as_array()?, object.get("rows")?.as_array()?))
}

fn plain(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed)
}
