//! Plain text as paragraphs.

use std::ops::Range;

use crate::marks::Marks;
use crate::{Element, Node};

/// Paragraphs of a text, separated by blank lines. Line breaks and spaces are kept.
pub fn plain(text: &str) -> Vec<Node> {
    plain_marked(text, None)
}

/// The same, with the byte range `cited` in `<mark>`.
pub fn plain_marked(text: &str, cited: Option<Range<usize>>) -> Vec<Node> {
    paragraphs(text, 0, &mut Marks::new(text, cited))
}

/// The paragraphs of a text from `start` on.
pub(crate) fn paragraphs(text: &str, start: usize, marks: &mut Marks) -> Vec<Node> {
    let mut all = Vec::new();
    let mut lines: Vec<Range<usize>> = Vec::new();
    let mut at = text.floor_char_boundary(start);
    for line in text[at..].split_inclusive('\n') {
        let bare = line.trim_end_matches(['\r', '\n']);
        if !bare.trim().is_empty() {
            lines.push(at..at + bare.len());
        } else if !lines.is_empty() {
            all.push(paragraph(text, &std::mem::take(&mut lines), marks));
        }
        at += line.len();
    }
    if !lines.is_empty() {
        all.push(paragraph(text, &lines, marks));
    }
    all
}

fn paragraph(text: &str, lines: &[Range<usize>], marks: &mut Marks) -> Node {
    let mut nodes = Vec::new();
    let mut end_before: Option<usize> = None;
    for line in lines {
        if let Some(end) = end_before {
            marks.add_rewritten(&mut nodes, "\n", &(end..line.start));
        }
        marks.add_exact(&mut nodes, &text[line.clone()], line.start);
        end_before = Some(line.end);
    }
    let all = lines.first().map_or(0, |line| line.start)..lines.last().map_or(0, |line| line.end);
    let class = if marks.cover(&all) { "lines cited" } else { "lines" };
    Element::classed("p", class).children(nodes).into()
}
