//! An answer: figures for a person to read, data for a program, and where and when they are from.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_core::wire::{object, wire_bytes};
use tribune_core::{Document, DocumentId, Error, JsonObject, Result};

use crate::analytics::Unavailable;
use crate::feed::BookState;
use crate::market::{BookReading, Market, Origin};
use crate::model::{Millis, Symbol};
use crate::moment::Moment;
use crate::symbols::{Kind, MarketId, asset_name};

/// What the rows of all tables of an answer may take on the wire.
const MAX_TABLE_BYTES: usize = 72_000;

/// What the quotes of a text take on the wire: once as they are, once escaped.
const QUOTES_BYTES: usize = 6;
/// And the brackets of a row.
const BRACKETS_BYTES: usize = 4;

/// Where figures are from, and when.
#[derive(Debug, Clone, Serialize)]
pub struct Provenance {
    pub venue: &'static str,
    pub source: Origin,
    /// By the exchange's clock; null where the exchange gives none.
    pub exchange_time: Option<String>,
    pub received_time: String,
    pub age_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book_state: Option<BookState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book_state_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<&'static str>,
    #[serde(skip)]
    as_of: Timestamp,
}

impl Provenance {
    pub fn new(market: &Market, origin: Origin, exchange_time: Option<Millis>, received: Moment) -> Self {
        let as_of = exchange_time.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        Self {
            venue: "binance",
            source: origin,
            exchange_time: as_of.map(written),
            received_time: written(received.wall),
            age_ms: received.age_ms(&*market.clock),
            book_state: None,
            book_state_reason: None,
            clock_note: market.clock_note(),
            simulated: market.simulated(),
            as_of: as_of.unwrap_or(received.wall),
        }
    }

    pub fn of_book(market: &Market, book: &BookReading) -> Self {
        let mut provenance = Self::new(market, book.origin, book.view.exchange_time, book.received);
        provenance.book_state = Some(book.state);
        provenance.book_state_reason.clone_from(&book.reason);
        provenance
    }

    fn sentence(&self) -> String {
        let when = match &self.exchange_time {
            Some(time) => format!("As of {time} (exchange time)"),
            None => format!("Received {}", self.received_time),
        };
        let from = match self.source {
            Origin::Stream => "from the exchange's streams",
            Origin::Rest => "asked of the exchange",
        };
        let mut sentence = format!("{when}, {} ms old, {from}", self.age_ms);
        if let Some(state) = self.book_state {
            sentence.push_str(&format!("; live book: {}", state.as_str()));
        }
        if let Some(reason) = &self.book_state_reason {
            sentence.push_str(&format!(" ({reason})"));
        }
        sentence.push('.');
        sentence
    }
}

/// With milliseconds, in UTC.
pub fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// A time of the exchange, written; what is not a time stays a number.
pub(super) fn exchange_time(millis: Millis) -> Value {
    Timestamp::from_millisecond(millis).map_or_else(|_| json!(millis), |time| json!(written(time)))
}

/// Rows of the same kind.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    pub rows: Vec<Vec<Value>>,
    /// Which rows stay when not all fit.
    pub keep: Keep,
    /// How many were left out before.
    pub left_out: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    First,
    Last,
}

impl Table {
    /// Drops the rows that would not fit in an answer that has no other table, so that figures can say which are
    /// listed.
    #[must_use]
    pub(super) fn fitted(mut self) -> Self {
        self.left_out += self.fit(MAX_TABLE_BYTES);
        self
    }

    /// Drops rows until the rest takes no more than `budget` on the wire; gives how many were dropped.
    fn fit(&mut self, budget: usize) -> usize {
        let mut spent = 0;
        let mut fits = |row: &&Vec<Value>| {
            spent += row.iter().map(cell_bytes).sum::<usize>() + BRACKETS_BYTES;
            spent <= budget
        };
        let kept = match self.keep {
            Keep::First => self.rows.iter().take_while(&mut fits).count(),
            Keep::Last => self.rows.iter().rev().take_while(&mut fits).count(),
        };
        let dropped = self.rows.len() - kept;
        match self.keep {
            Keep::First => self.rows.truncate(kept),
            Keep::Last => drop(self.rows.drain(..dropped)),
        }
        dropped
    }
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub id: DocumentId,
    pub title: String,
    /// Sentences with the figures, the most wanted first.
    pub figures: Vec<String>,
    /// The same and more, by name.
    pub data: JsonObject,
    pub tables: Vec<Table>,
    pub provenance: Provenance,
    /// Which market it is of.
    about: JsonObject,
}

