//! Answers that the agent writes itself when the model cannot: they say what was done.

use crate::calls::Outcome;
use crate::model::failure::Failure;

/// Items named in each part.
const MAX_NAMED: usize = 10;

/// Ends an answer that reached the limit of the model.
pub(crate) const CUT_SHORT: &str = "\n\n(The answer was cut: it reached the maximum length.)";

/// The question about calls that wait for the user, after what the turn has done.
pub(crate) fn asking<'a>(question: &str, outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let changes = outcomes.filter(|outcome| !outcome.read_only && !outcome.summary.needs_confirmation);
    let done = with_account(String::new(), changes);
    format!("{done}\n\n{question}").trim_start().to_owned()
}

/// The model failed after tools had run.
pub(crate) fn failed<'a>(failure: &Failure, outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let why = format!("I could not finish this answer. {}", failure.happened());
    with_account(why, outcomes)
}

/// The model kept calling tools.
pub(crate) fn stopped<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let why = "I stopped: this took more steps than one answer may take.".to_owned();
    with_account(why, outcomes)
}

/// A heading, and which outcomes belong to it.
type Part = (&'static str, fn(&Outcome) -> bool);

fn with_account<'a>(mut answer: String, outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let outcomes: Vec<&Outcome> = outcomes.collect();
    let parts: [Part; 3] = [
        ("Done:", |o| o.summary.success && !o.read_only),
        ("Looked up:", |o| o.summary.success && o.read_only),
        ("Failed:", |o| o.ran && !o.summary.success),
    ];
    for (heading, belongs) in parts {
        let mut named: Vec<&str> = Vec::new();
        for outcome in outcomes.iter().filter(|outcome| belongs(outcome)) {
            let preview = outcome.summary.result_preview.as_deref().unwrap_or_default();
            if !named.contains(&preview) {
                named.push(preview);
            }
        }
        if named.is_empty() {
            continue;
        }
        let more = named.len().saturating_sub(MAX_NAMED);
        named.truncate(MAX_NAMED);
        answer.push_str(&format!("\n- {heading} {}", named.join("; ")));
        if more > 0 {
            answer.push_str(&format!("; and {more} more"));
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ToolCallSummary;
    use crate::model::failure::Cause;

    fn outcome(preview: &str, success: bool, read_only: bool) -> Outcome {
        Outcome {
            summary: ToolCallSummary { result_preview: Some(preview.into()), success, ..ToolCallSummary::default() },
            ran: true,
            read_only,
            ..Outcome::default()
        }
    }

    #[test]
    fn account_lists_done_and_failed_calls() {
        let mut refused = outcome("unknown tool", false, false);
        refused.ran = false;
        let outcomes = [
            outcome("3 tasks", true, true),
            outcome("3 tasks", true, true),
            outcome("Buy milk", true, false),
            outcome("no such task", false, false),
            refused,
        ];
        assert_eq!(
            failed(&Cause::Silence.into(), outcomes.iter()),
            "I could not finish this answer. The model sent nothing for too long.\n\
             - Done: Buy milk\n\
             - Looked up: 3 tasks\n\
             - Failed: no such task"
        );
    }

    #[test]
    fn question_follows_what_was_done() {
        let mut waiting = outcome("needs your confirmation", false, false);
        (waiting.ran, waiting.summary.needs_confirmation) = (false, true);
        assert_eq!(asking("Send it?", [waiting.clone()].iter()), "Send it?");
        let outcomes = [outcome("3 tasks", true, true), outcome("Buy milk", true, false), waiting];
        assert_eq!(asking("Send it?", outcomes.iter()), "- Done: Buy milk\n\nSend it?");
    }

    #[test]
    fn long_list_is_cut() {
        let outcomes: Vec<Outcome> = (0..12).map(|n| outcome(&format!("t{n}"), true, false)).collect();
        assert!(stopped(outcomes.iter()).ends_with("t8; t9; and 2 more"));
    }
}
