//! A local copy of the exchange's book.
//!
//! The exchange's procedure, with its numbers:
//!
//! 1. Open the diff stream first and buffer; note the first event's `U`.
//! 2. Fetch the snapshot; if its `lastUpdateId` is before the first event's `U`, fetch again.
//! 3. Drop buffered events with `u <= lastUpdateId`.
//! 4. An event with `U > last + 1` is a gap: discard the book and start again. Otherwise set absolute
//!    quantities (0 removes; removing an absent level is normal) and set `last = u`.

use std::collections::VecDeque;

use serde::Deserialize;

use super::{Depth, Level};
use crate::model::Millis;
use crate::wire::levels;

/// A buffer this long means that no snapshot comes: more than a minute and a half at ten updates a second.
const MAX_BUFFERED: usize = 1_000;
/// Best prices are announced at once; the events that contain the change come up to 100 ms later.
const MAX_ANNOUNCED: usize = 256;

/// One depth event: what changed between two update ids, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// `U` of the wire.
    pub first_id: u64,
    /// `u` of the wire.
    pub last_id: u64,
    pub time: Option<Millis>,
    pub bids: Vec<Level>,
    pub asks: Vec<Level>,
}

/// A book as a snapshot has it, best first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct Snapshot {
    pub last_update_id: u64,
    #[serde(deserialize_with = "levels")]
    pub bids: Vec<Level>,
    #[serde(deserialize_with = "levels")]
    pub asks: Vec<Level>,
    /// How many levels a side were asked for: a side that has fewer is known whole.
    #[serde(skip)]
    pub limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Kept until the snapshot is there.
    Buffered,
    Applied,
    /// Already in the book.
    Old,
}

/// Why a book was discarded; it is buffering again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("updates are missing: expected {expected}, got {got}")]
    Gap { expected: u64, got: u64 },
    #[error("an update ends before it begins")]
    Backwards,
    #[error("best bid and best ask crossed")]
    Crossed,
    #[error("the price left the levels that the snapshot had")]
    Exhausted,
    #[error("best prices differ from what the exchange announced")]
    Contradicted,
    #[error("no usable snapshot came")]
    NoSnapshot,
    #[error("an update could not be read")]
    Unreadable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// The book is exact from here on.
    Synced,
    /// Older than the first buffered event, or than earlier updates of the stream: fetch again.
    TooOld,
}

/// Best prices after one update, as the exchange announced them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BestQuote {
    pub update_id: u64,
    pub bid: Level,
    pub ask: Level,
}

/// The writer's copy of one book.
#[derive(Debug, Default)]
pub struct LocalBook {
    /// While false, events are buffered until the snapshot is there.
    is_synced: bool,
    buffered: VecDeque<Diff>,
    depth: Depth,
    last_update_id: u64,
    /// When the exchange says the last event was.
    pub(crate) time: Option<Millis>,
    max_levels: usize,
    /// Announced and not yet reached by the book, in order.
    announced: VecDeque<BestQuote>,
    /// The newest id of the stream: an older snapshot would be a step back.
    newest: u64,
}

impl LocalBook {
    pub fn new(max_levels: usize) -> Self {
        Self { max_levels, ..Self::default() }
    }

    pub fn is_synced(&self) -> bool {
        self.is_synced
    }

    pub fn depth(&self) -> &Depth {
        &self.depth
    }

    pub fn last_update_id(&self) -> u64 {
        self.last_update_id
    }

    /// Starts again from a new snapshot.
    pub fn discard(&mut self) {
        *self = Self { newest: self.newest, ..Self::new(self.max_levels) };
    }

    /// Another stream begins, whose ids may have restarted.
    pub fn reopened(&mut self) {
        *self = Self::new(self.max_levels);
    }

