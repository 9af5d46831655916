//! Answers that the agent writes itself when the model cannot: they say what was done.

use crate::calls::Outcome;
use crate::consent::is_question;
use crate::model::failure::Failure;

/// Items named in each part.
const MAX_NAMED: usize = 10;

/// Ends an answer that reached the limit of the model.
pub(crate) const CUT_SHORT: &str = "\n\n(The answer was cut: it reached the maximum length.)";

/// The user cannot confirm a call that no answer named.
const UNCONFIRMED: &str = "\n- Not done: a change that needs your confirmation; ask for it again";

/// The questions that an answer should have asked and did not: some calls wait for a confirmation.
pub(crate) fn missing_question(answer: &str, questions: &[String]) -> Option<String> {
    let said = answer.to_lowercase();
    // An answer that asks and says "delete" is about `Delete the item "x"?`.
    let verb = |question: &String| {
        let word = question.split([' ', '?']).next();
        word.unwrap_or_default().to_lowercase()
    };
    let is_about = |question: &String| said.contains(&verb(question));
    let is_asked = is_question(answer) && (!answer.is_ascii() || questions.iter().all(is_about));
    (!questions.is_empty() && !is_asked).then(|| format!("\n\n{} Reply yes or no.", questions.join(" ")))
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
        ("Done:", |o| o.success && !o.read_only),
        ("Looked up:", |o| o.success && o.read_only),
        ("Failed:", |o| o.ran && !o.success),
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
    fn account_lists_done_and_failed_calls() {
        let waiting = Outcome {
            preview: "needs your confirmation".into(),
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
        assert_eq!(missing_question("Shall I delete it and send it?", &questions), None);
        assert!(missing_question("Would you like to hear a joke?", &questions).is_some());
        assert_eq!(missing_question("消しますか？", &questions), None);
        assert_eq!(missing_question("Hello.", &[]), None);
    }

    #[test]
    fn long_list_is_cut() {
        let outcomes: Vec<Outcome> = (0..12).map(|n| outcome(&format!("t{n}"), true, false)).collect();
        assert!(stopped(outcomes.iter()).ends_with("t8; t9; and 2 more"));
    }
}
