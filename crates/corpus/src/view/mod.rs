//! What a page shows around a document: whose words they are, where they stand, what stands beside them.
//!
//! - [`words`]: what is said of a document, for people: reference, citation, facts;
//! - [`beside`]: the documents before and after it, by the same person, of the same debate;
//! - [`chronology`]: the order in which speeches were given.

mod beside;
pub(crate) mod chronology;
mod words;

use std::path::Path;

use jiff::civil::Date;
use tribune_core::view::{Reading, TextFormat, View};
use tribune_core::{Document, DocumentId, JsonObject};

use crate::read;
use crate::snapshot::Snapshot;

/// The document that a page is about, without its text.
pub(crate) struct Subject {
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) date: Option<Date>,
    pub(crate) fields: JsonObject,
    /// What its owner calls the collection.
    pub(crate) collection: String,
    pub(crate) is_speech: bool,
}

impl Subject {
    pub(crate) fn new(document: &Document, collection: &str, is_speech: bool) -> Self {
        Self {
            id: document.id.clone(),
            title: document.title.clone(),
            date: document.as_of.map(day_of),
            fields: document.metadata.clone(),
            collection: collection.to_owned(),
            is_speech,
        }
    }

    /// Whose words they are.
    fn author(&self) -> Option<(&'static str, String)> {
        ["speaker", "author", "authors"]
            .into_iter()
            .find_map(|field| Some((field, words::text(self.fields.get(field)?)?)))
    }
}

fn day_of(moment: jiff::Timestamp) -> Date {
    moment.to_zoned(jiff::tz::TimeZone::UTC).date()
}

impl Snapshot {
    /// How a page shows a document; `None` if it is not held any more.
    pub(crate) fn view(&self, subject: &Subject) -> tantivy::Result<Option<View>> {
        let key = subject.id.key();
        let Some(file) = self.file_of(key)? else {
            return Ok(None);
        };
        let (previous, next) = self.beside(subject, &file)?;
        let reading = Reading {
            format: match read::Format::of(Path::new(&file), &read::Reading::default()) {
                Some(read::Format::Markdown) => TextFormat::Markdown,
                _ => TextFormat::Plain,
            },
            byline: subject.author().map(|(_, name)| name),
            byline_details: words::byline_details(subject),
            date: subject.date,
            reference: Some(words::reference(subject, &file)),
            cite_as: words::cite_as(subject),
            facts: words::facts(subject),
            previous,
            next,
            groups: self.groups(subject)?,
        };
        Ok(Some(View::Reading(Box::new(reading))))
    }
}
