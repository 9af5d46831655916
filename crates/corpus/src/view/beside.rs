//! Neighbours of a document: before and after it, and with the same author.

use std::cmp::Reverse;

use jiff::civil::Date;
use tribune_core::wire::clip;
use tribune_page::Neighbour;

use super::chronology::Chronology;
use super::{Subject, day_of, words};
use crate::collection::Timeline;
use crate::engine::{DatedDocument, EngineError, Result, TimelineEntry};
use crate::format::Contents;
use crate::hash;
use crate::snapshot::Snapshot;

/// The most neighbours in one group.
const MAX_IN_GROUP: usize = 5;
/// Keys to examine for the next neighbour: files of other folders may lie between.
const MAX_ROWS: usize = 50;
const MAX_FILES: usize = 2_000;

const MAX_TITLE_CHARS: usize = 160;

type Both<T> = (Option<T>, Option<T>);

impl Snapshot {
    /// The documents before and after: by date, or else in the order of their folder or file.
    pub(super) fn beside(&self, subject: &Subject, file: &str, contents: Contents) -> Result<Both<Neighbour>> {
        let key = subject.id.key();
        let (previous, next) = match subject.timeline {
            Some(timeline) if subject.date.is_some() => self.keys_in_time(key, timeline)?,
            _ => self.keys_in_folder(key, file, contents.many)?,
        };
        let neighbour = |key: Option<String>| match key {
            Some(key) => self.neighbour(&key, subject.timeline.is_some()),
            None => Ok(None),
        };
        Ok((neighbour(previous)?, neighbour(next)?))
    }

    pub(super) fn groups(&self, subject: &Subject) -> Result<Vec<(String, Vec<Neighbour>)>> {
        let mut groups = Vec::new();
        let itself = hash::stable(subject.id.key());
        if let Some((field, name)) = subject.author() {
            // Of several authors, the first.
            let first = subject
                .fields
                .get(field)
                .and_then(|value| value.as_array()?.first()?.as_str());
            let name = first.map_or(name, str::to_owned);
            let mut found = self.version.documents_with(field, &name)?;
            found.retain(|found| found.document != itself);
            found.sort_by_key(|found| (Reverse(found.day), found.passage));
            groups.push((format!("More by {}", clip(&name, 80)), self.shown(&found, false)?));
        }
        groups.retain(|(_, others)| !others.is_empty());
        Ok(groups)
    }

    pub(crate) fn others_of_day(&self, key: &str, day: Date, field: &str, value: &str) -> Result<Vec<Neighbour>> {
        let (itself, today) = (hash::stable(key), Some(days_since_epoch(day)));
        let mut found = self.version.documents_with(field, value)?;
        found.retain(|found| found.document != itself && found.day == today);
        found.sort_by_key(|found| found.passage);
        self.shown(&found, true)
    }

    fn shown(&self, found: &[DatedDocument], with_author: bool) -> Result<Vec<Neighbour>> {
        let mut shown = Vec::new();
        for found in found.iter().take(MAX_IN_GROUP) {
            let key = self.version.passage(found.passage)?.key;
            shown.extend(self.neighbour(&key, with_author)?);
        }
        Ok(shown)
    }

    fn neighbour(&self, key: &str, with_author: bool) -> Result<Option<Neighbour>> {
        let Some(document) = self.fetch(key)? else {
            return Ok(None);
        };
        let speaker = document
            .metadata
            .get("speaker")
            .filter(|_| with_author)
            .and_then(words::text);
        let date = document.as_of.map(|moment| words::long_date(day_of(moment)));
        let notes: Vec<String> = [speaker, date].into_iter().flatten().collect();
        Ok(Some(Neighbour {
            id: document.id.to_string(),
            title: clip(&document.title, MAX_TITLE_CHARS).into_owned(),
            note: (!notes.is_empty()).then(|| notes.join(", ")),
        }))
    }

    /// The documents before and after by series, day, page and position in the file.
    fn keys_in_time(&self, key: &str, timeline: Timeline) -> Result<Both<String>> {
        let places = match self.places.get() {
            Some(places) => places,
            None => {
                let places = self.version.timeline(timeline)?;
                self.places.get_or_init(|| places)
            }
        };
        let order = Chronology(places);
        let Some(position) = order.position(hash::stable(key)) else {
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

    /// The keys of documents in the order of their files.
    fn keys_as_filed(&self, places: &[TimelineEntry]) -> Result<Vec<String>> {
        let mut filed = Vec::with_capacity(places.len());
        for place in places {
            let key = self.version.passage(place.passage)?.key;
            let file = self.file_of(&key)?.unwrap_or_default();
            filed.push((numbered(&key, &file), file, key));
        }
        filed.sort_by(|a, b| (&a.1, a.0, &a.2).cmp(&(&b.1, b.0, &b.2)));
        Ok(filed.into_iter().map(|(_, _, key)| key).collect())
    }

    /// Rows are ordered by number or id within their file, files by name within their folder.
    fn keys_in_folder(&self, key: &str, file: &str, has_rows: bool) -> Result<Both<String>> {
        if let Some(number) = numbered(key, file) {
            let at = |number: Option<u64>| match number.map(|number| format!("{file}#{number}")) {
                Some(key) => Ok::<_, EngineError>(self.version.holds(&key)?.then_some(key)),
                None => Ok(None),
            };
            return Ok((at(number.checked_sub(1))?, at(number.checked_add(1))?));
        }
        if !has_rows && key != file {
            return Ok((None, None));
        }
        // A row's neighbours are in the same file, a file's in the same folder.
        let fits = |other: &str| -> Result<bool> {
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

    /// The nearest key before or after that qualifies.
    fn key_beside(
        &self,
        key: &str,
        is_before: bool,
        most: usize,
        fits: &dyn Fn(&str) -> Result<bool>,
    ) -> Result<Option<String>> {
        for other in self.version.keys_beside(key, is_before, most)? {
            if fits(&other)? {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }
}

fn days_since_epoch(date: Date) -> i64 {
    let epoch = jiff::civil::date(1970, 1, 1);
    i64::from(epoch.until(date).map_or(0, |span| span.get_days()))
}

/// The number of a row without an id: `sitting.xml#12`.
fn numbered(key: &str, file: &str) -> Option<u64> {
    key.strip_prefix(file)?.strip_prefix('#')?.parse().ok()
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
