//! Markdown as elements. Safe by construction: a document contributes only text, element and attribute names come from
//! here, and addresses are allowed by prefix (`links`). HTML in the source is text.

mod footnotes;
mod links;
mod table;

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag};

use self::footnotes::Footnotes;
use self::links::{Anchors, Target, outside, target};
use crate::marks::Marks;
use crate::plain::paragraphs;
use crate::{Element, Node};

/// Deeper nesting is flattened, because trees are walked recursively.
const MAX_DEPTH: usize = 40;
/// Text beyond this many bytes is shown unformatted.
const MAX_EVENTS: usize = 250_000;

pub fn markdown(text: &str) -> Vec<Node> {
    markdown_marked(text, None)
}

/// The text as elements, with the byte range `cited` in `<mark>`; the first mark has the id `passage`. Fully cited blocks
/// have the class `cited`.
pub fn markdown_marked(text: &str, cited: Option<Range<usize>>) -> Vec<Node> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES | Options::ENABLE_TASKLISTS;
    let mut parser = Parser::new_ext(text, options).into_offset_iter();
    let events: Vec<(Event<'_>, Range<usize>)> = parser.by_ref().take(MAX_EVENTS).collect();
    let is_cut = parser.next().is_some();
    let read_to = read_to(&events);
    let mut builder = Builder {
        source: text,
        marks: Marks::new(text, cited),
        first_level: first_level(&events),
        frames: vec![Frame::new(None, 0..text.len())],
        too_deep: 0,
        anchors: Anchors::default(),
        footnotes: Footnotes::default(),
    };
    for (event, at) in events {
        builder.take(event, at);
    }
    let (mut all, mut marks) = builder.finish();
    if is_cut {
        all.extend(paragraphs(text, read_to, &mut marks));
    }
    all
}

