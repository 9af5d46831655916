//! The contents of a document's page.
//!
//! - [`words`]: author, citation and fields as text;
//! - `beside`: the documents before and after it, and others by the same author.

mod beside;
pub mod words;

use tribune_core::Document;
use tribune_page::{Reading, TextFormat};

use crate::engine::Result;
use crate::format::Markup;
use crate::snapshot::Snapshot;

/// Fields that a page shows elsewhere, or that mean nothing to people.
const SHOWN_ELSEWHERE: [&str; 7] = ["speaker", "author", "authors", "date", "title", "url", "content_hash"];

impl Snapshot {
    /// A document and its page; `None` if it no longer exists.
    pub(crate) fn page(&self, key: &str) -> Result<Option<(Document, Reading)>> {
        let Some(stored) = self.stored(key)? else {
            return Ok(None);
        };
        let holds_many = self.settings.provider.holds_many(&stored.file);
        let (previous, next) = self.beside(key, &stored, holds_many)?;
        let author = words::author(&stored.fields);
        let reading = Reading {
            format: match stored.markup {
                Markup::Markdown => TextFormat::Markdown,
                Markup::Plain => TextFormat::Plain,
            },
            groups: match &author {
                Some((field, name)) => self.more_by(key, &stored.fields, field, name)?.into_iter().collect(),
                None => Vec::new(),
            },
            byline: author.map(|(_, name)| name),
            byline_details: Vec::new(),
            date: stored.date,
            cite_as: words::cite_as(&stored.fields, &stored.title, &self.settings.title, stored.date),
            facts: words::facts(&stored.fields, |name| SHOWN_ELSEWHERE.contains(&name)),
            reference: Some(stored.file.clone()),
            previous,
            next,
        };
        Ok(Some((self.document(key, stored)?, reading)))
    }
}
