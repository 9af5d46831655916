//! Documents beside a document: the ones before and after it, and those that it shares something with.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::Path;

use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, TERMINATED, TantivyDocument, Term};
use tribune_core::view::Neighbour;
use tribune_core::wire::clip;

use super::chronology::{Chronology, Place};
use super::{Subject, day_of, words};
use crate::read::{Format, Reading};
use crate::schema::{days, document_hash, facet_term};
use crate::snapshot::{Snapshot, stored_text};
use crate::speech::dates::long;

/// Others by the same person or of the same debate that a page shows.
const MAX_IN_GROUP: usize = 5;
/// Keys that are looked at for the next one that fits: files of other folders may stand between.
const MAX_ROWS: usize = 50;
const MAX_FILES: usize = 2_000;
/// Entries that are looked at for a group.
const MAX_ENTRIES: usize = 100_000;

const MAX_TITLE_CHARS: usize = 160;

type Both<T> = (Option<T>, Option<T>);

/// A document that has a value, by one of its passages.
struct Found {
    day: Option<i64>,
    document: u64,
    address: DocAddress,
}

impl Snapshot {
    /// What stands before and after a document: speeches as they were given, other documents as their folder or file
    /// lists them.
    pub(super) fn beside(&self, subject: &Subject, file: &str) -> tantivy::Result<Both<Neighbour>> {
        let key = subject.id.key();
        let (previous, next) = if subject.is_speech && subject.date.is_some() {
            self.keys_in_time(key)?
        } else {
            self.keys_in_folder(key, file)?
        };
        let neighbour = |key: Option<String>| match key {
            Some(key) => self.neighbour(&key, subject.is_speech),
            None => Ok(None),
        };
        Ok((neighbour(previous)?, neighbour(next)?))
    }

    pub(super) fn groups(&self, subject: &Subject) -> tantivy::Result<Vec<(String, Vec<Neighbour>)>> {
        let mut groups = Vec::new();
        let itself = document_hash(subject.id.key());
        if let Some((field, name)) = subject.author() {
            // Of several authors, the first.
            let first = subject
                .fields
                .get(field)
                .and_then(|value| value.as_array()?.first()?.as_str());
            let name = first.map_or(name, str::to_owned);
            let mut found = self.documents_with(&facet_term(&self.fields, field, &name))?;
            found.retain(|found| found.document != itself);
            found.sort_by_key(|found| (Reverse(found.day), found.address));
            groups.push((format!("More by {}", clip(&name, 80)), self.shown(&found, false)?));
        }
        let debate = ["subdebate", "debate"]
            .into_iter()
            .find_map(|field| Some((field, subject.fields.get(field)?)));
        if let (Some((field, value)), Some(date)) = (debate, subject.date)
            && let Some(name) = value.as_str()
        {
            let today = Some(days(date));
            let mut found = self.documents_with(&facet_term(&self.fields, field, name))?;
            found.retain(|found| found.document != itself && found.day == today);
            found.sort_by_key(|found| found.address);
            groups.push(("In the same debate".to_owned(), self.shown(&found, true)?));
        }
        groups.retain(|(_, others)| !others.is_empty());
        Ok(groups)
    }

    /// Every document that has a value, once.
    fn documents_with(&self, value: &Term) -> tantivy::Result<Vec<Found>> {
        let mut known = HashSet::new();
        let mut found = Vec::new();
        let segments = self.searcher.segment_readers().iter().zip(&self.documents);
        for (segment, (reader, documents)) in (0u32..).zip(segments) {
            let index = reader.inverted_index(self.fields.facet)?;
            let Some(mut postings) = index.read_postings(value, IndexRecordOption::Basic)? else {
                continue;
            };
            let days = reader.fast_fields().i64("day")?;
            for _ in 0..MAX_ENTRIES {
                let doc = postings.doc();
                if doc == TERMINATED {
                    break;
                }
                if !reader.is_deleted(doc)
                    && let Some(document) = documents.first(doc)
                    && known.insert(document)
                {
                    found.push(Found {
                        day: days.first(doc),
                        document,
                        address: DocAddress::new(segment, doc),
                    });
                }
                postings.advance();
            }
        }
        Ok(found)
    }

    fn shown(&self, found: &[Found], with_author: bool) -> tantivy::Result<Vec<Neighbour>> {
        let mut shown = Vec::new();
        for found in found.iter().take(MAX_IN_GROUP) {
            let entry: TantivyDocument = self.searcher.doc(found.address)?;
            shown.extend(self.neighbour(&stored_text(&entry, self.fields.key), with_author)?);
        }
        Ok(shown)
    }

