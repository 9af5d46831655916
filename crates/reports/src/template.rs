//! The JSON of a report, written once for all callers: only its ages differ between answers.

use std::fmt::Write as _;

use serde::Serialize;

use super::model::Report;

/// Marks the place of an age. Quotes within strings are escaped, so it cannot be part of a string.
const MARK: &str = "age_ms\":18446744073709551615";
const FIELD: &str = "age_ms\":";

pub(super) struct Template {
    /// One more than the ages.
    pieces: Vec<String>,
    /// When the report was generated, in the order of the JSON.
    ages: Vec<u64>,
}

impl Template {
    /// `wrap` turns the report into what is written: the report itself, or a type with its fields.
    pub(super) fn new<T: Serialize>(report: &Report, wrap: impl FnOnce(Report) -> T) -> Option<Self> {
        let mut marked = report.clone();
        let ages: Vec<u64> = marked.ages_mut().map(|age| std::mem::replace(age, u64::MAX)).collect();
        let text = serde_json::to_string(&wrap(marked)).ok()?;
        let pieces: Vec<String> = text.split(MARK).map(str::to_owned).collect();
        (pieces.len() == ages.len() + 1).then_some(Self { pieces, ages })
    }

    /// The JSON with every age larger by `since_ms`.
    pub(super) fn fill(&self, since_ms: u64) -> String {
        let length: usize = self.pieces.iter().map(|piece| piece.len() + MARK.len()).sum();
        let mut text = String::with_capacity(length);
        for (at, piece) in self.pieces.iter().enumerate() {
            text.push_str(piece);
            if let Some(age) = self.ages.get(at) {
                text.push_str(FIELD);
                // Writing into a string cannot fail.
                let _ = write!(text, "{}", age.saturating_add(since_ms));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture;

    #[test]
    fn template_equals_serialisation() {
        let mut report = fixture::full();
        report.sections.vacuums.age_ms = None;
        // Text in a string is not a field.
        report.sections.walls.reason = Some("\"age_ms\":18446744073709551615".to_owned());
        let template = Template::new(&report, |report| report).expect("a template");
        for since in [0, 7, 123_456_789] {
            let mut older = report.clone();
            older.ages_mut().for_each(|age| *age += since);
            assert_eq!(template.fill(since), serde_json::to_string(&older).expect("JSON"));
        }
    }
}
