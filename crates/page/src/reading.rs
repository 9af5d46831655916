//! A document's text for reading.

use std::ops::Range;

use crate::model::TextFormat;

use crate::Node;
use crate::markdown::markdown_marked;
use crate::plain::plain_marked;

/// The text as elements, with the byte range `cited` marked. A first line that repeats the title is omitted.
pub fn text(text: &str, format: TextFormat, title: &str, cited: Option<Range<usize>>) -> Vec<Node> {
    let start = after_title(text, format, title);
    let cited = cited.map(|cited| cited.start.saturating_sub(start)..cited.end.saturating_sub(start));
    match format {
        TextFormat::Plain => plain_marked(&text[start..], cited),
        TextFormat::Markdown => markdown_marked(&text[start..], cited),
    }
}

/// Where the text begins after its title. A text that is only a title stays.
fn after_title(text: &str, format: TextFormat, title: &str) -> usize {
    let blank = text.len() - text.trim_start().len();
    let line = text[blank..].split_inclusive('\n').next().unwrap_or_default();
    let rest = &text[blank + line.len()..];
    let heading = match format {
        TextFormat::Markdown => line.strip_prefix("# ").map(|line| line.trim().trim_end_matches('#')),
        // Only a line above a blank one: the first line of a paragraph may not be a title.
        TextFormat::Plain => Some(line).filter(|_| rest.lines().next().is_some_and(|next| next.trim().is_empty())),
    };
    let repeats_title = heading.is_some_and(|heading| heading.trim() == title.trim());
    if repeats_title && !rest.trim().is_empty() { blank + line.len() } else { 0 }
}
