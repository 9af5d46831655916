//! Reads files into speeches.
//!
//! - `dates`: parses dates as people write them;
//! - [`parliament`]: the names of parties, chambers and states, with their variants;
//! - `rules`: makes a speech of a draft, or refuses it with a reason;
//! - `xml`: Hansard transcripts in the XML of the Australian parliament.

mod dates;
pub mod parliament;
mod rules;
mod xml;

use std::sync::Arc;

use tribune_corpus::format::{FieldMap, Formats};
use tribune_corpus::{Collection, Duplicates, Reading, Timeline, Transcripts};

pub use parliament::{Aliases, SpeechRules};

/// Fields whose values are listed in tool descriptions.
const COUNTED_FIELDS: &[&str] = &["speaker", "party", "chamber", "state"];

/// How files of speeches are read: with the rules, and Hansard XML as a further format.
pub fn reading(rules: SpeechRules) -> Reading {
    let transcripts = xml::HansardXml { chambers: rules.chambers.clone() };
    Reading {
        rules: Arc::new(rules),
        formats: Formats::default().with(Arc::new(transcripts)),
        fields: FieldMap::default(),
    }
}

/// Without duplicates. Short texts recur in a chamber, so in a transcript the same text is a duplicate only on the
/// same occasion.
pub fn collection() -> Collection {
    Collection {
        noun: "speeches".to_owned(),
        duplicates: Duplicates::Skip,
        counted_fields: COUNTED_FIELDS,
        transcripts: Some(Transcripts { extension: "xml", occasion: &["speaker", "chamber", "section", "page"] }),
        timeline: Some(Timeline { series: Some("chamber"), page: Some("page") }),
    }
}
