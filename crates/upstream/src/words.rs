//! What strangers say, made harmless to terminals, logs and models.

/// Text of several lines without control characters and without what cannot be seen: marks that
/// turn the direction of writing, and tags that only a model would read.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c)))
        .collect()
}

/// The same on one line, with single spaces, of at most `most` characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    // What is dropped without a trace must not hide a word from whoever reads: spaces first.
    let spaced: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    cut(&clean(&words.join(" ")), most)
}

/// At most `most` characters; the last of them is `…` if something is missing.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept.push('…');
    kept
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
    fn what_cannot_be_seen_is_dropped() {
        assert_eq!(clean("a\u{1b}[31mb\r\n\tc\u{0}\u{7f}\u{9b}d"), "a[31mb\n\tcd");
        assert_eq!(clean("no\u{202e}w \u{e0041}\u{200b}here\u{feff}"), "now here");
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line("  a\r\n b\t\tc ", 10), "a b c");
        assert_eq!(line("abcdef", 4), "abc…");
        assert_eq!(line("äöüß", 4), "äöüß");
    }

    proptest! {
        #[test]
        fn nothing_bad_is_left(text in any::<String>(), most in 1_usize..40) {
            let line = line(&text, most);
            prop_assert!(line.chars().count() <= most);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert!(clean(&text).chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        }
    }
}
