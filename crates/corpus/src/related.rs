//! Documents like a document.

use tantivy::query::MoreLikeThisQuery;
use tantivy::schema::OwnedValue;
use tribune_core::Hit;

use crate::fusion::Ranked;
use crate::lexical::best_documents;
use crate::schema::document_hash;
use crate::snapshot::Snapshot;

/// Of a longer document, so much is enough to tell what it is about.
const MAX_COMPARED_BYTES: usize = 20_000;
/// Words that stand for a document where there are no vectors.
const MAX_COMPARED_WORDS: usize = 25;

impl Snapshot {
    /// The documents nearest to `key`'s, best first, without itself; `None` if it is not held.
    pub fn related(&self, key: &str, limit: usize) -> tantivy::Result<Option<Vec<Hit>>> {
        let Some(document) = self.fetch(key)? else {
            return Ok(None);
        };
        let middle = self
            .dense
            .as_ref()
            .filter(|dense| dense.is_ready())
            .and_then(|dense| Some((dense, dense.middle(&self.passages_of(key))?)));
        let found = match middle {
            Some((dense, middle)) => self.nearest(dense, &middle, limit + 1, None)?,
            None => {
                let text = &document.text[..document.text.floor_char_boundary(MAX_COMPARED_BYTES)];
                let words = OwnedValue::Str(format!("{}\n{text}", document.title));
                let query = MoreLikeThisQuery::builder()
                    .with_min_doc_frequency(1)
                    .with_min_term_frequency(1)
                    .with_max_query_terms(MAX_COMPARED_WORDS)
                    .with_document_fields(vec![(self.fields.body, vec![words])]);
                let found = best_documents(&self.searcher, &self.documents, &query, limit + 1)?;
                super::search::relative(found)
            }
        };
        let itself = document_hash(key);
        let mut analyzer = self.analyzer.clone();
        let mut hits = Vec::with_capacity(limit);
        for Ranked { score, address, .. } in found.into_iter().filter(|r| r.document != itself).take(limit) {
            let passage = self.passage(address, &mut analyzer)?;
            hits.push(Hit {
                id: passage.id.clone(),
                title: passage.title.clone(),
                snippet: passage.text.quote(&[]),
                url: passage.url.clone(),
                passage: passage.ordinal,
                score: score.clamp(0.0, 1.0),
                coverage: 0.0,
                metadata: None,
            });
        }
        Ok(Some(hits))
    }
}
