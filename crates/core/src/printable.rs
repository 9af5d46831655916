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
