//! Answers of our own, for when the model cannot give one: what was done is told all the same.

use crate::calls::Outcome;
use crate::consent::is_question;
use crate::model::failure::Failure;

/// How many things are named of each kind.
const MAX_NAMED: usize = 10;

/// Said at the end of an answer that was longer than is taken.
pub(crate) const CUT_SHORT: &str = "\n\n(The answer ends here because it has reached the longest that is allowed.)";

/// The user cannot confirm what nobody has named to them.
const UNCONFIRMED: &str = "\n- Not done: something that you would have to confirm first; ask for it again";

/// What is missing of an answer that asks nothing, or something else, though tools of these titles wait for the
/// user's yes.
pub(crate) fn missing_question(answer: &str, titles: &[String]) -> Option<String> {
    let said = answer.to_lowercase();
    // `Delete a task` is asked about by whoever says "delete".
    let verb = |title: &String| title.split(' ').next().unwrap_or_default().to_lowercase();
    let is_about = |title: &String| said.contains(&verb(title));
    let is_asked = is_question(answer) && (!answer.is_ascii() || titles.iter().all(is_about));
    (!titles.is_empty() && !is_asked).then(|| format!("\n\nThis needs your yes first: {}.", titles.join("; ")))
}

/// The model failed after tools had run.
pub(crate) fn failed<'a>(failure: &Failure, outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let why = format!("I cannot finish my answer: {}.", failure.happened());
    with_account(why, outcomes)
}

/// The model went on calling tools.
pub(crate) fn stopped<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let why = "I have stopped here: this took more steps than one answer may take.".to_owned();
    with_account(why, outcomes)
}

/// A heading, and what belongs under it.
type Part = (&'static str, fn(&Outcome) -> bool);

fn with_account<'a>(mut answer: String, outcomes: impl Iterator<Item = &'a Outcome>) -> String {
    let outcomes: Vec<&Outcome> = outcomes.collect();
    let parts: [Part; 3] = [
        ("Done:", |o| o.success && !o.read_only),
        ("Looked up:", |o| o.success && o.read_only),
        ("Did not work:", |o| o.ran && !o.success),
    ];
    for (heading, belongs) in parts {
        let mut named: Vec<&str> = Vec::new();
        for outcome in outcomes.iter().filter(|outcome| belongs(outcome)) {
            if !named.contains(&outcome.preview.as_str()) {
                named.push(&outcome.preview);
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
    if outcomes.iter().any(|outcome| outcome.needs_confirmation) {
        answer.push_str(UNCONFIRMED);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::failure::Cause;

    fn outcome(preview: &str, success: bool, read_only: bool) -> Outcome {
        Outcome {
            preview: preview.into(),
            ran: true,
            success,
            read_only,
            ..Outcome::default()
        }
    }

    #[test]
    fn what_was_done_is_told_and_what_was_not() {
        let waiting = Outcome {
            preview: "waits for your confirmation".into(),
            needs_confirmation: true,
            ..Outcome::default()
        };
        let outcomes = [
            outcome("3 tasks", true, true),
            outcome("3 tasks", true, true),
            outcome("Buy milk", true, false),
            outcome("no such task", false, false),
            waiting,
        ];
        assert_eq!(
            failed(&Cause::Silence.into(), outcomes.iter()),
            "I cannot finish my answer: the language model has been silent for too long.\n\
             - Done: Buy milk\n\
             - Looked up: 3 tasks\n\
             - Did not work: no such task\n\
             - Not done: something that you would have to confirm first; ask for it again"
        );
    }

    #[test]
    fn a_question_that_the_model_forgot_is_asked() {
        let titles = ["Delete a task".to_owned(), "Send".to_owned()];
        assert_eq!(
            missing_question("I will.", &titles).as_deref(),
            Some("\n\nThis needs your yes first: Delete a task; Send.")
        );
        assert_eq!(missing_question("Shall I delete it and send it?", &titles), None);
        assert!(missing_question("Would you like to hear a joke?", &titles).is_some());
        assert_eq!(missing_question("消しますか？", &titles), None);
        assert_eq!(missing_question("Hello.", &[]), None);
    }

    #[test]
    fn a_long_list_is_cut() {
        let outcomes: Vec<Outcome> = (0..12).map(|n| outcome(&format!("t{n}"), true, false)).collect();
        assert!(stopped(outcomes.iter()).ends_with("t8; t9; and 2 more"));
    }
}
