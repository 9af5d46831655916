//! Hansard transcripts in the XML of the Australian parliament.
//!
//! Each speech, question and answer becomes a document. Both forms are read: paragraphs in the turn itself (until
//! 2011), and one body with marked names (since then). Nothing is fetched, entities declared by a file are not
//! expanded, and depth and size are limited.

mod names;
mod sitting;
mod talk;
mod transcript;

use tribune_corpus::format::{Format, Input, Sink, Stop};

use self::transcript::Transcript;
use super::parliament::Aliases;

/// A sitting day has a few MB.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

pub(super) struct HansardXml {
    pub(super) chambers: Aliases,
}

impl Format for HansardXml {
    fn extensions(&self) -> &'static [&'static str] {
        &["xml"]
    }

    fn holds_many(&self) -> bool {
        true
    }

    /// 2: every HTML entity is resolved.
    fn version(&self) -> u32 {
        2
    }

    fn read(&self, input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
        match input.text_within(MAX_FILE_BYTES, sink) {
            Some(text) => Transcript::new(input, &self.chambers, sink).read(&text),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
