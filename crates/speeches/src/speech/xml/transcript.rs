//! Follows the events of the XML parser, and gives each finished turn to the sink.

use quick_xml::Reader;
use quick_xml::escape::resolve_html5_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use tribune_corpus::format::{Draft, Input, Sink, Stop, too_large};

use super::names::{DISPLAYED, Values};
use super::sitting;
use super::talk::{Kind, Mark, Paragraph, Turn, one_line};
use crate::speech::parliament::{Aliases, SENATE};

/// Real transcripts are about fifteen elements deep.
const MAX_DEPTH: usize = 100;
/// Longer titles and names are truncated.
const MAX_VALUE_BYTES: usize = 2_000;

/// Elements whose text is a value, not speech.
const VALUES: &str = "date chamber parliament.no session.no period.no title page.no name name.id electorate party role \
                      time.stamp in.gov first.speech";

/// Elements that begin and end a paragraph.
const BLOCKS: &str = "para p body talk.start talk.text motion motionnospeech quote list item table tr td th row entry \
                      li division";

/// An open element.
struct Open {
    name: String,
    class: String,
    /// Its start in the paragraph's text.
    from: usize,
}

pub(super) struct Transcript<'a> {
    input: &'a Input<'a>,
    chambers: &'a Aliases,
    sink: &'a mut dyn Sink,
    open: Vec<Open>,
    /// The values of the transcript's header.
    session: Values,
    /// The values of the open debates and subdebates.
    headings: Vec<Values>,
    /// Open turns: a speech, and an interjection in it.
    turns: Vec<Turn>,
    paragraph: Option<Paragraph>,
    /// The text of the open element, if it is a value and not speech.
    value: String,
    /// Set by `<a href="…">` around a name.
    href: String,
    /// Set by `<item label="(a)">`.
    label: String,
    numbered: u64,
    reported_entity: bool,
}

impl<'a> Transcript<'a> {
    pub(super) fn new(input: &'a Input<'a>, chambers: &'a Aliases, sink: &'a mut dyn Sink) -> Self {
        Self {
            input,
            chambers,
            sink,
            open: Vec::new(),
            session: Values::default(),
            headings: Vec::new(),
            turns: Vec::new(),
            paragraph: None,
            value: String::new(),
            href: String::new(),
            label: String::new(),
            numbered: 0,
            reported_entity: false,
        }
    }

