//! A tree of elements: written as HTML into a page, and as JSON to a live page, which builds the same elements from it.
//! Text stays text: there is no way to insert markup.

use std::borrow::Cow;
use std::fmt::{self, Write};

use serde::ser::{Serialize, SerializeSeq, Serializer};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Text(Cow<'static, str>),
    Element(Element),
}

/// An element with attributes and children. Names come from this program, never from a document.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, Cow<'static, str>)>,
    children: Vec<Node>,
}

impl Element {
    pub fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), children: Vec::new() }
    }

    pub fn classed(name: &'static str, class: impl Into<Cow<'static, str>>) -> Self {
        Self::new(name).class(class)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Sets an attribute. Never for `style` or `on…`: the pages' policy refuses both.
    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        debug_assert!(name != "style" && !name.starts_with("on"), "{name}");
        self.attributes.push((name, value.into()));
        self
    }

    pub fn class(self, class: impl Into<Cow<'static, str>>) -> Self {
        self.with("class", class)
    }

    pub fn text(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.push(Node::Text(text.into()));
        self
    }

    pub fn child(mut self, child: impl Into<Node>) -> Self {
        self.push(child);
        self
    }

    pub fn children<N: Into<Node>>(mut self, children: impl IntoIterator<Item = N>) -> Self {
        children.into_iter().for_each(|child| self.push(child));
        self
    }

    /// Adjacent texts become one, as in an HTML parser, so that HTML and JSON give the same tree.
    pub fn push(&mut self, child: impl Into<Node>) {
        match (self.children.last_mut(), child.into()) {
            (_, Node::Text(text)) if text.is_empty() => {}
            (Some(Node::Text(before)), Node::Text(text)) => before.to_mut().push_str(&text),
            (_, child) => self.children.push(child),
        }
    }
}

impl From<Element> for Node {
    fn from(element: Element) -> Self {
        Self::Element(element)
    }
}

impl From<&'static str> for Node {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// Elements that have no content and no end tag.
const VOID: [&str; 6] = ["br", "hr", "img", "input", "meta", "link"];

/// As HTML.
impl fmt::Display for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => escaped(text, out),
            Self::Element(element) => element.fmt(out),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_char('<')?;
        out.write_str(self.name)?;
        for (name, value) in &self.attributes {
            write!(out, " {name}=\"")?;
            escaped(value, out)?;
            out.write_char('"')?;
        }
        out.write_char('>')?;
        if VOID.contains(&self.name) {
            return Ok(());
        }
        // A parser drops a line break right after this tag.
        if self.name == "pre" && matches!(self.children.first(), Some(Node::Text(text)) if text.starts_with('\n')) {
            out.write_char('\n')?;
        }
        for child in &self.children {
            child.fmt(out)?;
        }
        write!(out, "</{}>", self.name)
    }
}

fn escaped(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '\0', '\r']) {
        out.write_str(&rest[..at])?;
        out.write_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            b'\r' => "&#13;",
            // HTML has no such character.
            _ => "\u{fffd}",
        })?;
        rest = &rest[at + 1..];
    }
    out.write_str(rest)
}

/// As JSON: a string, or `[name, {attributes}, child, …]`.
impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Element(element) => element.serialize(serializer),
        }
    }
}

impl Serialize for Element {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Attributes<'a>(&'a [(&'static str, Cow<'static, str>)]);
        impl Serialize for Attributes<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
            }
        }
        let mut list = serializer.serialize_seq(Some(2 + self.children.len()))?;
        list.serialize_element(self.name)?;
        list.serialize_element(&Attributes(&self.attributes))?;
        for child in &self.children {
            list.serialize_element(child)?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_in_html_and_json() {
        let node = Element::classed("p", "a\"b")
            .text("<script>alert('1')")
            .text("")
            .text("</script> & so on")
            .child(Element::new("br"))
            .child(Element::new("b").text("bold"));
        assert_eq!(
            node.to_string(),
            "<p class=\"a&quot;b\">&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; so on<br><b>bold</b></p>"
        );
        assert_eq!(
            serde_json::to_string(&node).expect("JSON"),
            r#"["p",{"class":"a\"b"},"<script>alert('1')</script> & so on",["br",{}],["b",{},"bold"]]"#
        );
    }
}
