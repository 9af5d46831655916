//! Maps the field names of an owner's files to ours.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tribune_core::JsonObject;

use super::READERS;

/// `speaker = "MP"`: the files call the speaker `MP`. A dot leads into a nested value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct FieldMap(BTreeMap<String, String>);

impl FromIterator<(String, String)> for FieldMap {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl FieldMap {
    /// The files' name for `name`; `None` if it is not mapped.
    pub fn theirs(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether a text contains the name of the field with the readers.
    pub(super) fn mention_readers(&self, text: &str) -> bool {
        let theirs = self.theirs(READERS).and_then(|name| name.rsplit('.').next());
        let text = text.to_lowercase();
        [Some(READERS), theirs].into_iter().flatten().any(|name| text.contains(&name.to_lowercase()))
    }

    /// Renames mapped fields. An existing field of that name is kept as `…_as_given`.
    pub fn apply(&self, fields: &mut JsonObject) {
        let found: Vec<(&String, Value)> = self
            .0
            .iter()
            .filter(|(ours, theirs)| ours != theirs)
            .filter_map(|(ours, theirs)| Some((ours, take(fields, theirs)?)))
            .collect();
        for (ours, value) in found {
            if let Some(other) = fields.insert(ours.clone(), value) {
                fields.insert(as_given(ours), other);
            }
        }
    }
}

/// The name under which a replaced value is kept.
pub fn as_given(name: &str) -> String {
    format!("{name}_as_given")
}

/// Takes the value of a field; a nested one is copied.
fn take(fields: &mut JsonObject, name: &str) -> Option<Value> {
    if let Some(value) = fields.shift_remove(name) {
        return Some(value);
    }
    let spelled = fields.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned();
    if let Some(key) = spelled {
        return fields.shift_remove(&key);
    }
    let (outer, inner) = name.split_once('.')?;
    inner.split('.').try_fold(fields.get(outer)?, |value, step| value.get(step)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mapped(map: &[(&str, &str)], fields: Value) -> Value {
        let map: FieldMap = map.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let Value::Object(mut fields) = fields else {
            panic!("an object");
        };
        map.apply(&mut fields);
        Value::Object(fields)
    }

    #[test]
    fn fields_are_renamed_in_any_case_and_nested() {
        assert_eq!(
            mapped(&[("speaker", "MP"), ("date", "sitting_day")], json!({"mp": "A", "sitting_day": "d", "x": 1})),
            json!({"x": 1, "date": "d", "speaker": "A"})
        );
        assert_eq!(
            mapped(&[("speaker", "member.name")], json!({"member": {"name": "A", "seat": "B"}})),
            json!({"member": {"name": "A", "seat": "B"}, "speaker": "A"})
        );
    }

    #[test]
    fn renaming_loses_nothing_and_can_swap() {
        assert_eq!(
            mapped(&[("title", "heading")], json!({"title": "old", "heading": "new"})),
            json!({"title": "new", "title_as_given": "old"})
        );
        assert_eq!(mapped(&[("a", "b"), ("b", "a")], json!({"a": 1, "b": 2})), json!({"a": 2, "b": 1}));
    }
}