/// The end of the text that these events cover.
fn read_to(events: &[(Event<'_>, Range<usize>)]) -> usize {
    let contents = events.iter().filter(|(event, _)| !matches!(event, Event::Start(_) | Event::End(_)));
    contents.map(|(_, at)| at.end).max().unwrap_or_default()
}

/// The highest heading level in the text; it becomes the level below the page's own.
fn first_level(events: &[(Event<'_>, Range<usize>)]) -> usize {
    let level = |(event, _): &(Event<'_>, Range<usize>)| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(*level as usize),
        _ => None,
    };
    events.iter().filter_map(level).min().unwrap_or(1)
}

/// An open element; the first is the text itself and has no tag.
struct Frame<'a> {
    tag: Option<Tag<'a>>,
    at: Range<usize>,
    inner: Vec<Node>,
    /// Whether it is a list item with a checkbox.
    is_task: bool,
}

impl<'a> Frame<'a> {
    const fn new(tag: Option<Tag<'a>>, at: Range<usize>) -> Self {
        Self { tag, at, inner: Vec::new(), is_task: false }
    }
}

struct Builder<'a> {
    source: &'a str,
    marks: Marks,
    first_level: usize,
    frames: Vec<Frame<'a>>,
    /// Open elements that were not created because they are nested too deep.
    too_deep: usize,
    anchors: Anchors,
    footnotes: Footnotes,
}

impl<'a> Builder<'a> {
    fn take(&mut self, event: Event<'a>, at: Range<usize>) {
        match event {
            Event::Start(_) if self.too_deep > 0 || self.frames.len() > MAX_DEPTH => self.too_deep += 1,
            Event::Start(tag) => self.open(tag, at),
            Event::End(_) if self.too_deep > 0 => {
                self.too_deep -= 1;
                self.add(" ");
            }
            Event::End(_) => self.close(),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text, &at),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, &at),
            Event::Code(text) => self.code(&text, at),
            Event::FootnoteReference(label) => {
                let reference = self.footnotes.reference(&label);
                self.node(reference, &at);
            }
            Event::SoftBreak => self.text("\n", &at),
            Event::HardBreak => self.node(Element::new("br"), &at),
            Event::Rule => self.block(Element::new("hr"), &at),
            Event::TaskListMarker(done) => self.task(done, &at),
        }
    }

    fn open(&mut self, tag: Tag<'a>, at: Range<usize>) {
        // Notes are numbered in the order in which they are first seen.
        if let Tag::FootnoteDefinition(label) = &tag {
            self.footnotes.number(label);
        }
        self.frames.push(Frame::new(Some(tag), at));
    }

    fn close(&mut self) {
        // The first frame is never closed by an event.
        let Some(frame) = self.frames.pop_if(|frame| frame.tag.is_some()) else {
            return;
        };
        let (at, inner) = (frame.at, frame.inner);
        match frame.tag {
            None => {}
            Some(Tag::Paragraph) => self.block(Element::new("p").children(inner), &at),
            Some(Tag::BlockQuote(_)) => self.block(Element::new("blockquote").children(inner), &at),
            Some(Tag::Emphasis) => self.add(Element::new("em").children(inner)),
            Some(Tag::Strong) => self.add(Element::new("strong").children(inner)),
            Some(Tag::Strikethrough) => self.add(Element::new("del").children(inner)),
            Some(Tag::Heading { level, .. }) => {
                let anchor = self.anchors.name(heading_text(&self.source[at.clone()]));
                let heading = Element::new(self.heading(level)).with("id", anchor).children(inner);
                self.block(heading, &at);
            }
            Some(Tag::Item) if frame.is_task => self.block_with("li", "task", inner, &at),
            Some(Tag::Item) => self.block(Element::new("li").children(inner), &at),
            Some(Tag::HtmlBlock) => self.block_with("p", "source", inner, &at),
            Some(Tag::CodeBlock(_)) => {
                let code = Element::new("code").children(inner);
                // It can be wider than the page, so it is focusable for scrolling.
                self.block(Element::new("pre").with("tabindex", "0").child(code), &at);
            }
            Some(Tag::List(first)) => {
                let list = match first {
                    None => Element::new("ul"),
                    Some(1) => Element::new("ol"),
                    Some(first) => Element::new("ol").with("start", first.to_string()),
                };
                self.block(list.children(inner), &at);
            }
            Some(Tag::Table(_)) => {
                let is_cited = self.is_cited_whole(&at);
                self.add(table::table(inner, is_cited));
            }
            Some(Tag::TableHead) => self.add(Element::new("thead").child(Element::new("tr").children(inner))),
            Some(Tag::TableRow) => self.add(Element::new("tr").children(inner)),
            Some(Tag::TableCell) => self.cell(inner),
            Some(Tag::Link { dest_url, link_type, .. }) => self.link(&dest_url, link_type, inner),
            Some(Tag::Image { dest_url, .. }) => self.image(&dest_url, inner),
            Some(Tag::FootnoteDefinition(label)) => self.footnotes.add(&label, inner),
            Some(_) => self.block(Element::new("div").children(inner), &at),
        }
    }

    /// The elements, and the marks for the text that follows.
    fn finish(mut self) -> (Vec<Node>, Marks) {
        while self.frames.len() > 1 {
            self.close();
        }
        let mut all = self.frames.pop().map(|root| root.inner).unwrap_or_default();
        all.extend(self.footnotes.section());
        (all, self.marks)
    }

    fn add(&mut self, node: impl Into<Node>) {
        if let Some(frame) = self.frames.last_mut() {
            frame.inner.push(node.into());
        }
    }

    fn text(&mut self, text: &str, at: &Range<usize>) {
        let Some(frame) = self.frames.last_mut() else { return };
        if self.source.get(at.clone()) == Some(text) {
            self.marks.add_exact(&mut frame.inner, text, at.start);
        } else {
            self.marks.add_rewritten(&mut frame.inner, text, at);
        }
    }

    /// Inline code.
    fn code(&mut self, text: &str, at: Range<usize>) {
        let written = self.source.get(at.clone()).unwrap_or_default();
        let ticks = written.len() - written.trim_start_matches('`').len();
        let inner = match written[ticks..].find(text) {
            Some(offset) if !text.is_empty() => at.start + ticks + offset..at.start + ticks + offset + text.len(),
            _ => at.clone(),
        };
        self.frames.push(Frame::new(None, at));
        self.text(text, &inner);
        if let Some(code) = self.frames.pop() {
            self.add(Element::new("code").children(code.inner));
        }
    }

    /// An inline node.
    fn node(&mut self, node: impl Into<Node>, at: &Range<usize>) {
        let is_cited = self.marks.cover(at);
        if let Some(frame) = self.frames.last_mut() {
            self.marks.add_node(&mut frame.inner, node.into(), is_cited);
        }
    }

    fn block(&mut self, element: Element, at: &Range<usize>) {
        let is_cited = self.is_cited_whole(at);
        self.add(if is_cited { element.class("cited") } else { element });
    }

    fn block_with(&mut self, name: &'static str, class: &str, inner: Vec<Node>, at: &Range<usize>) {
        let cited = if self.is_cited_whole(at) { " cited" } else { "" };
        self.add(Element::classed(name, format!("{class}{cited}")).children(inner));
    }

    /// Ignores the trailing line break: blocks end with one, passages with a word.
    fn is_cited_whole(&self, at: &Range<usize>) -> bool {
        let Some(written) = self.source.get(at.clone()) else {
            return false;
        };
        let start = at.start + (written.len() - written.trim_start().len());
        self.marks.cover(&(start..start + written.trim().len()))
    }

    /// A checkbox, which replaces the list marker.
    fn task(&mut self, done: bool, at: &Range<usize>) {
        let mut open = self.frames.iter_mut().rev();
        if let Some(item) = open.find(|frame| matches!(frame.tag, Some(Tag::Item))) {
            item.is_task = true;
        }
        self.text(if done { "☑ " } else { "☐ " }, at);
    }

    fn heading(&self, level: HeadingLevel) -> &'static str {
        match (level as usize).saturating_sub(self.first_level) {
            0 => "h2",
            1 => "h3",
            2 => "h4",
            3 => "h5",
            _ => "h6",
        }
    }

    fn is_within_link(&self) -> bool {
        self.frames.iter().any(|frame| matches!(frame.tag, Some(Tag::Link { .. })))
    }

    fn link(&mut self, address: &str, kind: LinkType, inner: Vec<Node>) {
        let target = match kind {
            LinkType::Email => Target::Outside(format!("mailto:{address}")),
            _ => target(address),
        };
        let element = match target {
            _ if self.is_within_link() => Element::new("span"),
            Target::Outside(address) => outside(address),
            Target::Within(anchor) => Element::new("a").with("href", format!("#{anchor}")),
            // The link is dropped; its text stays.
            Target::Nowhere(address) => Element::classed("span", "unlinked").with("title", address),
        };
        self.add(element.children(inner));
    }

    /// Images are not loaded: the page shows their description and address.
    fn image(&mut self, address: &str, inner: Vec<Node>) {
        let picture = Element::classed("span", "picture").text("Picture");
        let picture = if inner.is_empty() { picture } else { picture.text(": ").children(inner) };
        let picture = match target(address) {
            Target::Outside(address) if !self.is_within_link() => {
                let shown = address.clone();
                picture.text(" ").child(outside(address).text(shown))
            }
            Target::Outside(address) | Target::Within(address) | Target::Nowhere(address) => {
                picture.with("title", address)
            }
        };
        self.add(picture);
    }

    fn cell(&mut self, inner: Vec<Node>) {
        let mut above = self.frames.iter().rev();
        let row = above.next();
        let column = row.map_or(0, |row| row.inner.len());
        let alignment = above.find_map(|frame| match &frame.tag {
            Some(Tag::Table(columns)) => columns.get(column).copied(),
            _ => None,
        });
        let is_head = row.is_some_and(|row| matches!(row.tag, Some(Tag::TableHead)));
        self.add(table::cell(is_head, alignment, inner));
    }
}

/// The first line of a heading, without markup.
fn heading_text(heading: &str) -> &str {
    let line = heading.trim().lines().next().unwrap_or_default();
    line.trim_matches('#').trim()
}