    pub fn event(&mut self, diff: Diff) -> Result<Outcome, Fault> {
        if diff.last_id < diff.first_id {
            self.discard();
            return Err(Fault::Backwards);
        }
        self.newest = self.newest.max(diff.last_id);
        if self.is_synced {
            return self.apply(diff);
        }
        // Step 1.
        let expected = self.buffered.back().map_or(diff.first_id, |event| event.last_id.saturating_add(1));
        let got = diff.first_id;
        if got > expected {
            self.buffered = VecDeque::from([diff]);
            return Err(Fault::Gap { expected, got });
        }
        if self.buffered.back().is_some_and(|event| diff.last_id <= event.last_id) {
            // A duplicate: any snapshot that joins the others contains it.
            return Ok(Outcome::Buffered);
        }
        if self.buffered.len() == MAX_BUFFERED {
            self.buffered.clear();
            return Err(Fault::NoSnapshot);
        }
        self.buffered.push_back(diff);
        Ok(Outcome::Buffered)
    }

    /// Takes the snapshot that was fetched after the stream was opened.
    pub fn snapshot(&mut self, snapshot: Snapshot) -> Result<Installed, Fault> {
        // Step 2. `U = lastUpdateId + 1` is a legal first event.
        let last = snapshot.last_update_id;
        let is_too_old = match self.buffered.front() {
            Some(first) => last.saturating_add(1) < first.first_id,
            None => last < self.newest,
        };
        if is_too_old {
            return Ok(Installed::TooOld);
        }
        let events = std::mem::take(&mut self.buffered);
        self.depth = Depth::from(snapshot);
        self.last_update_id = last;
        self.is_synced = true;
        self.check()?;
        for event in events {
            self.apply(event)?;
        }
        self.compare()?;
        Ok(Installed::Synced)
    }

    /// Takes announced best prices. When the book is at their update id, they must be the book's.
    pub fn announce(&mut self, quote: BestQuote) -> Result<(), Fault> {
        if quote.update_id < self.last_update_id {
            return Ok(());
        }
        if self.announced.len() == MAX_ANNOUNCED {
            self.announced.pop_front();
        }
        self.announced.push_back(quote);
        self.compare()
    }

    fn compare(&mut self) -> Result<(), Fault> {
        if !self.is_synced {
            return Ok(());
        }
        while let Some(quote) = self.announced.front().filter(|quote| quote.update_id <= self.last_update_id) {
            let best = (self.depth.bids.best(), self.depth.asks.best());
            if quote.update_id == self.last_update_id {
                // An empty side is announced as nothing at no price.
                let announced =
                    [quote.bid, quote.ask].map(|level| Some(level).filter(|level| !level.quantity.is_zero()));
                if [best.0, best.1] != announced {
                    self.discard();
                    return Err(Fault::Contradicted);
                }
            }
            self.announced.pop_front();
        }
        Ok(())
    }

    fn apply(&mut self, diff: Diff) -> Result<Outcome, Fault> {
        // Step 3.
        if diff.last_id <= self.last_update_id {
            return Ok(Outcome::Old);
        }
        // Step 4.
        let expected = self.last_update_id.saturating_add(1);
        if diff.first_id > expected {
            let got = diff.first_id;
            self.discard();
            self.buffered.push_back(diff);
            return Err(Fault::Gap { expected, got });
        }
        for level in diff.bids {
            self.depth.bids.set(level);
        }
        for level in diff.asks {
            self.depth.asks.set(level);
        }
        self.last_update_id = diff.last_id;
        self.time = diff.time.or(self.time);
        self.depth.bids.prune(self.max_levels);
        self.depth.asks.prune(self.max_levels);
        self.check()?;
        self.compare()?;
        Ok(Outcome::Applied)
    }

    fn check(&mut self) -> Result<(), Fault> {
        let fault = if self.depth.is_crossed() {
            Fault::Crossed
        } else if self.depth.bids.is_exhausted() || self.depth.asks.is_exhausted() {
            Fault::Exhausted
        } else {
            return Ok(());
        };
        self.discard();
        Err(fault)
    }
}

#[cfg(test)]
mod tests;
