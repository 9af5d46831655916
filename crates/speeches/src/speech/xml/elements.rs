//! Classifies the elements of a transcript.

use std::collections::BTreeMap;

use super::talk::Kind;

/// Elements whose text is a value, not speech.
const VALUES: &str = "date chamber parliament.no session.no period.no title page.no name name.id electorate party role \
                      time.stamp in.gov first.speech";

/// Elements that begin and end a paragraph.
const BLOCKS: &str = "para p body talk.start talk.text motion motionnospeech quote list item table tr td th row entry \
                      li division";

pub(super) fn is_heading(name: &str) -> bool {
    name == "debate" || (name.starts_with("subdebate.") && name != "subdebate.text")
}

pub(super) fn is_value(name: &str) -> bool {
    VALUES.split(' ').any(|value| value == name)
}

pub(super) fn is_block(name: &str) -> bool {
    BLOCKS.split(' ').any(|block| block == name) || Kind::of_element(name).is_some()
}

/// Values by the names of their elements.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(pub(super) BTreeMap<String, String>);

impl Values {
    /// Empty if it is not known.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}
