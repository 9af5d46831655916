//! Neighbours of a document: before and after it, and with the same author.

use std::cmp::Reverse;

use tribune_core::wire::clip;
use tribune_core::{Document, JsonObject};
use tribune_page::Neighbour;

use super::words;
use crate::collection::Timeline;
use crate::engine::{DatedDocument, Result, StoredDocument, TimelineEntry, days};
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
    /// The documents before and after: the rows of a file by number, others by date or in the order of their folder.
    pub(super) fn beside(&self, key: &str, stored: &StoredDocument, holds_many: bool) -> Result<Both<Neighbour>> {
        let timeline = self.settings.collection.timeline;
        let (previous, next) = match (numbered(key, &stored.file), timeline) {
            (Some(number), _) => self.rows_beside(number, &stored.file)?,
            (None, Some(timeline)) if stored.date.is_some() => self.keys_in_time(key, timeline)?,
            _ => self.keys_in_folder(key, &stored.file, holds_many)?,
        };
        let neighbour = |key: Option<String>| match key {
            Some(key) => self.neighbour(&key, timeline.is_some()),
            None => Ok(None),
        };
        Ok((neighbour(previous)?, neighbour(next)?))
    }

    /// Other documents by the author that `field` names, newest first.
    pub(super) fn more_by(
        &self,
        key: &str,
        fields: &JsonObject,
        field: &str,
        name: &str,
    ) -> Result<Option<(String, Vec<Neighbour>)>> {
        // Of several authors, the first.
        let first = fields[field].as_array().and_then(|names| names.first()?.as_str());
        let name = first.unwrap_or(name);
        let mut found = self.version.documents_with(field, name, self.visible())?;
        found.retain(|found| found.document != hash::stable(key));
        found.sort_by_key(|found| (Reverse(found.day), found.passage));
        let others = self.shown(&found, false)?;
        Ok((!others.is_empty()).then(|| (format!("More by {}", clip(name, 80)), others)))
    }

    /// Other documents of the same day that have this value, in the order of the index.
    pub fn others_of_day(&self, document: &Document, field: &str, value: &str) -> Result<Vec<Neighbour>> {
        let Some(moment) = document.as_of else {
            return Ok(Vec::new());
        };
        let today = Some(days(moment.to_zoned(jiff::tz::TimeZone::UTC).date()));
        let itself = hash::stable(document.id.key());
        let mut found = self.version.documents_with(field, value, self.visible())?;
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
        let Some(stored) = self.stored(key)? else {
            return Ok(None);
        };
        let speaker = stored.fields.get("speaker").filter(|_| with_author);
        let notes = [speaker.and_then(words::text), stored.date.map(words::long_date)];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        Ok(Some(Neighbour {
            id: format!("{}:{key}", self.settings.name),
            title: clip(&stored.title, MAX_TITLE_CHARS).into_owned(),
            note: (!notes.is_empty()).then(|| notes.join(", ")),
        }))
    }

    /// The nearest rows in the file. A row that could not be read leaves a gap.
    fn rows_beside(&self, number: u64, file: &str) -> Result<Both<String>> {
        let nearest = |step: i64| -> Result<Option<String>> {
            for distance in 1..=MAX_ROWS as i64 {
                let key = number.checked_add_signed(step * distance).map(|number| format!("{file}#{number}"));
                if let Some(key) = key
                    && self.holds(&key)?
                {
                    return Ok(Some(key));
                }
            }
            Ok(None)
        };
        Ok((nearest(-1)?, nearest(1)?))
    }

    /// The documents before and after by series, day and page.
    fn keys_in_time(&self, key: &str, timeline: Timeline) -> Result<Both<String>> {
        let entries = match self.timeline.get() {
            Some(entries) => entries,
            None => {
                let entries = self.version.timeline(timeline)?;
                self.timeline.get_or_init(|| entries)
            }
        };
        let document = hash::stable(key);
        let Some(position) = entries.iter().position(|entry| entry.document == document) else {
            return Ok((None, None));
        };
        let series = entries[position].series;
        let (before, after) = (entries[..position].iter().rev(), entries[position + 1..].iter());
        Ok((self.first_visible(before, series)?, self.first_visible(after, series)?))
    }

    fn first_visible<'e>(
        &self,
        entries: impl Iterator<Item = &'e TimelineEntry>,
        series: u16,
    ) -> Result<Option<String>> {
        for entry in entries.take_while(|entry| entry.series == series) {
            if self.version.shows(entry.passage, self.visible())? {
                return Ok(Some(self.version.passage(entry.passage)?.key));
            }
        }
        Ok(None)
    }

    /// Rows with ids are ordered by id within their file, files by name within their folder.
    fn keys_in_folder(&self, key: &str, file: &str, has_rows: bool) -> Result<Both<String>> {
        if !has_rows && key != file {
            return Ok((None, None));
        }
        let most = if has_rows { MAX_ROWS } else { MAX_FILES };
        let nearest = |is_before: bool| -> Result<Option<String>> {
            for other in self.version.keys_beside(key, is_before, most, self.visible())? {
                // A row's neighbours are in the same file, a file's in the same folder.
                if !has_rows && folder(&other) != folder(key) {
                    continue;
                }
                let wanted = if has_rows { file } else { &other };
                if self.file_of(&other)?.is_some_and(|file| file == *wanted) {
                    return Ok(Some(other));
                }
            }
            Ok(None)
        };
        Ok((nearest(true)?, nearest(false)?))
    }
}

/// The number of a row without an id: `sitting.xml#12`.
fn numbered(key: &str, file: &str) -> Option<u64> {
    key.strip_prefix(file)?.strip_prefix('#')?.parse().ok()
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
