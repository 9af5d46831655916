//! Frozen records: a citation shows later exactly what was cited.
//!
//! Records are lines of JSON in files of their own (segments) below one folder; where each is, is kept in
//! memory and found again by reading the files when they are opened. The oldest go first: after `keep`, or
//! when there are more than `most`.

mod record;
mod segment;
mod token;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tribune_core::{Clock, Document, DocumentId, Error, Result};

use record::{Draft, RecordIn};
use segment::{Span, Writer};
pub use token::Token;

/// A segment is closed at this size at the latest, so that old records can go a file at a time.
const MAX_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Into how many segments what is kept is divided, by count and by time.
const SEGMENTS: usize = 8;

/// The same content frozen again within this time is the same citation.
const SAME_MOMENT: Duration = Duration::from_secs(1);

/// A clock that is put back by no more than this is overtaken in time, so that tokens go on from the last. What is
/// further ahead was frozen by a clock that was wrong.
const MAX_STEP: SignedDuration = SignedDuration::from_hours(24);

/// Ids whose latest content is remembered for that.
const MAX_RECENT: usize = 1_024;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a record can be looked up.
    pub keep: Duration,
    /// How many records there are at most; at least one.
    pub most: usize,
}

/// What became of a citation.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    Found {
        document: Box<Document>,
        frozen_at: Timestamp,
    },
    /// It was kept, and no longer is.
    Expired { kept_for: Duration },
    /// It was never given out, or for another document.
    Unknown,
}

/// All records that are kept. Shared between threads; every call takes a lock for at most one write of a
/// record to the system's cache.
pub struct Citations {
    dir: PathBuf,
    limits: Limits,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    index: BTreeMap<Token, Place>,
    /// By the token that names the file: how many of its records are still kept.
    segments: BTreeMap<Token, usize>,
    active: Option<(Token, Writer)>,
    recent: HashMap<DocumentId, Recent>,
    /// How much of each file has been read, and when it was last looked for more: other processes write
    /// beside this one.
    read: HashMap<Token, u64>,
    looked: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Place {
    segment: Token,
    span: Span,
}

struct Recent {
    content: Vec<u8>,
    token: Token,
}

impl Citations {
    /// Reads what earlier processes left in `dir`, which takes as long as reading its files. A folder that
    /// does not exist is made by the first record.
    pub fn open(dir: impl Into<PathBuf>, limits: Limits, clock: Arc<dyn Clock>) -> Result<Self> {
        let dir = dir.into();
        let state = State::read(&dir).map_err(|e| {
            Error::unavailable(format!(
                "the citations in {} cannot be read: {e}; check the folder's permissions",
                dir.display()
            ))
            .caused_by(e)
        })?;
        let citations = Self {
            dir,
            limits: Limits {
                most: limits.most.max(1),
                ..limits
            },
            clock,
            state: Mutex::new(state),
        };
        citations.forget_old(&mut citations.lock(), citations.clock.now());
        Ok(citations)
    }

