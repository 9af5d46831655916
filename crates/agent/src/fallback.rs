//! Answers that the agent writes itself when the model cannot: they say what was done.

use crate::calls::Outcome;
use crate::model::failure::Failure;

/// Items named in each part.
const MAX_NAMED: usize = 10;

/// Ends an answer that reached the limit of the model.
pub(crate) const CUT_SHORT: &str = "\n\n(The answer was cut: it reached the maximum length.)";

/// The user cannot confirm a call that no answer named.
const UNCONFIRMED: &str = "\n- Not done: a change that needs your confirmation; ask for it again";

/// The questions that an answer should have asked and did not: some calls wait for a confirmation.
pub(crate) fn missing_question(answer: &str, questions: &[String]) -> Option<String> {
    let missing = questions.iter().filter(|question| !answer.contains(*question));
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    (!missing.is_empty()).then(|| format!("\n\n{} Reply yes or no.", missing.join(" ")))
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
    if outcomes.iter().any(|outcome| outcome.summary.needs_confirmation) {
        answer.push_str(UNCONFIRMED);
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
        let mut waiting = outcome("needs your confirmation", false, false);
        waiting.ran = false;
        waiting.summary.needs_confirmation = true;
        let outcomes = [
            outcome("3 tasks", true, true),
            outcome("3 tasks", true, true),
            outcome("Buy milk", true, false),
            outcome("no such task", false, false),
            waiting,
        ];
        assert_eq!(
            failed(&Cause::Silence.into(), outcomes.iter()),
            "I could not finish this answer. The model sent nothing for too long.\n\
             - Done: Buy milk\n\
             - Looked up: 3 tasks\n\
             - Failed: no such task\n\
             - Not done: a change that needs your confirmation; ask for it again"
        );
    }

    #[test]
    fn forgotten_question_is_asked() {
        let questions = ["Delete the note \"Milk\"?".to_owned(), "Send?".to_owned()];
        assert_eq!(
            missing_question("I will.", &questions).as_deref(),
            Some("\n\nDelete the note \"Milk\"? Send? Reply yes or no.")
        );
        assert_eq!(
            missing_question("Delete the note \"Milk\"?", &questions).as_deref(),
            Some("\n\nSend? Reply yes or no.")
        );
        assert_eq!(missing_question("Hello.", &[]), None);
    }

    #[test]
    fn long_list_is_cut() {
        let outcomes: Vec<Outcome> = (0..12).map(|n| outcome(&format!("t{n}"), true, false)).collect();
        assert!(stopped(outcomes.iter()).ends_with("t8; t9; and 2 more"));
    }
}
