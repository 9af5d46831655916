//! Cutting text to a length, estimating tokens, and removing ids.

use uuid::Uuid;

/// Length of a written UUID.
const ID_CHARS: usize = 36;

/// Tokens are estimated: English has about four bytes in a token, Chinese three, so that three overestimate.
pub(crate) const BYTES_PER_TOKEN: usize = 3;

pub(crate) const fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The first characters, with an ellipsis if there are more; never more than `max` in all.
pub(crate) fn clip(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => {
            let mut clipped: String = text.chars().take(max.saturating_sub(1)).collect();
            clipped.truncate(clipped.trim_end().len());
            clipped.push('…');
            clipped
        }
    }
}

/// The first `max` characters and a note of how much is missing.
pub(crate) fn cut(text: &str, max: usize) -> String {
    Beginning::of(text, max).cut(max)
}

/// The beginning of a text, and how much is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    text: String,
    /// Missing characters.
    missing: usize,
}

impl Beginning {
    /// The first `max` characters.
    pub(crate) fn of(text: &str, max: usize) -> Self {
        let (start, rest) = split(text, max);
        Self { text: start.to_owned(), missing: rest.chars().count() }
    }

    /// Characters that are present.
    pub(crate) fn chars(&self) -> usize {
        self.text.chars().count()
    }

    /// At most `max` characters of it, and a note of how much is missing.
    pub(crate) fn cut(&self, max: usize) -> String {
        let (start, rest) = split(&self.text, max);
        match self.missing + rest.chars().count() {
            0 => self.text.clone(),
            missing => format!("{start}\n[cut here: {missing} more characters]"),
        }
    }
}

/// The first `max` characters, and the rest.
fn split(text: &str, max: usize) -> (&str, &str) {
    let end = text.char_indices().nth(max).map_or(text.len(), |(end, _)| end);
    text.split_at(end)
}

/// One line, without control characters, and with an ellipsis for each UUID.
pub(crate) fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace(char::is_control, "");
    let mut rest = line.as_str();
    let mut shown = String::with_capacity(line.len());
    while let Some(first) = rest.chars().next() {
        let id = rest.get(..ID_CHARS).filter(|id| is_uuid(id));
        let taken = id.map_or(first.len_utf8(), str::len);
        shown.push(if id.is_some() { '…' } else { first });
        rest = &rest[taken..];
    }
    shown
}

fn is_uuid(text: &str) -> bool {
    text.as_bytes().get(8) == Some(&b'-') && Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clipped_text_is_never_longer() {
        assert_eq!(clip("héllo", 5), "héllo");
        assert_eq!(clip("héllo!", 5), "héll…");
        assert_eq!(clip("one two", 5), "one…");
        assert_eq!(clip("x", 0), "…");
    }

    #[test]
    fn cut_text_says_how_much_is_missing() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 1), "ä\n[cut here: 3 more characters]");
        let twice = Beginning::of("äöüß", 3);
        assert_eq!(twice.chars(), 3);
        assert_eq!(twice.cut(9), "äöü\n[cut here: 1 more characters]");
        assert_eq!(twice.cut(1), "ä\n[cut here: 3 more characters]");
    }

    #[test]
    fn ids_are_not_shown() {
        let text = "no task\n  018f6b1e-7c1d-7aaa-8bbb-0123456789ab, task:018F6B1E-7C1D-7AAA-8BBB-0123456789AB";
        assert_eq!(plain(text), "no task …, task:…");
        assert_eq!(plain("é 12-34"), "é 12-34");
        assert_eq!(plain("a\u{1b}[2Jb\0"), "a[2Jb");
    }

    proptest! {
        #[test]
        fn any_text_can_be_cut(text in "\\PC{0,40}", max in 0_usize..50) {
            prop_assert!(clip(&text, max).chars().count() <= max.max(1));
            let whole = text.chars().count() <= max;
            prop_assert_eq!(cut(&text, max) == text, whole);
            let _ = plain(&text);
        }
    }
}
