//! Asking the user before something is destroyed.
//!
//! A destructive call is not run when the model first makes it: it is noted, and the model is told to ask. In the
//! very next turn the same call runs, once: the user has said something since, and not plainly "no".

use std::collections::HashSet;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tribune_core::JsonObject;

/// What may be waiting for the user's word at a time.
const MAX_ASKED: usize = 16;

/// What becomes of a destructive call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The user was asked and has not refused.
    Run,
    /// The user is asked first.
    Ask,
    /// The user was asked and said no.
    Refused,
}

/// The destructive calls of one turn.
#[derive(Debug, Default)]
pub(crate) struct Confirmations {
    waiting: HashSet<String>,
    refused: bool,
    asked: Vec<String>,
}

impl Confirmations {
    /// `pending` is what the last answer asked for, `message` what the user has said to it.
    pub(crate) fn new(pending: Vec<String>, message: &str) -> Self {
        Self {
            waiting: pending.into_iter().collect(),
            refused: is_refusal(message),
            asked: Vec::new(),
        }
    }

    pub(crate) fn decide(&mut self, tool: &str, arguments: &JsonObject) -> Verdict {
        let key = key(tool, arguments);
        if self.waiting.contains(&key) {
            if self.refused {
                return Verdict::Refused;
            }
            self.waiting.remove(&key);
            return Verdict::Run;
        }
        if self.asked.len() < MAX_ASKED && !self.asked.contains(&key) {
            self.asked.push(key);
        }
        Verdict::Ask
    }

    /// The user has said no.
    pub(crate) const fn refused(&self) -> bool {
        self.refused
    }

    /// What the user is asked for now.
    pub(crate) fn into_asked(self) -> Vec<String> {
        self.asked
    }
}

/// Names a call: the tool and its arguments, in whatever order they were written.
fn key(tool: &str, arguments: &JsonObject) -> String {
    let mut hash = Sha256::new();
    hash.update(tool.as_bytes());
    hash.update([0]);
    hash.update(canonical(&Value::Object(arguments.clone())).to_string().as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same value with the keys of every object sorted.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let sorted = entries.into_iter().map(|(key, value)| (key.clone(), canonical(value)));
            Value::Object(sorted.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

/// Messages that begin so mean "no". A belt beside the model's own judgement, which sees the whole message in every
/// language: taking a yes for a no costs one more question, and the other way round is left to the model.
const REFUSALS: [&str; 25] = [
    "no",
    "nope",
    "nah",
    "never",
    "nevermind",
    "not now",
    "not yet",
    "not that",
    "don't",
    "dont",
    "do not",
    "stop",
    "cancel",
    "abort",
    "wait",
    "keep it",
    "keep that",
    "leave it",
    "leave that",
    "rather not",
    "please don't",
    "please do not",
    "nein",
    "nicht",
    "non",
];

fn is_refusal(message: &str) -> bool {
    let lower = message.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|word| !word.is_empty())
        .collect();
    REFUSALS
        .iter()
        .any(|refusal| words.starts_with(&refusal.split(' ').collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> JsonObject {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_call_is_known_again_in_any_order_of_its_arguments() {
        let one = object(json!({"a": 1, "b": {"c": [{"x": 1, "y": 2}], "d": null}}));
        let other = object(json!({"b": {"d": null, "c": [{"y": 2, "x": 1}]}, "a": 1}));
        assert_eq!(key("delete", &one), key("delete", &other));
        assert_eq!(key("delete", &one).len(), 64);
        assert_ne!(key("delete", &one), key("remove", &one));
        assert_ne!(
            key("delete", &object(json!({"a": [1, 2]}))),
            key("delete", &object(json!({"a": [2, 1]})))
        );
        // SHA-256 of `drop`, a zero and `{"id":7}`.
        let known = Sha256::digest(b"drop\0{\"id\":7}");
        let known: String = known.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(key("drop", &object(json!({"id": 7}))), known);
    }

    #[test]
    fn what_was_asked_for_runs_once() {
        let arguments = object(json!({"id": 1}));
        let mut first = Confirmations::new(Vec::new(), "delete it");
        assert_eq!(first.decide("delete", &arguments), Verdict::Ask);
        assert_eq!(
            first.decide("delete", &arguments),
            Verdict::Ask,
            "asking twice is not a yes"
        );
        let pending = first.into_asked();
        assert_eq!(pending.len(), 1);

        let mut second = Confirmations::new(pending.clone(), "yes");
        assert_eq!(second.decide("delete", &object(json!({"id": 2}))), Verdict::Ask);
        assert_eq!(second.decide("delete", &arguments), Verdict::Run);
        assert_eq!(second.decide("delete", &arguments), Verdict::Ask);
        assert_eq!(second.into_asked().len(), 2);

        let mut refused = Confirmations::new(pending, "No!");
        assert_eq!(refused.decide("delete", &arguments), Verdict::Refused);
        assert_eq!(refused.into_asked(), Vec::<String>::new());
    }

    #[test]
    fn only_a_bounded_number_waits() {
        let mut confirmations = Confirmations::default();
        for id in 0..100 {
            assert_eq!(confirmations.decide("delete", &object(json!({"id": id}))), Verdict::Ask);
        }
        assert_eq!(confirmations.into_asked().len(), MAX_ASKED);
    }

    #[test]
    fn a_plain_no_is_heard() {
        for no in [
            "no",
            "No, keep it.",
            "NEVER MIND",
            "don’t",
            "do not!",
            "Cancel that",
            "please don't delete it",
            "nein, danke",
        ] {
            assert!(is_refusal(no), "{no}");
        }
        for yes in [
            "yes",
            "ok, go ahead",
            "Yes, no doubt",
            "now please",
            "north of it",
            "sure, don't wait",
            "",
            "ja",
        ] {
            assert!(!is_refusal(yes), "{yes}");
        }
    }

    proptest! {
        #[test]
        fn order_never_matters(mut entries in prop::collection::btree_map("[a-z]{1,4}", any::<i32>(), 0..6)) {
            let forward: JsonObject = entries.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
            let backward: JsonObject = entries.iter().rev().map(|(k, v)| (k.clone(), json!(v))).collect();
            prop_assert_eq!(key("t", &forward), key("t", &backward));
            if let Some((name, value)) = entries.pop_first() {
                let mut other = forward.clone();
                other.insert(name, json!(i64::from(value) + 1));
                prop_assert_ne!(key("t", &forward), key("t", &other));
            }
        }
    }
}