    /// How many records are kept.
    pub fn len(&self) -> usize {
        self.lock().index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the document as it is now. On an error nothing is kept, and the answer can still be given with
    /// a citation of the current values.
    pub fn freeze(&self, document: &Document) -> Result<Token> {
        let mut tokens = self.freeze_all(std::slice::from_ref(document))?;
        tokens.pop().ok_or_else(|| Error::internal("a document was not kept"))
    }

    /// The same of several, in their order, with one write for all. On an error none is kept.
    pub fn freeze_all(&self, documents: &[Document]) -> Result<Vec<Token>> {
        let drafts: Vec<Draft<'_>> = documents.iter().map(Draft::of).collect::<Result<_>>()?;
        let now = self.clock.now();
        let mut state = self.lock();
        let (mut tokens, mut new) = (Vec::with_capacity(drafts.len()), BTreeMap::new());
        for draft in &drafts {
            let before = state.frozen_just_now(draft.id, &draft.content, now);
            let token = before.unwrap_or_else(|| state.unused_token(now, &new));
            if before.is_none() {
                new.insert(token, draft);
            }
            tokens.push(token);
        }
        self.append(&mut state, &new, now).map_err(|e| {
            self.abandon_active(&mut state);
            Error::unavailable(format!(
                "the citation could not be kept in {}: {e}; check that the disk has room and the folder is writable",
                self.dir.display()
            ))
            .caused_by(e)
        })?;
        state.remember(&new);
        self.forget_old(&mut state, now);
        Ok(tokens)
    }

    /// What was frozen under `token` for this id. An error only if it should be there and cannot be read.
    pub fn lookup(&self, id: &DocumentId, token: &str) -> Result<Lookup> {
        let Some(token) = Token::parse(token) else {
            return Ok(Lookup::Unknown);
        };
        let expired = Lookup::Expired {
            kept_for: self.limits.keep,
        };
        if token.age(self.clock.now()) > self.limits.keep {
            return Ok(expired);
        }
        let place = {
            let mut state = self.lock();
            if !state.index.contains_key(&token) {
                self.look_again(&mut state);
            }
            match state.index.get(&token) {
                Some(place) => *place,
                // Older than all that is kept: it made room for others.
                None if state.index.keys().next().is_some_and(|oldest| token < *oldest) => return Ok(expired),
                None => return Ok(Lookup::Unknown),
            }
        };
        let record = match segment::read(&segment::path(&self.dir, place.segment), place.span) {
            Ok(record) => record,
            // Gone between the index and the file.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(expired),
            Err(e) => return Err(damaged().caused_by(e)),
        };
        let record: RecordIn = serde_json::from_str(&record).map_err(|e| damaged().caused_by(e))?;
        if record.token != token.to_string() {
            return Err(damaged());
        }
        if record.id != *id {
            return Ok(Lookup::Unknown);
        }
        Ok(Lookup::Found {
            document: Box::new(record.into()),
            frozen_at: token.frozen_at(),
        })
    }

    /// A command at the shell may have cited it. At most once a second, whoever asks for whatever.
    fn look_again(&self, state: &mut State) {
        let now = self.clock.monotonic();
        let is_due = |last: Instant| now.duration_since(last) >= Duration::from_secs(1);
        if state.looked.is_some_and(|last| !is_due(last)) {
            return;
        }
        state.looked = Some(now);
        if let Err(error) = state.read_more(&self.dir) {
            tracing::warn!(%error, "citations of other processes cannot be read");
        }
    }

    fn append(&self, state: &mut State, new: &BTreeMap<Token, &Draft<'_>>, now: Timestamp) -> io::Result<()> {
        let Some((&token, _)) = new.first_key_value() else {
            return Ok(());
        };
        let (first, writer) = match &mut state.active {
            Some(active) if !self.is_full(active, now) => active,
            active => {
                let writer = Writer::create(&segment::path(&self.dir, token))?;
                state.segments.entry(token).or_insert(0);
                active.insert((token, writer))
            }
        };
        let segment = *first;
        let lines = new.iter().map(|(token, draft)| segment::line(*token, &draft.body));
        let spans = writer.append(&lines.collect::<Vec<_>>())?;
        let places = spans.into_iter().map(|span| Place { segment, span });
        state.index.extend(new.keys().copied().zip(places));
        *state.segments.entry(segment).or_insert(0) += new.len();
        Ok(())
    }

    /// Whatever is wrong with the file, the next record begins another; an empty one is not left behind.
    fn abandon_active(&self, state: &mut State) {
        if let Some((first, writer)) = state.active.take()
            && writer.records == 0
        {
            state.segments.remove(&first);
            self.delete(first);
        }
    }

    fn delete(&self, segment: Token) {
        let path = segment::path(&self.dir, segment);
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "a file of citations could not be deleted");
        }
    }

    fn is_full(&self, (first, writer): &(Token, Writer), now: Timestamp) -> bool {
        writer.length() >= MAX_SEGMENT_BYTES
            || writer.records >= self.limits.most.div_ceil(SEGMENTS)
            || first.age(now) > self.limits.keep / SEGMENTS as u32
    }

