//! The transcript of a sitting, in the form in which the Australian parliament publishes it.
//!
//! One document for each speech, question and answer. Both forms are read: paragraphs within the turn
//! itself (to 2011), and one body with names marked in it (since). Nothing is fetched, no entity is
//! expanded that a file declares itself, and depth and size are bounded.

mod bytes;
mod elements;
mod names;
mod sitting;
mod talk;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use self::bytes::{Counted, Encoding};
use self::elements::{html_entity, is_block, is_heading, is_value};
use self::sitting::{Heading, Sitting};
use self::talk::{Kind, Mark, Paragraph, Turn};
use super::rules::SENATE;
use crate::read::{Dialect, Draft, Input, Sink, WAS_WINDOWS_1252, too_large};

/// Real transcripts are about fifteen elements deep.
const MAX_DEPTH: usize = 100;
/// Titles and names longer than this are cut: nobody has one.
const MAX_VALUE_BYTES: usize = 2_000;

/// Reads one file.
pub(crate) fn read<S: Sink>(input: &Input<'_>, sink: &mut S) -> Result<(), S::Error> {
    let opened = bytes::encoding(input.path).and_then(|encoding| Ok((encoding, Counted::open(input.path, encoding)?)));
    let (encoding, counted) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            sink.fault(None, true, format!("cannot be opened: {error}"));
            return Ok(());
        }
    };
    match encoding {
        Encoding::Utf8 => {}
        Encoding::Utf16 => {
            let problem = "is UTF-16: convert it, for example with `iconv -f UTF-16 -t UTF-8`";
            sink.fault(None, true, problem.to_owned());
            return Ok(());
        }
        Encoding::Windows1252 => sink.fault(None, false, WAS_WINDOWS_1252.to_owned()),
    }
    let mut transcript = Transcript::new(input, sink);
    let mut reader = Reader::from_reader(counted);
    reader.config_mut().expand_empty_elements = true;
    let ended = transcript.events(&mut reader)?;
    transcript.close(ended);
    Ok(())
}

/// An element that is open.
struct Open {
    name: String,
    class: String,
    /// Where it began in the paragraph's text.
    from: usize,
}

/// A transcript being read.
struct Transcript<'a, S> {
    input: &'a Input<'a>,
    sink: &'a mut S,
    open: Vec<Open>,
    sitting: Sitting,
    headings: Vec<Heading>,
    /// Turns under way: a speech, and an interjection within it.
    turns: Vec<(usize, Turn)>,
    paragraph: Option<Paragraph>,
    /// The text of the element that is open, where it is a value and not something said.
    value: String,
    /// Set by `<a href="…">` around a name.
    href: String,
    /// Set by `<item label="(a)">`.
    label: String,
    numbered: u64,
    told_entity: bool,
}

/// Why reading stopped.
enum Ended {
    AtTheEnd,
    At(u64, String),
}

impl<'a, S: Sink> Transcript<'a, S> {
    fn new(input: &'a Input<'a>, sink: &'a mut S) -> Self {
        Self {
            input,
            sink,
            open: Vec::new(),
            sitting: Sitting::default(),
            headings: Vec::new(),
            turns: Vec::new(),
            paragraph: None,
            value: String::new(),
            href: String::new(),
            label: String::new(),
            numbered: 0,
            told_entity: false,
        }
    }