    /// Gives every turn to the sink, and a fault for what cannot be read.
    pub(super) fn read(mut self, text: &str) -> Result<(), Stop> {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        // The line on which an event begins, and the byte up to which lines are counted.
        let (mut line, mut counted) = (1, 0);
        let broken = loop {
            let position = (reader.buffer_position() as usize).min(text.len());
            line += text.as_bytes()[counted..position].iter().filter(|byte| **byte == b'\n').count() as u64;
            counted = position;
            match reader.read_event() {
                Ok(Event::Start(_)) if self.open.len() >= MAX_DEPTH => {
                    break format!("has elements more than {MAX_DEPTH} deep");
                }
                Ok(Event::Start(start)) => self.start(&start, line),
                Ok(Event::End(_)) => self.end()?,
                Ok(Event::Text(text)) => self.text(&text.xml10_content()),
                Ok(Event::CData(text)) => self.text(&text.xml10_content()),
                Ok(Event::GeneralRef(reference)) => self.reference(&reference, line),
                // Entities declared by a document type are ignored.
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Empty(_)) => {}
                Ok(Event::Eof) => match self.open.last() {
                    Some(open) => break format!("ends in the middle: <{}> is never closed", open.name),
                    None if self.numbered == 0 => {
                        let problem = "holds no <speech>, <question> or <answer>: it is not a Hansard transcript";
                        self.sink.fault(None, true, problem.to_owned());
                        return Ok(());
                    }
                    None => return Ok(()),
                },
                Err(error) => break format!("is not well-formed XML at byte {} ({error})", reader.error_position()),
            }
        };
        let problem = format!("{broken}; everything before that was read, the rest was not");
        self.sink.fault(Some(line), true, problem);
        Ok(())
    }

    fn start(&mut self, start: &BytesStart<'_>, line: u64) {
        let name = start.name().as_ref().to_owned();
        let attribute = |wanted: &str| {
            let found = start.try_get_attribute(wanted).ok().flatten();
            found.map(|attribute| attribute.value.chars().take(100).collect::<String>()).unwrap_or_default()
        };
        if is_value(&name) {
            self.value.clear();
        }
        if let Some(kind) = Kind::of_element(&name) {
            self.flush();
            self.numbered += u64::from(kind.stands_alone());
            self.turns.push(Turn { kind, line, number: self.numbered, ..Turn::default() });
        } else if is_heading(&name) {
            self.headings.push(Values::default());
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

    fn end(&mut self) -> Result<(), Stop> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        match open.name.as_str() {
            "span" => self.read_mark(&open),
            "a" => self.href.clear(),
            name if is_block(name) => self.flush(),
            name if is_heading(name) => drop(self.headings.pop()),
            name if is_value(name) => self.store_value(&open),
            _ => {}
        }
        if Kind::of_element(&open.name).is_some()
            && let Some(turn) = self.turns.pop()
            && turn.kind.stands_alone()
        {
            self.emit(turn)?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        let is_speech = !self.turns.is_empty() && !self.is_within("talker") && !self.is_within("division");
        if !is_speech {
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
        // Text above the limit is not stored; the turn is refused at its end.
        if paragraph.raw.len() as u64 <= self.input.max_document_bytes {
            paragraph.raw.push_str(text);
        }
    }

    /// `&amp;`, `&#8212;`, `&mdash;`. An unknown entity stays as it is.
    fn reference(&mut self, reference: &BytesRef<'_>, line: u64) {
        if let Ok(Some(character)) = reference.resolve_char_ref() {
            self.text(character.encode_utf8(&mut [0; 4]));
        } else if let Some(known) = resolve_html5_entity(reference) {
            self.text(known);
        } else {
            let name: String = reference.chars().take(40).collect();
            if !std::mem::replace(&mut self.reported_entity, true) {
                let problem = format!("`&{name};` is an unknown entity: kept as it is");
                self.sink.fault(Some(line), false, problem);
            }
            self.text(&format!("&{name};"));
        }
    }

    fn is_within(&self, name: &str) -> bool {
        self.open.iter().rev().any(|open| open.name == name)
    }

    /// Handles a name, an electorate or a time marked in the text: the words begin after them.
    fn read_mark(&mut self, span: &Open) {
        let Some(paragraph) = &mut self.paragraph else {
            return;
        };
        let end = paragraph.raw.len();
        let marked = paragraph.raw[span.from.min(end)..].trim();
        if let Some(kind) = Kind::of_class(&span.class) {
            if paragraph.mark.is_none() {
                paragraph.mark = Some(Mark { kind, name: marked.to_owned(), id: self.href.clone(), end });
            }
            return;
        }
        let (Some(mark), Some(turn)) = (&mut paragraph.mark, self.turns.last_mut()) else {
            return;
        };
        let value = match span.class.as_str() {
            "HPS-Electorate" => "electorate",
            "HPS-MinisterialTitles" => "role",
            "HPS-Time" => "time.stamp",
            _ => return,
        };
        let marked = marked.trim_matches([':', '(', ')', ' ']);
        if mark.kind == turn.kind && !marked.is_empty() {
            let values = &mut turn.talker.0;
            values.entry(value.to_owned()).or_insert_with(|| marked.to_owned());
        }
        mark.end = end;
    }

    /// Ends a paragraph.
    fn flush(&mut self) {
        let Some(paragraph) = self.paragraph.take() else {
            return;
        };
        let Some((last, outer)) = self.turns.split_last_mut() else {
            return;
        };
        if last.kind.stands_alone() {
            last.add(&paragraph);
        } else if let Some(whole) = outer.iter_mut().rev().find(|turn| turn.kind.stands_alone()) {
            whole.add_nested(last, &paragraph);
        }
    }

    /// The meaning of a value depends on its parent.
    fn store_value(&mut self, open: &Open) {
        let value = one_line(&std::mem::take(&mut self.value));
        let parent = self.open.last().map_or("", |parent| parent.name.as_str());
        let values = match parent {
            "session.header" => Some(&mut self.session),
            "debateinfo" | "subdebateinfo" => self.headings.last_mut(),
            "talker" => self.turns.last_mut().map(|turn| &mut turn.talker),
            _ => None,
        };
        if let Some(values) = values.filter(|_| !value.is_empty()) {
            let is_displayed = open.name == "name" && open.class == "display";
            let name = if is_displayed { DISPLAYED } else { &open.name };
            values.0.insert(name.to_owned(), value);
        }
    }

    fn emit(&mut self, turn: Turn) -> Result<(), Stop> {
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
            fields: sitting::fields(&self.session, &self.headings, &turn, self.venue(), self.is_senate()),
            ..Draft::default()
        };
        self.input.give(line, draft, Vec::new(), self.sink)
    }

    fn is_senate(&self) -> bool {
        self.chambers.canonical(self.session.get("chamber")) == Some(SENATE)
    }

    /// The House also sits in a second chamber.
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

fn is_heading(name: &str) -> bool {
    name == "debate" || (name.starts_with("subdebate.") && name != "subdebate.text")
}

fn is_value(name: &str) -> bool {
    VALUES.split(' ').any(|value| value == name)
}

fn is_block(name: &str) -> bool {
    BLOCKS.split(' ').any(|block| block == name) || Kind::of_element(name).is_some()
}
