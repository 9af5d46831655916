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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_part_paragraphs_and_markup_stays_text() {
        let html: String = plain("One\r\nline\r\n\r\n\n<b>two</b>\n\n \n\n")
            .iter()
            .map(Node::to_string)
            .collect();
        assert_eq!(
            html,
            "<p dir=\"auto\">One\nline</p><p dir=\"auto\">&lt;b&gt;two&lt;/b&gt;</p>"
        );
    }
}