    /// Forgets what is too old or too many, and deletes the segments that nothing is kept of.
    fn forget_old(&self, state: &mut State, now: Timestamp) {
        while let Some(place) = self.next_to_go(&mut state.index, now) {
            if let Some(kept) = state.segments.get_mut(&place.segment) {
                *kept = kept.saturating_sub(1);
            }
        }
        let active = state.active.as_ref().map(|(first, _)| *first);
        // A segment without records may be another process's that has just begun it.
        let gone = |first: &Token, kept: usize| {
            let written = state.index.first_key_value().is_some_and(|(oldest, _)| first < oldest);
            kept == 0 && Some(*first) != active && (written || first.age(now) > self.limits.keep)
        };
        let dropped: Vec<Token> = state
            .segments
            .iter()
            .filter(|(first, kept)| gone(first, **kept))
            .map(|(first, _)| *first)
            .collect();
        for first in dropped {
            state.segments.remove(&first);
            self.delete(first);
        }
    }

    /// Takes out what is too old or too many: the oldest, but first what no clock that is right has frozen.
    fn next_to_go(&self, index: &mut BTreeMap<Token, Place>, now: Timestamp) -> Option<Place> {
        if index.first_key_value()?.0.age(now) > self.limits.keep {
            return index.pop_first().map(|(_, place)| place);
        }
        if index.len() <= self.limits.most {
            return None;
        }
        let latest = index.last_key_value()?.0.frozen_at();
        let gone = match latest.duration_since(now) > MAX_STEP {
            true => index.pop_last(),
            false => index.pop_first(),
        };
        gone.map(|(_, place)| place)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is changed only after what may fail, so a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn read(dir: &Path) -> io::Result<Self> {
        let mut state = Self::default();
        state.read_more(dir)?;
        Ok(state)
    }

    /// Reads the files that have grown since they were last read, except the one that is written here.
    fn read_more(&mut self, dir: &Path) -> io::Result<()> {
        for (segment, path) in segment::list(dir)? {
            let length = std::fs::metadata(&path).map_or(0, |file| file.len());
            let is_own = self.active.as_ref().is_some_and(|(active, _)| *active == segment);
            if is_own || self.read.insert(segment, length) == Some(length) {
                continue;
            }
            let mut kept = 0;
            let scanned = segment::scan(&path, |token, span| {
                self.index.entry(token).or_insert_with(|| {
                    kept += 1;
                    Place { segment, span }
                });
            });
            if let Err(error) = scanned {
                tracing::warn!(path = %path.display(), %error, "some citations cannot be read");
            }
            *self.segments.entry(segment).or_default() += kept;
        }
        Ok(())
    }

    /// What was frozen just now, so that the same again is the same citation.
    fn remember(&mut self, new: &BTreeMap<Token, &Draft<'_>>) {
        if self.recent.len() + new.len() > MAX_RECENT {
            self.recent.clear();
        }
        for (&token, draft) in new {
            let content = draft.content.clone();
            self.recent.insert(draft.id.clone(), Recent { content, token });
        }
    }

    fn frozen_just_now(&self, id: &DocumentId, content: &[u8], now: Timestamp) -> Option<Token> {
        let recent = self.recent.get(id)?;
        let same = recent.content == content && recent.token.age(now) < SAME_MOMENT;
        (same && self.index.contains_key(&recent.token)).then_some(recent.token)
    }

    /// Behind the last where the clock was put back: else it would be the oldest, and the first to go.
    fn unused_token<T>(&self, now: Timestamp, others: &BTreeMap<Token, T>) -> Token {
        let last = self.index.last_key_value().map(|(token, _)| token.frozen_at());
        let overtaken = last.filter(|last| *last > now && last.duration_since(now) <= MAX_STEP);
        let at = overtaken.map_or(now, |last| last + Duration::from_millis(1));
        loop {
            let token = Token::new(at, fastrand::u32(..));
            let is_used = others.contains_key(&token) || self.segments.contains_key(&token);
            if !is_used && !self.index.contains_key(&token) {
                return token;
            }
        }
    }
}

fn damaged() -> Error {
    Error::internal("the record of this citation is damaged; its current values can still be fetched")
}
