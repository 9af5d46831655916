//! Text from other servers, made harmless to terminals, logs and models.

/// Removes control characters and invisible ones: bidirectional marks, and tag characters that only a model would
/// read. Keeps line breaks and tabs.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c))).collect()
}

/// The cleaned text on one line, with single spaces, of at most `max_chars` characters.
pub(crate) fn single_line(text: &str, max_chars: usize) -> String {
    // Before cleaning, because `clean` would join two words that only a control character separates.
    let spaced: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    truncate(&clean(&words.join(" ")), max_chars)
}

/// At most `max_chars` characters; the last is `…` if the text was longer.
pub(crate) fn truncate(text: &str, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let mut start: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    start.push('…');
    start
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
        | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invisible_characters_are_removed() {
        assert_eq!(clean("a\u{1b}[31mb\r\n\tc\u{0}\u{7f}\u{9b}d"), "a[31mb\n\tcd");
        assert_eq!(clean("no\u{202e}w \u{e0041}\u{200b}here\u{feff}"), "now here");
    }

    #[test]
    fn whitespace_collapses_and_long_lines_end_in_ellipsis() {
        assert_eq!(single_line("  a\r\n b\t\tc ", 10), "a b c");
        assert_eq!(single_line("abcdef", 4), "abc…");
        assert_eq!(single_line("äöüß", 4), "äöüß");
    }

    proptest! {
        #[test]
        fn no_control_character_remains(text in any::<String>(), max_chars in 1_usize..40) {
            let line = single_line(&text, max_chars);
            prop_assert!(line.chars().count() <= max_chars);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert!(clean(&text).chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        }
    }
}
