//! Marks the cited part of a text.

use std::ops::Range;

use crate::{Element, Node};

/// The cited part of a source text. All shown text passes through here, in order.
pub(crate) struct Marks {
    /// On character boundaries of the source; empty if nothing is cited.
    cited: Range<usize>,
    has_begun: bool,
}

impl Marks {
    pub(crate) fn new(source: &str, cited: Option<Range<usize>>) -> Self {
        let cited = cited.unwrap_or(0..0);
        let cited = source.floor_char_boundary(cited.start)..source.ceil_char_boundary(cited.end.min(source.len()));
        Self { cited: if cited.is_empty() { 0..0 } else { cited }, has_begun: false }
    }

    /// Whether all of this part of the source is cited.
    pub(crate) fn cover(&self, at: &Range<usize>) -> bool {
        !at.is_empty() && self.cited.start <= at.start && at.end <= self.cited.end
    }

    fn touch(&self, at: &Range<usize>) -> bool {
        self.cited.start < at.end && at.start < self.cited.end
    }

    /// Adds text that appears literally in the source, from `start` on.
    pub(crate) fn add_exact(&mut self, nodes: &mut Vec<Node>, text: &str, start: usize) {
        let within = |at: usize| at.clamp(start, start + text.len()) - start;
        let (from, to) = (within(self.cited.start), within(self.cited.end));
        add_plain(nodes, &text[..from]);
        if from < to {
            self.add_marked(nodes, text[from..to].to_owned().into());
        }
        add_plain(nodes, &text[from.max(to)..]);
    }

    /// Adds text that the source writes differently, such as an entity: marked as a whole if any of it is cited.
    pub(crate) fn add_rewritten(&mut self, nodes: &mut Vec<Node>, text: &str, at: &Range<usize>) {
        self.add_node(nodes, text.to_owned().into(), self.touch(at));
    }

    /// Adds a node that is not text, such as a line break.
    pub(crate) fn add_node(&mut self, nodes: &mut Vec<Node>, node: Node, is_cited: bool) {
        if is_cited {
            self.add_marked(nodes, node);
        } else {
            nodes.push(node);
        }
    }

    /// Extends the mark before it. The first mark gets the id that links to the passage use.
    fn add_marked(&mut self, nodes: &mut Vec<Node>, node: Node) {
        match nodes.last_mut() {
            Some(Node::Element(mark)) if mark.name() == "mark" => mark.push(node),
            _ => {
                let mark = Element::new("mark");
                let mark = if self.has_begun { mark } else { mark.with("id", "passage") };
                self.has_begun = true;
                nodes.push(mark.child(node).into());
            }
        }
    }
}

fn add_plain(nodes: &mut Vec<Node>, text: &str) {
    if !text.is_empty() {
        nodes.push(text.to_owned().into());
    }
}
