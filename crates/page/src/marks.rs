//! Marks the cited part of a text.

use std::ops::Range;

use crate::{Element, Node};

/// The cited part of a source text. All shown text passes through here, in order.
pub(crate) struct Marks {
    /// On character boundaries of the source; empty if nothing is cited.
    cited: Range<usize>,
    has_begun: bool,
}

/// A part of an element's content.
pub(crate) enum Piece {
    Plain(Node),
    Marked { nodes: Vec<Node>, is_first: bool },
}

impl Marks {
    pub(crate) fn new(source: &str, cited: Option<Range<usize>>) -> Self {
        let cited = cited.unwrap_or(0..0);
        let cited = source.floor_char_boundary(cited.start)..source.ceil_char_boundary(cited.end.min(source.len()));
        Self {
            cited: if cited.is_empty() { 0..0 } else { cited },
            has_begun: false,
        }
    }

    /// Whether all of this part of the source is cited.
    pub(crate) fn cover(&self, at: &Range<usize>) -> bool {
        !at.is_empty() && self.cited.start <= at.start && at.end <= self.cited.end
    }

    fn touch(&self, at: &Range<usize>) -> bool {
        self.cited.start < at.end && at.start < self.cited.end
    }

    /// Adds text that appears literally in the source, from `start` on.
    pub(crate) fn add_exact(&mut self, pieces: &mut Vec<Piece>, text: &str, start: usize) {
        let within = |at: usize| at.clamp(start, start + text.len()) - start;
        let (from, to) = (within(self.cited.start), within(self.cited.end));
        add_plain(pieces, &text[..from]);
        if from < to {
            self.add_marked(pieces, text[from..to].to_owned().into());
        }
        add_plain(pieces, &text[from.max(to)..]);
    }

    /// Adds text that the source writes differently, such as an entity: marked as a whole if any of it is cited.
    pub(crate) fn add_rewritten(&mut self, pieces: &mut Vec<Piece>, text: &str, at: &Range<usize>) {
        self.add_node(pieces, text.to_owned().into(), self.touch(at));
    }

    /// Adds a node that is not text, such as a line break.
    pub(crate) fn add_node(&mut self, pieces: &mut Vec<Piece>, node: Node, is_cited: bool) {
        if is_cited {
            self.add_marked(pieces, node);
        } else {
            pieces.push(Piece::Plain(node));
        }
    }

    fn add_marked(&mut self, pieces: &mut Vec<Piece>, node: Node) {
        if let Some(Piece::Marked { nodes, .. }) = pieces.last_mut() {
            nodes.push(node);
            return;
        }
        pieces.push(Piece::Marked {
            nodes: vec![node],
            is_first: !self.has_begun,
        });
        self.has_begun = true;
    }
}

fn add_plain(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Plain(text.to_owned().into()));
    }
}

/// The pieces as nodes. The first cited one gets the id that links to the passage use.
pub(crate) fn nodes(pieces: Vec<Piece>) -> impl Iterator<Item = Node> {
    pieces.into_iter().map(|piece| match piece {
        Piece::Plain(node) => node,
        Piece::Marked { nodes, is_first } => {
            let mark = Element::new("mark");
            let mark = if is_first { mark.with("id", "passage") } else { mark };
            mark.children(nodes).into()
        }
    })
}
