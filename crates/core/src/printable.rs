//! Text that others chose, in a line for people.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with control characters written as `\u000a`, so that it neither begins a line nor controls a terminal. In
/// a JSON string the result stands for the same text.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(controls) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if controls(c) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Also those that separate lines or change the direction of text.
fn controls(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line, without characters that are not seen or that turn text around.
pub fn legible(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace(|c: char| c.is_control() || is_invisible(c), "")
}

const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escaped_and_nothing_else() {
        assert_eq!(escape_controls("Grüße, 東京"), "Grüße, 東京");
        assert_eq!(escape_controls("a\r\nb\u{1b}[31m\u{9b}\u{202e}"), "a\\u000d\\u000ab\\u001b[31m\\u009b\\u202e");
        let name = "a\u{7f}\u{9b}b\u{2028}";
        let json = serde_json::to_string(name).expect("JSON");
        assert_eq!(serde_json::from_str::<String>(&escape_controls(&json)).expect("JSON"), name);
    }
}