impl Answer {
    pub fn new(kind: Kind, symbol: &Symbol, title: &str, provenance: Provenance) -> Result<Self> {
        let id = MarketId::of(kind, symbol.name.clone());
        let about = json!({"symbol": &*symbol.name, "base_asset": &*symbol.base, "quote_asset": &*symbol.quote});
        Self::about(&id, &format!("{} {title}", symbol.name), object(about), provenance)
    }

    /// Of all markets of one money.
    pub fn of_all(money: &Arc<str>, title: &str, provenance: Provenance) -> Result<Self> {
        let about = json!({"quote_asset": &**money});
        Self::about(&MarketId::Markets(money.clone()), title, object(about), provenance)
    }

    fn about(id: &MarketId, title: &str, about: JsonObject, provenance: Provenance) -> Result<Self> {
        let label = provenance.simulated.map_or("", |_| "SIMULATED ");
        Ok(Self {
            id: id.document_id()?,
            title: format!("{label}{title}"),
            figures: Vec::new(),
            data: JsonObject::new(),
            tables: Vec::new(),
            provenance,
            about,
        })
    }

    /// Adds a sentence of figures.
    #[must_use]
    pub fn figure(mut self, sentence: impl Into<String>) -> Self {
        self.figures.push(sentence.into());
        self
    }

    /// Adds every field of a value.
    pub fn with(mut self, value: &impl Serialize) -> Result<Self> {
        match serde_json::to_value(value) {
            Ok(Value::Object(fields)) => self.data.extend(fields),
            Ok(_) => return Err(Error::internal("figures are an object")),
            Err(error) => return Err(Error::internal("figures could not be written as JSON").caused_by(error)),
        }
        Ok(self)
    }

    /// Adds one field.
    pub fn with_field(mut self, name: &str, value: &impl Serialize) -> Result<Self> {
        let value = serde_json::to_value(value)
            .map_err(|error| Error::internal("a figure could not be written as JSON").caused_by(error))?;
        self.data.insert(name.to_owned(), value);
        Ok(self)
    }

    /// Adds why figures are null, if any is.
    pub fn with_reason(self, reason: Option<Unavailable>) -> Result<Self> {
        match reason {
            Some(reason) => self.with_field("reason", &reason),
            None => Ok(self),
        }
    }

    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }

    /// With no more rows than fit in one answer.
    pub fn fitted(mut self) -> Fitted {
        self.fit_tables();
        Fitted(self)
    }

    pub fn into_document(self) -> Document {
        self.fitted().document()
    }

    fn fit_tables(&mut self) {
        let share = MAX_TABLE_BYTES / self.tables.len().max(1);
        for table in &mut self.tables {
            let dropped = table.fit(share) + table.left_out;
            self.data
                .insert(format!("{}_listed", table.name), json!(table.rows.len()));
            if dropped > 0 {
                let place = match table.keep {
                    Keep::First => "after the last",
                    Keep::Last => "before the first",
                };
                let note = format!("{dropped} rows {place} that is listed do not fit in one answer and are left out");
                self.data.insert(format!("{}_cut", table.name), json!(note));
            }
        }
    }
}

/// An answer as it goes out, of which a document and an object are made.
pub struct Fitted(Answer);

impl Fitted {
    /// A document: figures first, then the data.
    pub fn document(&self) -> Document {
        let answer = &self.0;
        let mut text = String::new();
        let mut line = |words: &str| {
            text.push_str(words);
            text.push('\n');
        };
        if let Some(label) = answer.provenance.simulated {
            line(&format!("{label}."));
        }
        answer.figures.iter().for_each(|figure| line(figure));
        line(&answer.provenance.sentence());
        if let Some(note) = &answer.provenance.clock_note {
            line(&format!("Note: {note}."));
        }
        line("\nData:");
        let provenance = fields_of(&answer.provenance);
        for (name, value) in provenance.iter().chain(&answer.data) {
            line(&format!("{name}: {}", plain(value)));
        }
        for table in &answer.tables {
            line(&format!("\n{} ({}):", table.name, table.columns.join(",")));
            for row in &table.rows {
                line(&row.iter().map(plain).collect::<Vec<_>>().join(","));
            }
        }
        let mut metadata = answer.about.clone();
        metadata.extend(provenance);
        // Every document's `source` is the scheme of its id.
        if let Some(source) = metadata.shift_remove("source") {
            metadata.insert("data_source".to_owned(), source);
        }
        Document {
            id: answer.id.clone(),
            title: answer.title.clone(),
            text: text.trim_end().to_owned(),
            url: None,
            as_of: Some(answer.provenance.as_of),
            metadata,
            passages: Vec::new(),
        }
    }

