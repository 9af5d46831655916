//! Words in a panel.

use crate::{Element, Node};

/// Paragraphs are set apart by blank lines.
pub fn plain(text: &str) -> Vec<Node> {
    let text = text.replace("\r\n", "\n");
    let paragraphs = text
        .split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty());
    paragraphs
        .map(|paragraph| Element::new("p").with("dir", "auto").text(paragraph.to_owned()).into())
        .collect()
}

/// Marked-up text. Its marks are shown as they were typed.
pub fn markdown(text: &str) -> Vec<Node> {
    plain(text)
}
