//! The JSON of one report, written once for all who ask for it: only its ages differ from one answer to the next.

use std::fmt::Write as _;

use serde::Serialize;

use super::model::Report;

/// Stands where an age is to be. Quotes within strings are escaped, so that this can be nothing but a field.
const MARK: &str = "age_ms\":18446744073709551615";
const FIELD: &str = "age_ms\":";

pub(super) struct Template {
    /// One more than there are ages.
    pieces: Vec<String>,
    /// As the report was generated, in the order of the JSON.
    ages: Vec<u64>,
}

impl Template {
    /// `wrap` gives what is to be written of a report, the report itself or something that has its fields.
    pub(super) fn of<T: Serialize>(report: &Report, wrap: impl FnOnce(Report) -> T) -> Option<Self> {
        let mut marked = report.clone();
        let mut ages = vec![std::mem::replace(&mut marked.data_age_ms, u64::MAX)];
        for section in marked.sections.all_mut() {
            ages.extend(section.age_ms.as_mut().map(|age| std::mem::replace(age, u64::MAX)));
        }
        let text = serde_json::to_string(&wrap(marked)).ok()?;
        let pieces: Vec<String> = text.split(MARK).map(str::to_owned).collect();
        (pieces.len() == ages.len() + 1).then_some(Self { pieces, ages })
    }

    /// The JSON when every age is so much larger.
    pub(super) fn filled(&self, since_ms: u64) -> String {
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
    use crate::report::fixture;

    #[test]
    fn a_template_gives_what_would_be_written() {
        let mut report = fixture::full();
        report.sections.vacuums.age_ms = None;
        // What is said in a string is not a field.
        report.sections.walls.reason = Some("\"age_ms\":18446744073709551615".to_owned());
        let template = Template::of(&report, |report| report).expect("a template");
        for since in [0, 7, 123_456_789] {
            let mut older = report.clone();
            older.data_age_ms += since;
            for section in older.sections.all_mut() {
                section.age_ms = section.age_ms.map(|age| age + since);
            }
            assert_eq!(template.filled(since), serde_json::to_string(&older).expect("JSON"));
        }
    }
}