    /// One object: what it is about, where it is from, the data and the tables.
    pub fn into_object(self, url: &str) -> JsonObject {
        let answer = self.0;
        let mut object = JsonObject::new();
        object.insert("id".to_owned(), json!(answer.id));
        object.insert("title".to_owned(), json!(answer.title));
        object.insert("url".to_owned(), json!(url));
        object.extend(answer.about);
        object.extend(fields_of(&answer.provenance));
        for (name, value) in answer.data {
            object.entry(name).or_insert(value);
        }
        for table in answer.tables {
            let rows: Vec<Value> = table.rows.into_iter().map(Value::from).collect();
            object.insert(table.name.to_owned(), json!({"columns": table.columns, "rows": rows}));
        }
        object
    }
}

fn fields_of(value: &impl Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => JsonObject::new(),
    }
}

fn plain(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed)
}

/// What a cell takes on the wire, with what parts it from the next.
fn cell_bytes(cell: &Value) -> usize {
    match cell.as_str() {
        Some(text) => QUOTES_BYTES + wire_bytes(text) + 2,
        None => wire_bytes(&cell.to_string()) + 2,
    }
}

/// `Bitcoin / Tether`, or the tickers where the names are not known.
pub fn pair_name(symbol: &Symbol) -> String {
    let name = |ticker: &str| asset_name(ticker).map_or_else(|| ticker.to_owned(), str::to_owned);
    format!("{} / {}", name(&symbol.base), name(&symbol.quote))
}

/// `+1.5`, `-0.2`.
pub(super) fn signed(number: Decimal) -> String {
    let number = number.normalize();
    if number.is_sign_negative() {
        number.to_string()
    } else {
        format!("+{number}")
    }
}

/// A figure that may be missing, for a sentence.
pub(super) fn or_unknown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

/// A figure, or null with its reason.
pub(super) fn or_reason<T: Serialize>(figure: &std::result::Result<T, Unavailable>) -> Value {
    match figure {
        Ok(figure) => serde_json::to_value(figure).unwrap_or(Value::Null),
        Err(reason) => json!({"value": null, "reason": reason}),
    }
}

/// Why there are no figures, as an error.
pub(super) fn no_figures(symbol: &Symbol, reason: Unavailable) -> Error {
    Error::unavailable(format!("{} has no such figures now: {reason}", symbol.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer holds its JSON twice, the second time as a string: rows take no more than they may, and as much as they
    /// can.
    #[test]
    fn rows_take_what_they_are_counted_for() {
        let row = |n: u64| {
            vec![
                json!(1_700_000_000_000 + n),
                json!("64033.37000000"),
                json!(null),
                json!("0.5"),
            ]
        };
        for budget in [0, 90, 91, 5_000, 72_000] {
            let mut table = Table {
                name: "rows",
                columns: &["a", "b", "c", "d"],
                rows: (0..1_000).map(row).collect(),
                keep: Keep::First,
                left_out: 0,
            };
            let dropped = table.fit(budget);
            assert_eq!(table.rows.len() + dropped, 1_000);
            let on_wire = |rows: &[Vec<Value>]| {
                let json = json!(rows).to_string();
                let escaped = json!(json).to_string();
                json.len() + escaped.len()
            };
            let frame = on_wire(&[]);
            assert!(on_wire(&table.rows) <= budget + frame, "{budget}");
            let next = row(table.rows.len() as u64);
            table.rows.push(next);
            assert!(on_wire(&table.rows) + 4 > budget + frame, "one more fits into {budget}");
        }
    }
}
