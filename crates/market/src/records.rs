//! Citing: a document is kept as it is, and its address leads back to that.

use std::sync::Arc;
use std::time::Duration;

use tribune_core::{Cited, Document, DocumentId, Links, Result};

use crate::citations::{Citations, Lookup, Token};

#[derive(Clone)]
pub struct Records {
    /// Without a place for records answers are cited by their current page.
    citations: Option<Arc<Citations>>,
    keep: Duration,
    links: Links,
}

impl Records {
    pub fn new(citations: Option<Arc<Citations>>, keep: Duration, links: Links) -> Self {
        Self { citations, keep, links }
    }

    /// Keeps the document as it is now, and gives the address under which it stays so.
    pub fn cite(&self, document: &Document) -> String {
        let tokens = self.freeze(std::slice::from_ref(document));
        self.address(document, tokens.first())
    }

    /// The same of several at once.
    pub fn cite_all(&self, documents: &[Document]) -> Vec<String> {
        let tokens = self.freeze(documents);
        let cited = documents.iter().enumerate();
        cited
            .map(|(at, document)| self.address(document, tokens.get(at)))
            .collect()
    }

    /// The tokens of all, or none if they could not be kept.
    fn freeze(&self, documents: &[Document]) -> Vec<Token> {
        let Some(citations) = &self.citations else {
            return Vec::new();
        };
        let kept = citations.freeze_all(documents);
        kept.inspect_err(|error| tracing::warn!(%error, "a citation could not be kept"))
            .unwrap_or_default()
    }

    fn address(&self, document: &Document, record: Option<&Token>) -> String {
        match record {
            Some(record) => self.links.record(&document.id, &record.to_string()),
            None => self.links.citation(&document.id, None),
        }
    }

    pub fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        let Some(citations) = &self.citations else {
            return Ok(None);
        };
        Ok(Some(match citations.lookup(id, record)? {
            Lookup::Found {
                mut document,
                frozen_at,
            } => {
                document.url = Some(self.links.record(id, record));
                Cited::Kept {
                    document,
                    at: frozen_at,
                }
            }
            Lookup::Expired { .. } => Cited::Expired(format!(
                "What is cited of the market is kept for {} days, and as many as there is room for; this record is gone.",
                self.keep.as_secs() / 86_400
            )),
            Lookup::Unknown => Cited::Unknown,
        }))
    }
}
