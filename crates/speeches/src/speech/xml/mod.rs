//! Hansard transcripts in the XML of the Australian parliament.
//!
//! Each speech, question and answer becomes a document. Both forms are read: paragraphs in the turn itself (until
//! 2011), and one body with marked names (since then). Nothing is fetched, entities declared by a file are not
//! expanded, and depth and size are limited.

mod bytes;
mod elements;
mod names;
mod sitting;
mod talk;
mod transcript;

use quick_xml::Reader;
use tribune_corpus::format::{Contents, Format, Input, Markup, Sink, Stop, WAS_WINDOWS_1252};

use self::bytes::{Counted, Encoding};
use self::transcript::Transcript;
use super::aliases::Aliases;

pub(super) struct HansardXml {
    chambers: Aliases,
}

impl HansardXml {
    pub(super) fn new(chambers: Aliases) -> Self {
        Self { chambers }
    }
}

impl Format for HansardXml {
    fn extensions(&self) -> &'static [&'static str] {
        &["xml"]
    }

    fn contents(&self) -> Contents {
        Contents { markup: Markup::Plain, many: true }
    }

    /// 2: every HTML entity is resolved.
    fn version(&self) -> u32 {
        2
    }

    fn read(&self, input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
        read(input, &self.chambers, sink)
    }
}

fn read(input: &Input<'_>, chambers: &Aliases, sink: &mut dyn Sink) -> Result<(), Stop> {
    let opened = bytes::encoding(input.path).and_then(|encoding| Ok((encoding, Counted::open(input.path, encoding)?)));
    let (encoding, counted) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            sink.fault(None, true, format!("cannot be opened: {error}"));
            return Ok(());
        }
    };
    match encoding {
        Encoding::Utf8 => {}
        Encoding::Utf16 => {
            let problem = "is UTF-16: convert it, for example with `iconv -f UTF-16 -t UTF-8`";
            sink.fault(None, true, problem.to_owned());
            return Ok(());
        }
        Encoding::Windows1252 => sink.fault(None, false, WAS_WINDOWS_1252.to_owned()),
    }
    let mut transcript = Transcript::new(input, chambers, sink);
    let mut reader = Reader::from_reader(counted);
    reader.config_mut().expand_empty_elements = true;
    let end = transcript.read(&mut reader)?;
    transcript.finish(end);
    Ok(())
}

#[cfg(test)]
mod tests;
