//! Citation records: a permalink shows exactly what was cited.
//!
//! Records are lines of JSON in files (segments) of one folder. The index is in memory and is rebuilt from the files on
//! opening. The oldest records are dropped first: after `keep`, or when there are more than `most`.
//!
//! - `token`: the name of a record; `record`: a document as a record; `segment`: one file
//! - [`Citations`]: all records of a folder, blocking; [`records`]: the same for async code; `recent`: what was cited
//!   within the last second

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod recent;
mod record;
pub mod records;
mod segment;
mod token;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tribune_core::{Cited, Clock, DocumentId, Error, Result};

use record::{Draft, Record};
use segment::{Span, Writer};
pub use token::Token;

/// The largest segment. Old records are deleted one file at a time.
const MAX_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

/// The number of segments that all records fill, by count or by time.
const SEGMENTS: usize = 8;

/// After the clock was set back by at most this much, tokens continue from the last one. A token further ahead comes from
/// a wrong clock.
const MAX_STEP: SignedDuration = SignedDuration::from_hours(24);

/// How many records are kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a record can be looked up.
    pub keep: Duration,
    /// The largest number of records; at least one.
    pub most: usize,
}

/// All records of a folder. Calls block on the disk: async code uses [`records::Records`].
pub struct Citations {
    dir: PathBuf,
    limits: Limits,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    index: BTreeMap<Token, Location>,
    /// Records left in each segment, by the token that names its file.
    segments: BTreeMap<Token, usize>,
    active: Option<(Token, Writer)>,
    /// Segments that this process wrote, so all their records are in the index.
    own: HashSet<Token>,
    /// Bytes read of each segment: other processes write to the same folder.
    read: HashMap<Token, u64>,
    /// When the folder was last read.
    refreshed: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Location {
    segment: Token,
    span: Span,
}

impl Citations {
    /// Reads the records in `dir`. A folder that does not exist is created with the first record.
    pub fn open(dir: impl Into<PathBuf>, limits: Limits, clock: Arc<dyn Clock>) -> Result<Self> {
        let dir = dir.into();
        let mut state = State::default();
        state.read_more(&dir).map_err(|e| {
            Error::unavailable(format!(
                "the citations in {} cannot be read: {e}; check the folder's permissions",
                dir.display()
            ))
            .caused_by(e)
        })?;
        let citations =
            Self { dir, limits: Limits { most: limits.most.max(1), ..limits }, clock, state: Mutex::new(state) };
        citations.drop_old(&mut citations.lock(), citations.clock.now());
        Ok(citations)
    }

    /// Stores documents with one write, in order. On an error none is stored, and the answer can still cite the current
    /// page.
    fn freeze_drafts(&self, drafts: &[Draft]) -> Result<Vec<Token>> {
        let now = self.clock.now();
        let mut state = self.lock();
        let (mut tokens, mut new) = (Vec::with_capacity(drafts.len()), BTreeMap::new());
        for draft in drafts {
            let token = state.unused_token(now, &new);
            new.insert(token, draft);
            tokens.push(token);
        }
        self.append(&mut state, &new, now).map_err(|e| {
            self.abandon_active(&mut state);
            Error::unavailable(format!(
                "the citation cannot be stored in {}: {e}; check that the disk has room and the folder is writable",
                self.dir.display()
            ))
            .caused_by(e)
        })?;
        self.drop_old(&mut state, now);
        Ok(tokens)
    }

    /// The record of a document. Fails only if the record exists and cannot be read.
    pub fn lookup(&self, id: &DocumentId, token: &str) -> Result<Cited> {
        let Some(token) = Token::parse(token) else {
            return Ok(Cited::Unknown);
        };
        let expired = Cited::Expired(format!(
            "What is cited of the market is kept for {} days, and as many as there is room for; this record is gone.",
            self.limits.keep.as_secs() / 86_400
        ));
        if token.age(self.clock.now()) > self.limits.keep {
            return Ok(expired);
        }
        let location = {
            let mut state = self.lock();
            if !state.index.contains_key(&token) {
                self.refresh(&mut state);
            }
            match state.index.get(&token) {
                Some(location) => *location,
                // Older than all records: it was dropped for newer ones.
                None if state.index.keys().next().is_some_and(|oldest| token < *oldest) => return Ok(expired),
                None => return Ok(Cited::Unknown),
            }
        };
        let record = match segment::read(&segment::path(&self.dir, location.segment), location.span) {
            Ok(record) => record,
            // Another process deleted the file.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(expired),
            Err(e) => return Err(damaged().caused_by(e)),
        };
        let record: Record<'_> = serde_json::from_str(&record).map_err(|e| damaged().caused_by(e))?;
        if record.token != token.to_string() {
            return Err(damaged());
        }
        if *record.id != *id {
            return Ok(Cited::Unknown);
        }
        Ok(Cited::Kept { document: Box::new(record.into()), at: token.frozen_at() })
    }

    /// Another process may have stored the record. Reads the folder at most once a second.
    fn refresh(&self, state: &mut State) {
        let now = self.clock.monotonic();
        let is_due = |last: Instant| now.duration_since(last) >= Duration::from_secs(1);
        if state.refreshed.is_some_and(|last| !is_due(last)) {
            return;
        }
        state.refreshed = Some(now);
        if let Err(error) = state.read_more(&self.dir) {
            tracing::warn!(%error, "citations of other processes cannot be read");
        }
    }

