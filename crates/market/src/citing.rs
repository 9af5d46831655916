//! Citing: an answer is stored as it is, with the chart and the order book of that moment for its page.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use tribune_citations::records::{Fingerprint, Records};
use tribune_citations::{Pool, record};
use tribune_core::{Cited, Document, DocumentId, Links, Result};

use crate::kinds::{Answer, Found, Record};
use crate::market::Market;
use crate::page::Beside;
use tribune_market_resolve::id::Kind;

pub(crate) struct Citing {
    pub(crate) market: Arc<Market>,
    pub(crate) records: Records,
}

impl Citing {
    /// A cited document, without the values that only its page needs.
    pub(crate) async fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        let mut cited = self.records.cited(id, record).await?;
        if let Some(Cited::Kept { document, .. }) = &mut cited {
            Record::without(document);
        }
        Ok(cited)
    }

    /// The stored document of a permalink, with the values that its page draws.
    pub(crate) async fn kept(&self, document: &Document) -> Result<Option<Document>> {
        let Some(record) = document.url.as_deref().and_then(Links::cited_record) else {
            return Ok(None);
        };
        Ok(match self.records.cited(&document.id, record).await? {
            Some(Cited::Kept { document, .. }) => Some(*document),
            _ => None,
        })
    }

    /// Stores a document with the answer that it was made of, and what its page shows beside it; returns its permalink.
    pub(crate) async fn cite(&self, pool: Pool, answer: &Answer, document: &Document) -> String {
        let record = || {
            let surroundings = self.surroundings(answer.about.name(), answer.kind);
            answer.record(document, None, surroundings.as_deref())
        };
        self.records.cite(pool, Fingerprint::new(&document.id, &document.text), record).await
    }

    /// Stores search results; returns the permalink of each. What a result says tells it from others, so that one whose
    /// figures have not changed needs no new record.
    pub(crate) async fn cite_hits(&self, pool: Pool, hits: &[(&Found, &Document)]) -> Vec<String> {
        let fingerprint = |(_, document): &(&Found, &Document)| Fingerprint::new(&document.id, &document.text);
        let mut known: HashMap<(&str, bool), Option<Box<RawValue>>> = HashMap::new();
        let record = |place: usize| {
            let (found, hit) = hits[place];
            let Some(answer) = &found.answer else {
                return record(hit, None::<()>);
            };
            let (name, kind) = (answer.about.name(), found.kind);
            let surroundings =
                known.entry((name, is_about_prices(kind))).or_insert_with(|| self.surroundings(name, kind));
            // What is at hand may be of another kind than the document that was found.
            let document = Document { id: hit.id.clone(), title: hit.title.clone(), ..answer.document() };
            answer.record(&document, Some(&found.snippet), surroundings.as_deref())
        };
        self.records.cite_all(pool, hits.iter().map(fingerprint).collect(), record).await
    }

    /// The chart and the book beside an answer that is about prices, as a record has them.
    fn surroundings(&self, symbol: &str, kind: Kind) -> Option<Box<RawValue>> {
        let table = self.market.known_symbols().filter(|_| is_about_prices(kind))?;
        to_raw_value(&Beside::at_hand(&self.market, table.lookup(symbol)?)?).ok()
    }
}

const fn is_about_prices(kind: Kind) -> bool {
    !matches!(kind, Kind::ExchangeInfo | Kind::Markets | Kind::Report)
}
