//! Books: the chapters in reading order, each a place.

use std::io::Cursor;

use rbook::Epub;
use serde_json::Map;

use super::{Found, damaged, html};
use crate::extracted::{Extracted, Place};

const MAX_LABEL_CHARS: usize = 80;

pub(super) fn read(bytes: Vec<u8>) -> Found {
    let book = Epub::read(Cursor::new(bytes)).map_err(damaged)?;
    let metadata = book.metadata();
    let authors: Vec<&str> = metadata.creators().map(|creator| creator.value()).collect();
    let mut fields = Map::new();
    if !authors.is_empty() {
        fields.insert("author".to_owned(), authors.join(", ").into());
    }
    let title = metadata.title().map(|title| title.value().to_owned());
    let (mut text, mut places) = (String::new(), Vec::new());
    for entry in book.reader() {
        // A chapter that cannot be read must not hide the others.
        let Ok(chapter) = entry.map_err(damaged).and_then(|entry| html::text(entry.content())) else { continue };
        let heading = chapter.lines().find_map(|line| line.strip_prefix('#')).map(|line| line.trim_matches(['#', ' ']));
        let label = heading.filter(|heading| !heading.is_empty()).map(str::to_owned);
        let label = label.unwrap_or_else(|| format!("chapter {}", places.len() + 1));
        places.push(Place { at: text.len(), label: label.chars().take(MAX_LABEL_CHARS).collect() });
        text.push_str(chapter.trim());
        text.push_str("\n\n");
    }
    Ok(Extracted { title, text, is_markdown: true, places, fields, ..Extracted::default() })
}
