//! Targets of links. An address is allowed only by its prefix.

use std::collections::{HashMap, HashSet};

use crate::Element;

/// Longer addresses are refused: they carry data.
const MAX_ADDRESS_BYTES: usize = 2_000;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Another site, or a mailbox.
    Outside(String),
    /// A heading of the same text, by its anchor.
    Within(String),
    /// An address that means nothing here or must not be followed.
    Nowhere(String),
}

pub(super) fn target(address: &str) -> Target {
    const OUTSIDE: [&str; 3] = ["https://", "http://", "mailto:"];
    let begins = |prefix: &&str| {
        let head = address.as_bytes().get(..prefix.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    if address.len() > MAX_ADDRESS_BYTES {
        return Target::Nowhere(address[..address.floor_char_boundary(MAX_ADDRESS_BYTES)].to_owned());
    }
    if OUTSIDE.iter().any(begins) {
        return Target::Outside(address.to_owned());
    }
    match address.strip_prefix('#') {
        Some(fragment) if !fragment.is_empty() => Target::Within(anchor(fragment)),
        _ => Target::Nowhere(address.to_owned()),
    }
}

/// A link that sends no referrer and gives the other site no access to this page.
pub(super) fn outside(address: String) -> Element {
    Element::new("a").with("href", address).with("rel", "noreferrer noopener nofollow")
}

/// The anchor of a heading, the same for the heading and for links to it, and distinct from the page's own ids.
pub(super) fn anchor(heading: &str) -> String {
    const MAX_CHARS: usize = 60;
    let mut name = String::from("s-");
    for letter in heading.chars().flat_map(char::to_lowercase).take(MAX_CHARS) {
        if letter.is_alphanumeric() || letter == '_' {
            name.push(letter);
        } else if (letter == ' ' || letter == '-') && !name.ends_with('-') {
            name.push('-');
        }
    }
    name
}

/// Unique anchors for the headings of one text.
#[derive(Default)]
pub(super) struct Anchors {
    given: HashSet<String>,
    /// How often each name was requested.
    wanted: HashMap<String, usize>,
}

impl Anchors {
    pub(super) fn name(&mut self, heading: &str) -> String {
        let plain = anchor(heading);
        let again = self.wanted.entry(plain.clone()).or_default();
        let mut name = plain.clone();
        while !self.given.insert(name.clone()) {
            *again += 1;
            name = format!("{plain}-{again}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_prefixes_are_followed() {
        let outside = |address: &str| Target::Outside(address.to_owned());
        let nowhere = |address: &str| Target::Nowhere(address.to_owned());
        for good in ["https://example.org/", "HTTP://example.org", "mailto:ann@example.org"] {
            assert_eq!(target(good), outside(good));
        }
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            " https://example.org",
            "\u{1}javascript:alert(1)",
            "java\nscript:alert(1)",
            "data:text/html,<script>alert(1)</script>",
            "vbscript:x",
            "//example.org/x",
            "/data/notes:x",
            "other.md",
            "https:/example.org",
            "file:///etc/passwd",
            "blob:https://example.org/1",
            "#",
            "",
        ] {
            assert_eq!(target(bad), nowhere(bad));
        }
        assert!(
            matches!(target(&format!("https://{}", "a".repeat(3_000))), Target::Nowhere(cut) if cut.len() == 2_000)
        );
    }

    #[test]
    fn heading_and_link_share_an_anchor() {
        assert_eq!(anchor("Where it leads"), "s-where-it-leads");
        assert_eq!(target("#where-it-leads"), Target::Within("s-where-it-leads".to_owned()));
        assert_eq!(anchor("Où & wann?"), "s-où-wann");
        assert_eq!(anchor("passage"), "s-passage", "no heading takes the passage's place");
        let mut anchors = Anchors::default();
        let names = ["Low", "Low", "Low 1", "Low"].map(|heading| anchors.name(heading));
        assert_eq!(names, ["s-low", "s-low-1", "s-low-1-1", "s-low-2"]);
    }
}
