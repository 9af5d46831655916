//! Looks at a tracked book once a second, and keeps what it needs.

use std::fmt::Debug;

use super::published::BookView;
use super::pulse::Beats;
use crate::model::Millis;
use crate::number::Notional;
use crate::tape::Tape;

/// The beats that an observer is given are of so many seconds.
pub const OBSERVED_SECS: u64 = 10;

/// One for each tracked book. Times are the exchange's.
pub trait Observer: Debug + Default + Send + Sync + 'static {
    /// What is traded in 24 hours by now, once that is known.
    fn set_turnover(&self, turnover: Notional);

    /// The book is exact; `beats` are of the last [`OBSERVED_SECS`].
    fn look(&self, view: &BookView, tape: &Tape, beats: Beats, time: Millis);

    /// The book is not exact: what is seen next does not continue what was seen before.
    fn interrupted(&self, time: Millis);
}
