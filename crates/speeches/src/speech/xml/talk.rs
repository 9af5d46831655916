//! One turn of a speaker, from the paragraphs of either form of transcript.
//!
//! The speaker's own words are plain paragraphs, before and after an interruption. Interjections stay in place, as
//! paragraphs that begin with a name: `Mr Yarrowby: What about the keepers?`

use super::names::Values;

/// The kind of a turn, from an element or from a name marked in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Speech,
    Question,
    Answer,
    Interjection,
    /// The speaker continues after an interruption.
    Continuation,
    /// `Mr Dreyfus interjecting—`: recorded without words.
    Noted,
}

/// The elements of turns.
const ELEMENTS: [(&str, Kind); 5] = [
    ("speech", Kind::Speech),
    ("question", Kind::Question),
    ("answer", Kind::Answer),
    ("interjection", Kind::Interjection),
    ("continue", Kind::Continuation),
];

impl Kind {
    pub(super) fn of_element(name: &str) -> Option<Self> {
        ELEMENTS.iter().find(|(element, _)| *element == name).map(|(_, kind)| *kind)
    }

    /// The element's name, which is also the name of the kind of document.
    pub(super) fn name(self) -> &'static str {
        ELEMENTS.iter().find(|(_, kind)| *kind == self).map_or("", |(element, _)| *element)
    }

    /// The kind by the class of a name in the text, since 2011: `HPS-MemberSpeech`, `HPS-OfficeInterjecting`.
    pub(super) fn of_class(class: &str) -> Option<Self> {
        let role = class.strip_prefix("HPS-")?;
        let act = ["Member", "Office", "General"].iter().find_map(|who| role.strip_prefix(who))?;
        Some(match act {
            "Speech" => Self::Speech,
            "Question" => Self::Question,
            "Answer" => Self::Answer,
            "Interjecting" => Self::Interjection,
            "Continuation" => Self::Continuation,
            "IInterjecting" => Self::Noted,
            _ => return None,
        })
    }

    /// Whether it becomes a document.
    pub(super) const fn stands_alone(self) -> bool {
        matches!(self, Self::Speech | Self::Question | Self::Answer)
    }
}

/// A turn while it is being read.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) kind: Kind,
    pub(super) talker: Values,
    pub(super) line: u64,
    /// Its number in the file.
    pub(super) number: u64,
    pub(super) paragraphs: Vec<String>,
    pub(super) interjections: u64,
    pub(super) bytes: u64,
    /// Whether the first paragraph, which begins with the name, has been read.
    pub(super) begun: bool,
}

impl Turn {
    fn push(&mut self, text: String, interjection: bool) {
        self.bytes += text.len() as u64 + 2;
        self.interjections += u64::from(interjection);
        self.paragraphs.push(text);
    }

    /// Adds a paragraph of this turn.
    pub(super) fn add(&mut self, paragraph: &Paragraph) {
        let fresh = !std::mem::replace(&mut self.begun, true);
        let Some(mark) = &paragraph.mark else {
            let text = paragraph.words(fresh);
            if !text.is_empty() {
                self.push(text, false);
            }
            return;
        };
        let ours = match mark.kind {
            Kind::Noted | Kind::Interjection => false,
            kind if fresh && kind == self.kind => true,
            _ if mark.id.is_empty() => self.talker.answers_to(&mark.name),
            _ => mark.id.eq_ignore_ascii_case(self.talker.get("name.id")),
        };
        let words = one_line(after_preamble(&paragraph.raw[mark.end..]));
        if mark.kind == Kind::Noted {
            self.push(one_line(&paragraph.raw), true);
        } else if ours {
            if !words.is_empty() {
                self.push(words, false);
            }
        } else {
            self.push(labelled(&mark.name, &words), mark.kind == Kind::Interjection);
        }
    }

    /// Adds a paragraph of a turn nested in this one.
    pub(super) fn add_nested(&mut self, within: &mut Self, paragraph: &Paragraph) {
        if paragraph.mark.is_some() {
            self.begun = true;
            self.add(paragraph);
            return;
        }
        let fresh = !std::mem::replace(&mut within.begun, true);
        let text = paragraph.words(fresh);
        if text.is_empty() {
            return;
        }
        self.begun = true;
        if within.talker.is_same_person(&self.talker) {
            self.push(text, false);
        } else {
            let text = if fresh { labelled(&within.talker.label(), &text) } else { text };
            self.push(text, fresh);
        }
    }
}

/// A paragraph while it is being read.
#[derive(Debug, Default)]
pub(super) struct Paragraph {
    pub(super) raw: String,
    pub(super) mark: Option<Mark>,
}

impl Paragraph {
    /// The words on one line; the first paragraph of a turn begins with the name.
    fn words(&self, is_first: bool) -> String {
        one_line(if is_first { after_preamble(&self.raw) } else { &self.raw })
    }
}

/// A name in the text, after which that person speaks.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) id: String,
    /// The end of name, electorate, titles and time in the raw text.
    pub(super) end: usize,
}

/// `Mr Katter: No!`; `Honourable members interjecting—`
fn labelled(name: &str, words: &str) -> String {
    let name = one_line(name);
    let name = name.trim_end_matches([':', '—', ' ']);
    if name.is_empty() {
        words.to_owned()
    } else if words.is_empty() || words.starts_with("interjecting") {
        format!("{name} {words}").trim_end().to_owned()
    } else {
        format!("{name}: {words}")
    }
}

/// Removes what is between a name and the words: `) (10:01): `, `(Cook) (2.05 pm)—`, `. - `
fn after_preamble(text: &str) -> &str {
    const MAX_BRACKETED_BYTES: usize = 250;
    let start = text.trim_start_matches([')', ':', '.', ' ', '\n', '\t', '\r', '\u{a0}']);
    let mut rest = start;
    while let Some(inner) = rest.strip_prefix('(') {
        match inner.find(')') {
            Some(at) if at <= MAX_BRACKETED_BYTES => rest = inner[at + 1..].trim_start(),
            _ => break,
        }
    }
    let is_end = |c: char| matches!(c, '—' | '–' | '-' | ':');
    if rest.starts_with(is_end) { rest.trim_start_matches(is_end).trim_start() } else { start }
}

/// Collapses indentation and line breaks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preamble_before_the_words_is_removed() {
        for (text, words) in [
            ("): Mr President, hello.", "Mr President, hello."),
            (" (10:01): Hello.", "Hello."),
            ("—My question is", "My question is"),
            (". - The practice", "The practice"),
            ("- Can there be", "Can there be"),
            (" (Cook—Prime Minister) (2.05 pm)—I thank", "I thank"),
            ("(Quorum formed) I thank", "(Quorum formed) I thank"),
            ("asked the Prime Minister", "asked the Prime Minister"),
            ("(never closed", "(never closed"),
            ("", ""),
        ] {
            assert_eq!(after_preamble(text), words);
        }
    }

    #[test]
    fn names_precede_words_and_noises() {
        assert_eq!(labelled("Mr Katter:", "No!"), "Mr Katter: No!");
        assert_eq!(labelled("Honourable members", "interjecting—"), "Honourable members interjecting—");
        assert_eq!(labelled("", "No!"), "No!");
        assert_eq!(labelled("The CLERK", ""), "The CLERK");
    }
}
