//! PDF: the text of each page in the order in which it is written, with the outline's titles as places.

mod layout;

use hayro_interpret::{Context, InterpreterCache, InterpreterSettings, TransformExt, interpret_page};
use hayro_syntax::object::{Dict, String as PdfString};
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use kurbo::Rect;
use serde_json::Map;

use self::layout::Page;
use super::{Found, damaged};
use crate::extracted::{Extracted, Place, Problem, Reason};

const MAX_OUTLINE_ENTRIES: usize = 10_000;
const MAX_LABEL_CHARS: usize = 80;
/// A document with fewer letters a page than this is a scan, whatever is stamped on it.
const MIN_LETTERS_PER_PAGE: usize = 8;

pub(super) fn read(bytes: Vec<u8>) -> Found {
    let pdf = Pdf::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => Problem::new(Reason::Encrypted, ""),
        error => damaged(format!("{error:?}")),
    })?;
    let cache = InterpreterCache::new();
    let (mut text, mut places, mut letters) = (String::new(), Vec::new(), 0);
    for (number, page) in pdf.pages().iter().enumerate() {
        let (width, height) = page.render_dimensions();
        let area = Rect::new(0.0, 0.0, width.into(), height.into());
        let transform = page.initial_transform(true).to_kurbo();
        let mut context = Context::new(transform, area, &cache, pdf.xref(), InterpreterSettings::default());
        let mut shown = Page::default();
        interpret_page(page, &mut context, &mut shown);
        let shown = shown.text();
        letters += shown.chars().filter(|c| c.is_alphabetic()).count();
        places.push(Place { at: text.len(), label: format!("p. {}", number + 1) });
        text.push_str(shown.trim_end());
        text.push_str("\n\n");
    }
    if letters < MIN_LETTERS_PER_PAGE * places.len() {
        let pages = places.len();
        return Err(Problem::new(Reason::NoText, format!("{pages} {}", if pages == 1 { "page" } else { "pages" })));
    }
    name_sections(&text, &mut places, &outline(&pdf));
    let metadata = pdf.metadata();
    let title = metadata.title.as_deref().map(decoded).filter(|title| is_title(title));
    let mut fields = Map::new();
    if let Some(author) = metadata.author.as_deref().map(decoded).filter(|author| !author.is_empty()) {
        fields.insert("author".to_owned(), author.into());
    }
    Ok(Extracted { title, text, places, fields, ..Extracted::default() })
}

/// A text of the document's, in UTF-16, UTF-8 or Latin-1.
fn decoded(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xfe, 0xff, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest).0,
        [0xff, 0xfe, rest @ ..] => encoding_rs::UTF_16LE.decode_without_bom_handling(rest).0,
        bytes => match std::str::from_utf8(bytes) {
            Ok(text) => text.trim_start_matches('\u{feff}').into(),
            Err(_) => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0,
        },
    };
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Programs write file names and their own names where a title belongs.
fn is_title(title: &str) -> bool {
    let lower = title.to_lowercase();
    let is_file = [".doc", ".docx", ".dvi", ".tex", ".indd", ".ps", ".qxd", ".pdf", ".odt", ".rtf", ".ppt", ".pptx"];
    title.chars().filter(|c| c.is_alphabetic()).count() > 2
        && !is_file.iter().any(|end| lower.ends_with(end))
        && !lower.contains("untitled")
        && !lower.starts_with("microsoft ")
}

/// The titles of the outline, in order.
fn outline(pdf: &Pdf) -> Vec<String> {
    let xref = pdf.xref();
    fn first<'a>(entry: &Dict<'a>) -> Option<Dict<'a>> {
        entry.get(b"First".as_slice())
    }
    let root = xref.get::<Dict<'_>>(xref.root_id());
    let outlines = root.and_then(|root| root.get::<Dict<'_>>(b"Outlines".as_slice()));
    let mut waiting: Vec<Dict<'_>> = outlines.as_ref().and_then(first).into_iter().collect();
    let mut titles = Vec::new();
    // Entries may lead back to one another.
    for _ in 0..MAX_OUTLINE_ENTRIES {
        let Some(entry) = waiting.pop() else { break };
        titles.extend(entry.get::<PdfString<'_>>(b"Title".as_slice()).map(|title| decoded(title.as_bytes())));
        waiting.extend(entry.get::<Dict<'_>>(b"Next".as_slice()));
        waiting.extend(first(&entry));
    }
    titles
}

/// Names the lines that the outline lists. A table of contents lists them too: so a line only counts where the next
/// titles follow on later pages.
fn name_sections(text: &str, pages: &mut Vec<Place>, titles: &[String]) {
    let squeezed =
        |line: &str| line.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lines.push((at, squeezed(line)));
        at += line.len();
    }
    let mut from = 0;
    let mut named = Vec::new();
    for title in titles {
        let wanted = squeezed(title);
        if wanted.chars().count() < 3 {
            continue;
        }
        // Section numbers stand before the title in the text, but not always in the outline.
        let is_heading = |line: &str| line.ends_with(&wanted) && line.len() <= wanted.len() + 12;
        let Some(found) = lines[from..].iter().position(|(_, line)| is_heading(line)) else { continue };
        let (at, _) = lines[from + found];
        from += found + 1;
        let page = pages[..pages.partition_point(|page| page.at <= at)].last();
        let page = page.map_or_else(String::new, |page| format!("{}, ", page.label));
        named.push(Place { at, label: format!("{page}{}", title.chars().take(MAX_LABEL_CHARS).collect::<String>()) });
    }
    pages.retain(|page| named.iter().all(|section| section.at != page.at));
    pages.extend(named);
    pages.sort_by_key(|place| place.at);
}