    fn append(&self, state: &mut State, new: &BTreeMap<Token, &Draft>, now: Timestamp) -> io::Result<()> {
        let Some((&token, _)) = new.first_key_value() else {
            return Ok(());
        };
        let (first, writer) = match &mut state.active {
            Some(active) if !self.is_full(active, now) => active,
            active => {
                let writer = Writer::create(&segment::path(&self.dir, token))?;
                state.segments.entry(token).or_insert(0);
                state.own.insert(token);
                active.insert((token, writer))
            }
        };
        let segment = *first;
        let lines = new.iter().map(|(token, draft)| segment::line(*token, &draft.body));
        let spans = writer.append(&lines.collect::<Vec<_>>())?;
        let locations = spans.into_iter().map(|span| Location { segment, span });
        state.index.extend(new.keys().copied().zip(locations));
        *state.segments.entry(segment).or_insert(0) += new.len();
        Ok(())
    }

    /// After an error the next record starts a new segment; an empty file is deleted.
    fn abandon_active(&self, state: &mut State) {
        if let Some((first, writer)) = state.active.take()
            && writer.records == 0
        {
            state.segments.remove(&first);
            state.own.remove(&first);
            self.delete(first);
        }
    }

    fn delete(&self, segment: Token) {
        let path = segment::path(&self.dir, segment);
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot delete a file of citations");
        }
    }

    fn is_full(&self, (first, writer): &(Token, Writer), now: Timestamp) -> bool {
        writer.length >= MAX_SEGMENT_BYTES
            || writer.records >= self.limits.most.div_ceil(SEGMENTS)
            || first.age(now) > self.limits.keep / SEGMENTS as u32
    }

    /// Drops records that are too old or too many, and deletes segments without records.
    fn drop_old(&self, state: &mut State, now: Timestamp) {
        while let Some(location) = self.next_to_drop(&mut state.index, now) {
            if let Some(kept) = state.segments.get_mut(&location.segment) {
                *kept = kept.saturating_sub(1);
            }
        }
        let active = state.active.as_ref().map(|(first, _)| *first);
        // Another process may have just created a segment that has no records yet.
        let gone = |first: &Token, kept: usize| {
            let written = state.index.first_key_value().is_some_and(|(oldest, _)| first < oldest);
            kept == 0 && Some(*first) != active && (written || first.age(now) > self.limits.keep)
        };
        let dropped: Vec<Token> =
            state.segments.iter().filter(|(first, kept)| gone(first, **kept)).map(|(first, _)| *first).collect();
        for first in dropped {
            if state.may_delete(first, &segment::path(&self.dir, first)) {
                state.segments.remove(&first);
                self.delete(first);
            }
        }
    }

    /// The next record to drop: the oldest, but first those from a wrong clock.
    fn next_to_drop(&self, index: &mut BTreeMap<Token, Location>, now: Timestamp) -> Option<Location> {
        if index.first_key_value()?.0.age(now) > self.limits.keep {
            return index.pop_first().map(|(_, location)| location);
        }
        if index.len() <= self.limits.most {
            return None;
        }
        let latest = index.last_key_value()?.0.frozen_at();
        let gone = match latest.duration_since(now) > MAX_STEP {
            true => index.pop_last(),
            false => index.pop_first(),
        };
        gone.map(|(_, location)| location)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state changes only after everything that may fail, so it is consistent after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reads the files that have grown, except the one that this process writes.
    fn read_more(&mut self, dir: &Path) -> io::Result<()> {
        for (segment, path) in segment::list(dir)? {
            let length = std::fs::metadata(&path).map_or(0, |file| file.len());
            let is_own = self.active.as_ref().is_some_and(|(active, _)| *active == segment);
            if is_own || self.read.get(&segment) == Some(&length) {
                continue;
            }
            if let Err(error) = self.read_segment(segment, &path, length) {
                tracing::warn!(path = %path.display(), %error, "some citations cannot be read");
            }
        }
        Ok(())
    }

    /// A file that another process still writes, or that has grown, may hold fresh records. Reads what is new; the file is
    /// checked again the next time.
    fn may_delete(&mut self, segment: Token, path: &Path) -> bool {
        if segment::is_written(path) {
            return false;
        }
        let length = std::fs::metadata(path).map_or(0, |file| file.len());
        if self.own.remove(&segment) || self.read.get(&segment) == Some(&length) {
            return true;
        }
        if let Err(error) = self.read_segment(segment, path, length) {
            tracing::warn!(path = %path.display(), %error, "some citations cannot be read");
        }
        false
    }

    fn read_segment(&mut self, segment: Token, path: &Path, length: u64) -> io::Result<()> {
        self.read.insert(segment, length);
        let mut kept = 0;
        let scanned = segment::scan(path, |token, span| {
            self.index.entry(token).or_insert_with(|| {
                kept += 1;
                Location { segment, span }
            });
        });
        *self.segments.entry(segment).or_default() += kept;
        scanned
    }

    /// Follows the last token if the clock was set back: otherwise it would be the oldest and dropped first.
    fn unused_token<T>(&self, now: Timestamp, others: &BTreeMap<Token, T>) -> Token {
        let last = self.index.last_key_value().map(|(token, _)| token.frozen_at());
        let overtaken = last.filter(|last| *last > now && last.duration_since(now) <= MAX_STEP);
        let at = overtaken.map_or(now, |last| last + Duration::from_millis(1));
        loop {
            #[allow(clippy::disallowed_methods, reason = "two processes may cite in the same millisecond")]
            let token = Token::new(at, fastrand::u32(..));
            let is_used = others.contains_key(&token) || self.segments.contains_key(&token);
            if !is_used && !self.index.contains_key(&token) {
                return token;
            }
        }
    }
}

fn damaged() -> Error {
    Error::internal("the record of this citation is damaged; fetch its id for the current values")
}
