//! Decisions of the user about destructive calls.
//!
//! A destructive call does not run when the model makes it: it is held, the server asks the user, and the turn ends. It
//! runs only if the user decides so, by its id or with a message that is one of a few words. Nothing else is interpreted.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use tribune_core::{JsonObject, ToolSpec, legible};
use tribune_storage::PendingCall;

use crate::chat::Confirmation;
use crate::text::clip;

/// Longest arguments of a held call.
pub(crate) const MAX_CALL_BYTES: usize = 4 * 1024;
pub(crate) const DECIDE_WITHIN: SignedDuration = SignedDuration::from_mins(30);

const YES: [&str; 4] = ["yes", "y", "ok", "confirm"];
const NO: [&str; 3] = ["no", "n", "cancel"];

/// Limits of a question.
const MAX_QUESTION_CHARS: usize = 600;
const MAX_SHOWN_ARGUMENTS: usize = 8;
const MAX_VALUE_CHARS: usize = 80;

/// Whether a whole message is a yes or a no; `None` for every other message.
pub(crate) fn decision(message: &str) -> Option<bool> {
    let word = message.trim();
    let is_one_of = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    if is_one_of(&YES) { Some(true) } else { is_one_of(&NO).then_some(false) }
}

/// A call that waits for the user's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeldCall {
    pub(crate) tool: String,
    /// As the model wrote them: parsing and writing a number may change it.
    pub(crate) arguments: String,
    /// What the user was asked.
    pub(crate) question: String,
}

/// A held call that the user has decided about.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) call: HeldCall,
    pub(crate) confirmed: bool,
}

impl HeldCall {
    /// `None` if something else than the agent wrote it.
    pub(crate) fn read(pending: &PendingCall) -> Option<Self> {
        serde_json::from_str(&pending.call).ok()
    }
}

impl Confirmation {
    pub(crate) fn read(pending: &PendingCall) -> Option<Self> {
        let HeldCall { tool, question, .. } = HeldCall::read(pending)?;
        Some(Self { id: pending.id, tool, question })
    }
}

/// The question about a call: the tool's own, or its title with the arguments.
pub(crate) fn question(own: Option<String>, spec: &ToolSpec, arguments: &JsonObject) -> String {
    let question = own.unwrap_or_else(|| {
        let shown = arguments.iter().take(MAX_SHOWN_ARGUMENTS).map(|(name, value)| {
            let value =
                value.as_str().map_or_else(|| value.to_string(), |text| format!("\"{}\"", text.replace('"', "'")));
            format!("{name}: {}", clip(&legible(&value), MAX_VALUE_CHARS))
        });
        let mut shown: Vec<String> = shown.collect();
        let more = arguments.len() - shown.len();
        if more > 0 {
            shown.push(format!("and {more} more"));
        }
        if shown.is_empty() { format!("{}?", spec.title) } else { format!("{} ({})?", spec.title, shown.join(", ")) }
    });
    clip(&legible(&question), MAX_QUESTION_CHARS)
}

/// Asks the user about held calls.
pub(crate) fn ask(held: &[HeldCall]) -> String {
    match held {
        [one] => format!("{} Reply yes or no.", one.question),
        several => {
            let list: String = several.iter().map(|held| format!("- {}\n", held.question)).collect();
            format!("{list}\nReply yes to all of this, or no.")
        }
    }
}

/// The message of a user who decided with buttons.
pub(crate) fn said(decided: &[Decided]) -> String {
    let line = |decided: &Decided| {
        let word = if decided.confirmed { "Yes" } else { "No" };
        format!("{word}: {}", decided.call.question)
    };
    decided.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tribune_core::{CallDisplay, Hints};

    use super::*;

    #[test]
    fn only_listed_words_decide() {
        for yes in ["yes", " Yes", "YES", "y", "ok", "Confirm\n", "\u{a0}oK"] {
            assert_eq!(decision(yes), Some(true), "{yes:?}");
        }
        for no in ["no", "No ", "N", "cancel"] {
            assert_eq!(decision(no), Some(false), "{no:?}");
        }
        // The Kelvin sign and the long s are letters of these words in lower case.
        for neither in [
            "",
            ".",
            "yes.",
            "yes!",
            "ok!",
            "no.",
            "yes?",
            "yes .",
            "o\u{212a}",
            "ye\u{17f}",
            "ｙｅｓ",
            "yes\0",
            "yes yes",
            "no, yes",
        ] {
            assert_eq!(decision(neither), None, "{neither:?}");
        }
    }

    fn spec() -> ToolSpec {
        ToolSpec {
            name: "send_letter".into(),
            title: "Send a letter".into(),
            description: String::new(),
            input_schema: JsonObject::new(),
            output_schema: JsonObject::new(),
            hints: Hints { destructive: true, ..Hints::READ },
            icon: None,
            display: CallDisplay::default(),
            aliases: Vec::new(),
        }
    }

    #[test]
    fn question_shows_the_arguments() {
        let asked =
            |arguments: serde_json::Value| question(None, &spec(), &arguments.as_object().cloned().unwrap_or_default());
        assert_eq!(asked(json!({})), "Send a letter?");
        assert_eq!(
            asked(json!({"to": "An\u{200b}n \"?\u{202e}\nReply no", "copies": 2})),
            "Send a letter (to: \"Ann '? Reply no\", copies: 2)?"
        );
        let many: serde_json::Map<_, _> = (0..10).map(|n| (format!("a{n}"), json!("x".repeat(200)))).collect();
        let long = asked(many.into());
        assert!(long.chars().count() <= MAX_QUESTION_CHARS && long.starts_with("Send a letter (a0: \"xx"), "{long}");
        assert!(
            asked(json!({"a": [1], "b": null, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1}))
                .ends_with("h: 1, and 1 more)?")
        );
        assert_eq!(question(Some("Delete\u{202e} it?".into()), &spec(), &JsonObject::new()), "Delete it?");
    }

    #[test]
    fn several_questions_are_listed() {
        let held = |question: &str| HeldCall { tool: "t".into(), arguments: "{}".into(), question: question.into() };
        assert_eq!(ask(&[held("Send?")]), "Send? Reply yes or no.");
        assert_eq!(ask(&[held("Send?"), held("Delete?")]), "- Send?\n- Delete?\n\nReply yes to all of this, or no.");
    }
}