    fn neighbour(&self, key: &str, with_author: bool) -> tantivy::Result<Option<Neighbour>> {
        let Some(document) = self.fetch(key)? else {
            return Ok(None);
        };
        let speaker = document
            .metadata
            .get("speaker")
            .filter(|_| with_author)
            .and_then(words::text);
        let date = document.as_of.map(|moment| long(day_of(moment)));
        let notes: Vec<String> = [speaker, date].into_iter().flatten().collect();
        Ok(Some(Neighbour {
            id: document.id,
            title: clip(&document.title, MAX_TITLE_CHARS).into_owned(),
            note: (!notes.is_empty()).then(|| notes.join(", ")),
        }))
    }

    /// The documents before and after by chamber, day, page, and place in the file.
    fn keys_in_time(&self, key: &str) -> tantivy::Result<Both<String>> {
        let order = match self.chronology.get() {
            Some(order) => order,
            None => {
                let order = Chronology::of(self)?;
                self.chronology.get_or_init(|| order)
            }
        };
        let Some(position) = order.position(document_hash(key)) else {
            return Ok((None, None));
        };
        let tied = order.tied(position);
        let keys = self.keys_as_filed(order.places(tied.clone()))?;
        let here = keys.iter().position(|other| other == key);
        let beyond = |is_before: bool| match order.beyond(&tied, is_before) {
            Some(position) => self.keys_as_filed(order.places(order.tied(position))),
            None => Ok(Vec::new()),
        };
        let previous = match here.and_then(|here| here.checked_sub(1)) {
            Some(before) => keys.get(before).cloned(),
            None => beyond(true)?.pop(),
        };
        let next = match here.and_then(|here| keys.get(here + 1)) {
            Some(after) => Some(after.clone()),
            None => beyond(false)?.into_iter().next(),
        };
        Ok((previous, next))
    }

    /// The keys of documents as they stand in their files.
    fn keys_as_filed(&self, places: &[Place]) -> tantivy::Result<Vec<String>> {
        let mut filed = Vec::with_capacity(places.len());
        for place in places {
            let entry: TantivyDocument = self.searcher.doc(place.address)?;
            let (file, key) = (
                stored_text(&entry, self.fields.file),
                stored_text(&entry, self.fields.key),
            );
            filed.push((numbered(&key, &file), file, key));
        }
        filed.sort_by(|a, b| (&a.1, a.0, &a.2).cmp(&(&b.1, b.0, &b.2)));
        Ok(filed.into_iter().map(|(_, _, key)| key).collect())
    }

    /// Rows stand in their file by number or by id; files stand in their folder by name.
    fn keys_in_folder(&self, key: &str, file: &str) -> tantivy::Result<Both<String>> {
        if let Some(number) = numbered(key, file) {
            let at = |number: Option<u64>| match number.map(|number| format!("{file}#{number}")) {
                Some(key) => Ok::<_, tantivy::TantivyError>(self.holds(&key)?.then_some(key)),
                None => Ok(None),
            };
            return Ok((at(number.checked_sub(1))?, at(number.checked_add(1))?));
        }
        let has_rows = Format::of(Path::new(file), &Reading::default()).is_some_and(Format::is_rows);
        if !has_rows && key != file {
            return Ok((None, None));
        }
        // Rows are told by the file they came from, files by their own names.
        let fits = |other: &str| -> tantivy::Result<bool> {
            if !has_rows && folder(other) != folder(key) {
                return Ok(false);
            }
            let wanted = if has_rows { file } else { other };
            Ok(self.file_of(other)?.is_some_and(|file| file == wanted))
        };
        let most = if has_rows { MAX_ROWS } else { MAX_FILES };
        Ok((
            self.key_beside(key, true, most, &fits)?,
            self.key_beside(key, false, most, &fits)?,
        ))
    }

    /// The nearest key before or after that fits.
    fn key_beside(
        &self,
        key: &str,
        is_before: bool,
        most: usize,
        fits: &dyn Fn(&str) -> tantivy::Result<bool>,
    ) -> tantivy::Result<Option<String>> {
        let mut nearest: Option<String> = None;
        for reader in self.searcher.segment_readers() {
            let index = reader.inverted_index(self.fields.record)?;
            let range = index.terms().range();
            let mut keys = if is_before {
                range.lt(key).backward().into_stream()?
            } else {
                range.gt(key).into_stream()?
            };
            for _ in 0..most {
                if !keys.advance() {
                    break;
                }
                let other = String::from_utf8_lossy(keys.key()).into_owned();
                let is_nearer = |nearest: &String| if is_before { other > *nearest } else { other < *nearest };
                if nearest.as_ref().is_some_and(|nearest| !is_nearer(nearest)) {
                    break;
                }
                if fits(&other)? {
                    nearest = Some(other);
                    break;
                }
            }
        }
        Ok(nearest)
    }
}

/// The number of a row that has no id of its own: `sitting.xml#12`.
fn numbered(key: &str, file: &str) -> Option<u64> {
    key.strip_prefix(file)?.strip_prefix('#')?.parse().ok()
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
