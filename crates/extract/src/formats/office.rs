//! Office documents: DOCX, PPTX and ODT as Markdown.

use std::io::Cursor;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::Map;

use super::archive::whole;
use super::{Found, damaged};
use crate::extracted::{Extracted, Place, Problem, Reason};

/// What a password-protected document of Microsoft's begins with: it is no zip archive any more.
const COMPOUND_FILE: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0];
const MAX_PART_BYTES: u64 = 256 << 20;

pub(super) fn docx(bytes: Vec<u8>) -> Found {
    office(&bytes)
}

/// Each slide begins with the heading `Slide N`.
pub(super) fn pptx(bytes: Vec<u8>) -> Found {
    let mut found = office(&bytes)?;
    let mut at = 0;
    for line in found.text.split_inclusive('\n') {
        if let Some(number) = line.trim_end().strip_prefix("## Slide ") {
            let number: String = number.chars().take_while(char::is_ascii_digit).collect();
            found.places.push(Place { at, label: format!("slide {number}") });
        }
        at += line.len();
    }
    Ok(found)
}

fn office(bytes: &[u8]) -> Found {
    if bytes.starts_with(COMPOUND_FILE) {
        return Err(Problem::new(Reason::Encrypted, ""));
    }
    let document = undoc::parse_bytes(bytes).map_err(damaged)?;
    let text = undoc::render::to_markdown(&document, &undoc::render::RenderOptions::default()).map_err(damaged)?;
    let metadata = document.metadata;
    let mut fields = Map::new();
    if let Some(author) = metadata.author.filter(|author| !author.trim().is_empty()) {
        fields.insert("author".to_owned(), author.into());
    }
    if let Some(date) = metadata.modified.or(metadata.created) {
        fields.insert("date".to_owned(), date.into());
    }
    Ok(Extracted { title: metadata.title, text, is_markdown: true, fields, ..Extracted::default() })
}

pub(super) fn odt(bytes: Vec<u8>) -> Found {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    let mut part = |name: &str| -> Result<String, Problem> {
        let file = archive.by_name(name).map_err(damaged)?;
        String::from_utf8(whole(file, MAX_PART_BYTES)?).map_err(damaged)
    };
    // The manifest names what is encrypted.
    if part("META-INF/manifest.xml").is_ok_and(|manifest| manifest.contains("encryption-data")) {
        return Err(Problem::new(Reason::Encrypted, ""));
    }
    let text = odt_text(&part("content.xml")?)?;
    let meta = part("meta.xml").unwrap_or_default();
    let (title, author) = (element(&meta, "title"), element(&meta, "creator"));
    let fields = author.map(|author| ("author".to_owned(), author.into())).into_iter().collect();
    Ok(Extracted { title, text, is_markdown: true, fields, ..Extracted::default() })
}

/// The text of the first element with this name.
fn element(xml: &str, name: &str) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    let mut text = String::new();
    let mut is_inside = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) if start.local_name().as_ref() == name => is_inside = true,
            Event::End(end) if end.local_name().as_ref() == name => return Some(text).filter(|text| !text.is_empty()),
            Event::Eof => return None,
            event if is_inside => push_text(&mut text, &event),
            _ => {}
        }
    }
}

fn push_text(text: &mut String, event: &Event<'_>) {
    match event {
        Event::Text(found) => text.push_str(found),
        Event::CData(found) => text.push_str(found),
        Event::GeneralRef(reference) => match reference.resolve_char_ref() {
            Ok(Some(character)) => text.push(character),
            _ => text.push_str(quick_xml::escape::resolve_xml_entity(reference).unwrap_or_default()),
        },
        _ => {}
    }
}

fn odt_text(xml: &str) -> Result<String, Problem> {
    let mut reader = Reader::from_str(xml);
    let (mut text, mut paragraph) = (String::new(), String::new());
    let (mut heading, mut lists, mut cells) = (0, 0_usize, 0_usize);
    let mut row: Vec<String> = Vec::new();
    // Comments, changes that were deleted and the numbers of notes are not text.
    let mut hidden = 0_usize;
    // The paragraph around a note.
    let mut around: Option<String> = None;
    loop {
        let event = reader.read_event().map_err(damaged)?;
        match &event {
            Event::Start(start) => match start.local_name().as_ref() {
                "tracked-changes" | "annotation" | "note-citation" => hidden += 1,
                "note-body" => around = Some(std::mem::take(&mut paragraph)),
                "h" => heading = number(start, "outline-level").unwrap_or(1).clamp(1, 6),
                "list" => lists += 1,
                "table-cell" => cells += 1,
                _ => {}
            },
            Event::Empty(empty) => match empty.local_name().as_ref() {
                "s" | "tab" | "line-break" => paragraph.push(' '),
                "table-cell" if cells == 0 => row.push(String::new()),
                _ => {}
            },
            Event::End(end) => match end.local_name().as_ref() {
                "tracked-changes" | "annotation" | "note-citation" => hidden -= 1,
                "note-body" => {
                    let note = std::mem::replace(&mut paragraph, around.take().unwrap_or_default());
                    paragraph.push_str(&format!(" ({})", note.trim()));
                }
                "list" => lists = lists.saturating_sub(1),
                "p" | "h" if cells > 0 || around.is_some() => paragraph.push(' '),
                "p" | "h" => {
                    let line = std::mem::take(&mut paragraph);
                    let line = line.trim();
                    if !line.is_empty() {
                        match (std::mem::take(&mut heading), lists) {
                            (0, 0) => text.push_str(&format!("{line}\n\n")),
                            (0, depth) => text.push_str(&format!("{}- {line}\n", "  ".repeat(depth - 1))),
                            (level, _) => text.push_str(&format!("\n{} {line}\n\n", "#".repeat(level))),
                        }
                    }
                }
                "table-cell" => {
                    cells -= 1;
                    row.push(std::mem::take(&mut paragraph).trim().to_owned());
                }
                "table-row" => text.push_str(&format!("| {} |\n", std::mem::take(&mut row).join(" | "))),
                "table" => text.push('\n'),
                _ => {}
            },
            Event::Eof => return Ok(text),
            _ if hidden == 0 => push_text(&mut paragraph, &event),
            _ => {}
        }
    }
}

fn number(start: &BytesStart<'_>, name: &str) -> Option<usize> {
    let mut attributes = start.attributes().flatten();
    let found = attributes.find(|attribute| attribute.key.local_name().as_ref() == name)?;
    found.value.parse().ok()
}
