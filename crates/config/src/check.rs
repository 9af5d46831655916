//! Numbers, addresses and titles.

use tribune_core::{Error, Result};

/// Checks that a number is within its bounds; `setting` is its whole name: `server.drain_secs`.
pub fn check_range(setting: &str, value: u64, low: u64, high: u64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("{setting} = {value} must be between {low} and {high}")))
}

/// `field-notes` as `Field notes`.
pub fn default_title(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    let first = chars.next().map(|first| first.to_uppercase().chain(chars).collect());
    first.unwrap_or_default()
}

/// Whether a text is an `http://` or `https://` address.
pub fn is_http_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains([' ', '"', '<', '>']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        assert!(check_range("a.b", 5, 5, 5).is_ok());
        let error = check_range("a.b", 6, 1, 5).expect_err("too large");
        assert_eq!(error.message(), "a.b = 6 must be between 1 and 5");
    }

    #[test]
    fn titles_and_addresses_are_plain() {
        assert_eq!(default_title("field-notes_2"), "Field notes 2");
        assert_eq!(default_title(""), "");
        for wrong in ["", "https://", "ftp://a", "https://a b", "example.org"] {
            assert!(!is_http_url(wrong), "{wrong}");
        }
        assert!(is_http_url("http://a") && is_http_url("https://a/mcp"));
    }
}
