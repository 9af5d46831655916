//! Citing: an answer is kept as it is, with the chart and the book of the moment, so that its page stays whole.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tribune_citations::Pool;
use tribune_citations::records::{Fingerprint, Records};
use tribune_core::{Cited, Document, DocumentId, Links, Result};

use crate::kinds::{Answer, Found, Record};
use crate::market::Market;
use crate::page::Beside;
use tribune_market_resolve::id::{Kind, MarketId};

/// The market and its citation records.
pub(crate) struct Citing {
    pub(crate) market: Arc<Market>,
    pub(crate) records: Records,
}

impl Citing {
    /// What was cited, as a reader gets it.
    pub(crate) async fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        let mut cited = self.records.cited(id, record).await?;
        if let Some(Cited::Kept { document, .. }) = &mut cited {
            Record::without(document);
        }
        Ok(cited)
    }

    /// The same document with the values that its page draws, found again by its address.
    pub(crate) async fn kept(&self, document: &Document) -> Result<Option<Document>> {
        let Some(record) = document.url.as_deref().and_then(Links::cited_record) else {
            return Ok(None);
        };
        Ok(match self.records.cited(&document.id, record).await? {
            Some(Cited::Kept { document, .. }) => Some(*document),
            _ => None,
        })
    }

    /// Keeps an answer as it is, with what its page shows beside it, and gives the address of that.
    pub(crate) async fn cite(&self, pool: Pool, answer: &Answer) -> String {
        let record = || {
            let kind = MarketId::parse(&answer.id).ok().flatten().map(|id| id.kind());
            let surroundings = kind.and_then(|kind| self.surroundings(answer.about.name(), kind));
            answer.record(None, surroundings)
        };
        self.records.cite(pool, answer.fingerprint(&answer.id, None), record).await
    }

    /// Keeps search results, each with the chart and the book of the moment.
    pub(crate) async fn cite_hits(&self, pool: Pool, hits: &[(&Found, &Document)]) -> Vec<String> {
        let fingerprint = |(found, document): &(&Found, &Document)| match &found.answer {
            Some(answer) => answer.fingerprint(&document.id, Some(&found.snippet)),
            None => Fingerprint::new(&document.id, &document.text),
        };
        let mut known: HashMap<(Arc<str>, bool), Option<Value>> = HashMap::new();
        let record = |place| {
            let (found, document): &(&Found, &Document) = hits.get(place)?;
            let Some(answer) = &found.answer else {
                return Some((*document).clone());
            };
            let (name, kind) = (answer.about.name(), found.kind);
            let surroundings =
                known.entry((name.clone(), is_about_prices(kind))).or_insert_with(|| self.surroundings(name, kind));
            // What is at hand may be of another kind than the document that was found.
            Some(Document {
                id: document.id.clone(),
                title: document.title.clone(),
                ..answer.record(Some(&found.snippet), surroundings.clone())
            })
        };
        self.records.cite_all(pool, hits.iter().map(fingerprint).collect(), record).await
    }

    /// The chart and the book beside an answer that is about prices, as a record keeps them.
    fn surroundings(&self, symbol: &str, kind: Kind) -> Option<Value> {
        let table = self.market.known_symbols().filter(|_| is_about_prices(kind))?;
        serde_json::to_value(Beside::at_hand(&self.market, table.lookup(symbol)?)?).ok()
    }
}

const fn is_about_prices(kind: Kind) -> bool {
    !matches!(kind, Kind::ExchangeInfo | Kind::Markets | Kind::Report)
}