    fn events(&mut self, reader: &mut Reader<Counted>) -> Result<Ended, S::Error> {
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let line = reader.get_ref().line;
            reader.get_mut().allow(self.input.max_document_bytes);
            let event = match reader.read_event_into(&mut buffer) {
                Ok(event) => event,
                Err(error) => {
                    let problem = format!("is not well-formed XML at byte {} ({error})", reader.error_position());
                    return Ok(Ended::At(reader.get_ref().line, problem));
                }
            };
            match event {
                Event::Start(start) => {
                    if self.open.len() >= MAX_DEPTH {
                        let problem = format!("has elements more than {MAX_DEPTH} deep");
                        return Ok(Ended::At(line, problem));
                    }
                    self.start(&start, line);
                }
                Event::End(_) => self.end()?,
                Event::Text(text) => self.text(&text.xml10_content()),
                Event::CData(text) => self.text(&text.xml10_content()),
                Event::GeneralRef(reference) => self.reference(&reference, line),
                Event::Eof => return Ok(self.at_end(line)),
                // A document type may declare entities; they are not looked at.
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Empty(_) => {}
            }
        }
    }

    fn at_end(&self, line: u64) -> Ended {
        match self.open.last() {
            Some(open) => Ended::At(line, format!("ends in the middle: <{}> is never closed", open.name)),
            None => Ended::AtTheEnd,
        }
    }

    fn close(self, ended: Ended) {
        match ended {
            Ended::At(line, problem) => {
                let problem = format!("{problem}; what stands before that is read, the rest is not");
                self.sink.fault(Some(line), true, problem);
            }
            Ended::AtTheEnd if self.numbered == 0 => {
                let problem = "holds no <speech>, <question> or <answer>: it is not a Hansard transcript";
                self.sink.fault(None, true, problem.to_owned());
            }
            Ended::AtTheEnd => {}
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, line: u64) {
        let name = start.name().as_ref().to_owned();
        let attribute = |wanted: &str| {
            let found = start.try_get_attribute(wanted).ok().flatten();
            found
                .map(|attribute| attribute.value.chars().take(100).collect::<String>())
                .unwrap_or_default()
        };
        if is_value(&name) {
            self.value.clear();
        }
        let depth = self.open.len();
        if let Some(kind) = Kind::of_element(&name) {
            self.flush();
            self.numbered += u64::from(kind.stands_alone());
            self.turns.push((depth, Turn::new(kind, line, self.numbered)));
        } else if is_heading(&name) {
            self.headings.push(Heading {
                depth,
                title: String::new(),
                page: String::new(),
            });
        } else if is_block(&name) {
            self.flush();
        }
        let mut class = String::new();
        match name.as_str() {
            "a" => self.href = attribute("href"),
            "item" => self.label = attribute("label"),
            "span" => class = attribute("class"),
            "name" => class = attribute("role"),
            "br" => self.text(" "),
            _ => {}
        }
        let from = self.paragraph.as_ref().map_or(0, |paragraph| paragraph.raw.len());
        self.open.push(Open { name, class, from });
    }

    fn end(&mut self) -> Result<(), S::Error> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let depth = self.open.len();
        match open.name.as_str() {
            "span" => self.marked(&open),
            "a" => self.href.clear(),
            name if is_block(name) => self.flush(),
            _ => {}
        }
        if is_value(&open.name) {
            self.keep_value(&open);
        }
        if self.turns.last().is_some_and(|(at, _)| *at == depth)
            && let Some((_, turn)) = {
                self.flush();
                self.turns.pop()
            }
            && turn.kind.stands_alone()
        {
            self.give(turn)?;
        }
        if self.headings.last().is_some_and(|heading| heading.depth == depth) {
            self.headings.pop();
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        let is_said = !self.turns.is_empty() && !self.is_within("talker") && !self.is_within("division");
        if !is_said {
            if self.value.len() + text.len() <= MAX_VALUE_BYTES {
                self.value.push_str(text);
            }
            return;
        }
        if self.paragraph.is_none() && text.trim().is_empty() {
            return;
        }
        let label = std::mem::take(&mut self.label);
        let paragraph = self.paragraph.get_or_insert_with(|| Paragraph {
            raw: if label.is_empty() { label } else { format!("{label} ") },
            mark: None,
        });
        // Beyond the bound nothing more is kept; the turn is refused when it ends.
        if paragraph.raw.len() as u64 <= self.input.max_document_bytes {
            paragraph.raw.push_str(text);
        }
    }

    /// `&amp;`, `&#8212;`, `&mdash;`. What is not known stays as it stands.
    fn reference(&mut self, reference: &BytesRef<'_>, line: u64) {
        if let Ok(Some(character)) = reference.resolve_char_ref() {
            self.text(character.encode_utf8(&mut [0; 4]));
        } else if let Some(known) = resolve_predefined_entity(reference).or_else(|| html_entity(reference)) {
            self.text(known);
        } else {
            let name: String = reference.chars().take(40).collect();
            if !std::mem::replace(&mut self.told_entity, true) {
                let problem = format!("`&{name};` is not an entity that is known here: kept as it stands");
                self.sink.fault(Some(line), false, problem);
            }
            self.text(&format!("&{name};"));
        }
    }

    fn is_within(&self, name: &str) -> bool {
        self.open.iter().rev().any(|open| open.name == name)
    }

    /// A name, an electorate or a time within the text: where they end, the words begin.
    fn marked(&mut self, span: &Open) {
        let Some(paragraph) = &mut self.paragraph else {
            return;
        };
        let end = paragraph.raw.len();
        let marked = paragraph.raw[span.from.min(end)..].trim();
        if let Some(kind) = Kind::of_class(&span.class) {
            if paragraph.mark.is_none() {
                paragraph.mark = Some(Mark {
                    kind,
                    name: marked.to_owned(),
                    id: self.href.clone(),
                    end,
                });
            }
            return;
        }
        let (Some(mark), Some((_, turn))) = (&mut paragraph.mark, self.turns.last_mut()) else {
            return;
        };
        let value = match span.class.as_str() {
            "HPS-Electorate" => &mut turn.talker.electorate,
            "HPS-MinisterialTitles" => &mut turn.talker.role,
            "HPS-Time" => &mut turn.talker.time,
            _ => return,
        };
        if value.is_empty() && mark.kind == turn.kind {
            marked.trim_matches([':', '(', ')', ' ']).clone_into(value);
        }
        mark.end = end;
    }

    /// A paragraph is over.
    fn flush(&mut self) {
        let Some(paragraph) = self.paragraph.take() else {
            return;
        };
        let Some((last, outer)) = self.turns.split_last_mut() else {
            return;
        };
        if last.1.kind.stands_alone() {
            last.1.add(&paragraph);
        } else if let Some((_, whole)) = outer.iter_mut().rev().find(|(_, turn)| turn.kind.stands_alone()) {
            whole.add_nested(&mut last.1, &paragraph);
        }
    }

    /// What a value means depends on what it stands in.
    fn keep_value(&mut self, open: &Open) {
        let value = std::mem::take(&mut self.value);
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if value.is_empty() {
            return;
        }
        let parent = self.open.last().map_or("", |parent| parent.name.as_str());
        match (parent, open.name.as_str()) {
            ("session.header", "date") => self.sitting.date = value,
            ("session.header", "chamber") => self.sitting.chamber = value,
            ("session.header", "parliament.no") => self.sitting.parliament = value,
            ("session.header", "session.no") => self.sitting.session = value,
            ("session.header", "period.no") => self.sitting.period = value,
            ("debateinfo" | "subdebateinfo", "title") => {
                if let Some(heading) = self.headings.last_mut() {
                    heading.title = value;
                }
            }
            ("debateinfo" | "subdebateinfo", "page.no") => {
                if let Some(heading) = self.headings.last_mut() {
                    heading.page = value;
                }
            }
            ("talker", name) => {
                if let Some((_, turn)) = self.turns.last_mut() {
                    turn.talker.keep(name, &open.class, value);
                }
            }
            _ => {}
        }
    }

    fn give(&mut self, turn: Turn) -> Result<(), S::Error> {
        let line = Some(turn.line);
        if turn.bytes > self.input.max_document_bytes {
            self.sink.fault(line, true, too_large(self.input.max_document_bytes));
            return Ok(());
        }
        if turn.paragraphs.is_empty() {
            let problem = format!("the {} has no text", turn.kind.name());
            self.sink.fault(line, true, problem);
            return Ok(());
        }
        let draft = Draft {
            place: format!("{}#{}", self.input.relative, turn.number),
            text: Some(turn.paragraphs.join("\n\n")),
            fields: sitting::fields(&self.sitting, &self.headings, &turn, self.venue(), self.is_senate()),
            ..Draft::default()
        };
        self.input.give(line, draft, Vec::new(), self.sink)
    }

    fn is_senate(&self) -> bool {
        let Dialect::Speeches(rules) = &self.input.reading.dialect else {
            return false;
        };
        rules.chambers.canonical(&self.sitting.chamber) == Some(SENATE)
    }

    /// The House also sits in a second room.
    fn venue(&self) -> &'static str {
        if self.is_within("fedchamb.xscript") {
            "Federation Chamber"
        } else if self.is_within("maincomm.xscript") {
            "Main Committee"
        } else {
            ""
        }
    }
}

#[cfg(test)]
mod tests;
