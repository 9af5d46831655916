//! Whether a message is a yes, a no, or neither.
//!
//! A second check beside the model's own judgement: a destructive call runs only if both hear a yes. A missed yes costs
//! another question; a wrong yes would cost more.

/// What the user has said to a question of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Word {
    Yes,
    No,
    /// Something else, in which case they are asked again.
    #[default]
    Neither,
}

/// Messages that begin so mean "yes".
const AFFIRMATIONS: &str = "yes, yeah, yep, yup, ok, okay, sure, confirm, confirmed, i confirm, go ahead, do it, please do, \
    of course, absolutely, definitely, proceed, delete it, delete them, remove it, remove them, \
    i am sure, i'm sure, ja, oui, sí, sim, да, はい, 是, 是的, hai";

/// These begin other sentences too ("right now", "correct the title", "si tu veux"): they mean "yes" alone, or before
/// another one.
const AFFIRMATIONS_ALONE: [&str; 5] = ["y", "right", "correct", "si", "da"];

/// May stand before or after a word that means "yes" alone.
const POLITE: [&str; 2] = ["please", "thanks"];

/// What else a yes may hold. Any other word might take it back, in any language: then they are asked again.
const HARMLESS: &str = "a, all, am, and, bitte, both, danke, delete, do, favor, gracias, i, i'm, it, just, merci, my, now, \
    plait, por, remove, run, s'il, send, so, thank, that, the, them, then, these, this, those, vous, \
    you, お願いします";

/// Takes a yes back, or makes it depend on something.
const RESERVATIONS: [&str; 9] = [
    "not", "cannot", "but", "if", "unless", "except", "instead", "later", "before",
];

/// Messages that begin so mean "no"; one that holds them elsewhere is at least no "yes".
const REFUSALS: &str = "no, nope, nah, never, nevermind, not now, not yet, not that, don't, dont, do not, stop, cancel, \
    abort, wait, keep it, keep that, leave it, leave that, rather not, please don't, please do not, \
    nein, nicht, non";

const QUESTION_MARKS: [char; 3] = ['?', '？', '؟'];

/// What the user's message says to `asked`, a question that can be answered with yes or no.
pub(crate) fn word(message: &str, asked: &str) -> Word {
    let (message_lower, asked_lower) = (lower(message), lower(asked));
    let words = words_of(&message_lower);
    if begins_with_one_of(REFUSALS, &words) {
        return Word::No;
    }
    let of_question = words_of(&asked_lower);
    let is_plain = words.iter().all(|word| is_harmless(word) || of_question.contains(word));
    if is_affirmation(&words) && is_plain && !is_question(message) && !has_reservation(&words) {
        return Word::Yes;
    }
    Word::Neither
}

pub(crate) fn is_question(text: &str) -> bool {
    text.contains(QUESTION_MARKS)
}

fn lower(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}

fn words_of(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|word| !word.is_empty())
        .collect()
}

/// The words and phrases of a list.
fn phrases(list: &str) -> impl Iterator<Item = &str> {
    list.split(", ")
}

fn is_harmless(word: &str) -> bool {
    phrases(HARMLESS).any(|harmless| harmless == word)
        || POLITE.contains(&word)
        || AFFIRMATIONS_ALONE.contains(&word)
        || phrases(AFFIRMATIONS).any(|phrase| phrase.split(' ').any(|part| part == word))
}

fn begins_with_one_of(list: &str, words: &[&str]) -> bool {
    let begins = |phrase: &str| {
        let mut rest = words.iter();
        phrase.split(' ').all(|word| rest.next() == Some(&word))
    };
    phrases(list).any(begins)
}

fn is_affirmation(words: &[&str]) -> bool {
    let is_alone = |word: &&str| AFFIRMATIONS_ALONE.contains(word);
    let is_small = |word: &&str| is_alone(word) || POLITE.contains(word);
    let small = words.iter().take_while(|word| is_small(word)).count();
    let only_small = small == words.len() && words.iter().any(is_alone);
    // "please do" begins with a polite word of its own.
    only_small || begins_with_one_of(AFFIRMATIONS, words) || begins_with_one_of(AFFIRMATIONS, &words[small..])
}

fn has_reservation(words: &[&str]) -> bool {
    (0..words.len()).any(|from| {
        let rest = &words[from..];
        begins_with_one_of(REFUSALS, rest) || RESERVATIONS.contains(&rest[0]) || rest[0].ends_with("n't")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_no_is_heard() {
        for no in [
            "no",
            "No, keep it.",
            "No, leave it",
            "NEVER MIND",
            "don’t",
            "do not!",
            "Cancel that",
            "please don't delete it",
            "nein, danke",
        ] {
            assert_eq!(word(no, ""), Word::No, "{no}");
        }
    }

    #[test]
    fn a_plain_yes_is_heard() {
        for yes in [
            "yes",
            "Yes, go ahead",
            "YES!!",
            "y",
            "ok, go ahead",
            "Okay then",
            "Right.",
            "correct, please",
            "Right, do it",
            "please do",
            "Please, yes",
            "please delete it",
            "I confirm",
            "I’m sure",
            "i am sure, thanks",
            "Of course, delete the tomatoes",
            "remove them",
            "ja, bitte",
            "Oui.",
            "Si",
            "sí, por favor",
            "Да",
            "はい、お願いします",
            "是",
        ] {
            assert_eq!(word(yes, "Shall I delete **the tomatoes**?"), Word::Yes, "{yes}");
        }
    }

    #[test]
    fn anything_else_is_neither() {
        for neither in [
            "",
            "?!",
            "please",
            "what is the weather?",
            "now please",
            "north of it",
            "yesterday",
            "Delete the tomatoes",
            "I think yes",
            "right now I am in the garden",
            "Correct the title first",
            "Da ist noch eine Aufgabe",
            "si tu veux",
            "Yes, no doubt",
            "sure, don't wait",
            "absolutely not",
            "Of course not!",
            "definitely shouldn't",
            "yes, but only the first one",
            "ok, if it is completed",
            "ok, what would that do?",
            "はい？",
            "why not",
            "ok forget it",
            "ok hold on",
            "yes i changed my mind",
            "yes tomorrow",
            "yes the other one",
            "ok, which task is that",
            "sure, show me the list",
            "ok I'll think about it",
            "ja, aber später",
            "ja, warte",
            "oui, attends",
            "sí, espera",
            "да нет",
            "да, подожди",
            "はい、でもやめて",
            "是的，不要",
        ] {
            assert_eq!(
                word(neither, "Shall I delete **the tomatoes**?"),
                Word::Neither,
                "{neither}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_yes_with_a_no_in_it_is_none(
            yes in prop::sample::select(phrases(AFFIRMATIONS).collect::<Vec<_>>()),
            no in prop::sample::select(phrases(REFUSALS).collect::<Vec<_>>()),
            between in "[ ,.!]{1,3}(the )?",
        ) {
            prop_assert_eq!(word(yes, ""), Word::Yes);
            prop_assert_ne!(word(&format!("{yes}{between}{no}"), ""), Word::Yes);
            prop_assert_eq!(word(&format!("{no}{between}{yes}"), ""), Word::No);
        }

        #[test]
        fn any_text_is_read(message in "\\PC{0,60}") {
            let _ = word(&message, &message);
        }
    }
}
