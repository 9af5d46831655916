//! The contents of a document's page.
//!
//! - [`words`]: author, citation and fields as text;
//! - [`beside`]: the documents before and after it, and others by the same author;
//! - [`chronology`]: dated documents in order.

mod beside;
mod chronology;
pub mod words;

use jiff::civil::Date;
use tribune_core::{Document, DocumentId, JsonObject};
use tribune_page::{Reading, TextFormat, View};

use crate::collection::Timeline;
use crate::engine::Result;
use crate::format::Markup;
use crate::provider::Provider;
use crate::snapshot::Snapshot;

/// Fields that a page shows elsewhere, or that mean nothing to people.
const SHOWN_ELSEWHERE: [&str; 7] = ["speaker", "author", "authors", "date", "title", "url", "content_hash"];

/// The document that a page is about, without its text.
pub(crate) struct Subject {
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) date: Option<Date>,
    pub(crate) fields: JsonObject,
    /// The title of the source.
    pub(crate) collection: String,
    /// Set if documents are read in the order of their dates.
    pub(crate) timeline: Option<Timeline>,
}

impl Subject {
    pub(crate) fn new(document: &Document, collection: &str, timeline: Option<Timeline>) -> Self {
        Self {
            id: document.id.clone(),
            title: document.title.clone(),
            date: document.as_of.map(day_of),
            fields: document.metadata.clone(),
            collection: collection.to_owned(),
            timeline,
        }
    }

    /// The name and the text of the author field.
    fn author(&self) -> Option<(&'static str, String)> {
        words::author(&self.fields)
    }
}

pub(crate) fn day_of(moment: jiff::Timestamp) -> Date {
    moment.to_zoned(jiff::tz::TimeZone::UTC).date()
}

impl Snapshot {
    /// The page of a document; `None` if it no longer exists.
    pub(crate) fn view(&self, subject: &Subject, provider: &dyn Provider) -> Result<Option<View>> {
        let key = subject.id.key();
        let Some(file) = self.file_of(key)? else {
            return Ok(None);
        };
        let contents = provider.contents(&file);
        let (previous, next) = self.beside(subject, &file, contents)?;
        let reading = Reading {
            format: match contents.markup {
                Markup::Markdown => TextFormat::Markdown,
                Markup::Plain => TextFormat::Plain,
            },
            byline: subject.author().map(|(_, name)| name),
            byline_details: Vec::new(),
            date: subject.date,
            cite_as: words::cite_as(subject),
            facts: words::facts(&subject.fields, |name| SHOWN_ELSEWHERE.contains(&name)),
            reference: Some(file),
            previous,
            next,
            groups: self.groups(subject)?,
        };
        Ok(Some(View::Reading(Box::new(reading))))
    }
}
