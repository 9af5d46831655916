//! Documents similar to a document.

use tribune_core::Hit;

use super::relative;
use crate::engine::{Leg, Ranking, Result};
use crate::hash;
use crate::query::Filter;
use crate::snapshot::Snapshot;

/// The part of a long document that is compared.
const MAX_COMPARED_BYTES: usize = 20_000;

impl Snapshot {
    /// The documents most similar to `key`, best first; `None` if there is no such document.
    pub fn related(&self, key: &str, limit: usize) -> Result<Option<Vec<Hit>>> {
        let Some(document) = self.version.document(key)? else {
            return Ok(None);
        };
        let centroid = match self.version.ranks_by_vector() {
            true => self.version.centroid(key)?,
            false => None,
        };
        let found = match centroid {
            Some(centroid) => {
                let ranking = Ranking { clauses: &[], filter: &Filter::default(), depth: limit + 1 };
                let mut legs = self.version.rank(&ranking, &[Leg::Vector(&centroid)])?;
                legs.pop().unwrap_or_default()
            }
            None => {
                let text = &document.text[..document.text.floor_char_boundary(MAX_COMPARED_BYTES)];
                let text = format!("{}\n{text}", document.title);
                relative(self.version.similar(&text, limit + 1)?)
            }
        };
        let itself = hash::stable(key);
        let mut words = self.version.words();
        let mut hits = Vec::with_capacity(limit);
        for candidate in found.into_iter().filter(|found| found.document != itself).take(limit) {
            let passage = self.passage(candidate.passage, &mut *words)?;
            hits.push(passage.hit(passage.text.quote(&[]), candidate.score.clamp(0.0, 1.0), 0.0));
        }
        Ok(Some(hits))
    }
}
