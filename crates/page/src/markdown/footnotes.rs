//! Footnotes: numbered by first use, collected at the end.

use std::collections::{HashMap, HashSet};

use crate::{Element, Node};

#[derive(Default)]
pub(super) struct Footnotes {
    /// By label, from 1.
    numbers: HashMap<String, usize>,
    /// Notes that the text refers to.
    referred: HashSet<usize>,
    texts: Vec<(usize, Vec<Node>)>,
}

impl Footnotes {
    pub(super) fn number(&mut self, label: &str) -> usize {
        let next = self.numbers.len() + 1;
        *self.numbers.entry(label.to_owned()).or_insert(next)
    }

    /// A number in the text that links to the note. The note links back to the first one.
    pub(super) fn reference(&mut self, label: &str) -> Element {
        let number = self.number(label);
        let link = Element::new("a").with("href", format!("#note-{number}"));
        let link = if self.referred.insert(number) { link.with("id", format!("note-{number}-from")) } else { link };
        Element::new("sup").child(link.text(number.to_string()))
    }

    pub(super) fn add(&mut self, label: &str, text: Vec<Node>) {
        let number = self.number(label);
        self.texts.push((number, text));
    }

    /// All of them; `None` if there are none.
    pub(super) fn section(mut self) -> Option<Node> {
        if self.texts.is_empty() {
            return None;
        }
        self.texts.sort_by_key(|(number, _)| *number);
        let items = self.texts.into_iter().map(|(number, inner)| {
            let item = Element::new("li")
                .with("id", format!("note-{number}"))
                .with("value", number.to_string())
                .children(inner);
            if !self.referred.contains(&number) {
                return item;
            }
            let back = Element::new("a").with("href", format!("#note-{number}-from"));
            item.child(back.with("aria-label", "Back to the text").text("↩"))
        });
        let list = Element::new("ol").children(items);
        let section = Element::classed("section", "footnotes").with("aria-label", "Notes");
        Some(section.child(list).into())
    }
}
