//! What all charts share. The plot is stretched to its container; lines keep their width, and labels, which are placed
//! beside the plot at percentages, keep their size. So a chart is readable on a phone and on a large screen.

use jiff::Timestamp;

use crate::model::Width;
use crate::scale::Ticks;
use crate::svg::{HEIGHT, Path, WIDTH, coordinate, percent};
use crate::time::Window;
use crate::{Element, Node};

/// The panel in which content is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    /// Part of every HTML id inside.
    pub key: &'a str,
    pub width: Width,
}

impl Slot<'_> {
    /// How many labels have room below a chart.
    pub fn choose(self, if_whole: usize, if_half: usize) -> usize {
        match self.width {
            Width::Whole => if_whole,
            Width::Half => if_half,
        }
    }
}

/// A labelled value on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// From 0 at the top or left to 1.
    pub at: f64,
    pub label: String,
    pub has_line: bool,
}

/// A mark for each round value: `label` gets the value and its decimal places, `at` places it.
pub fn marks(ticks: Ticks, has_line: bool, label: impl Fn(f64, usize) -> String, at: impl Fn(f64) -> f64) -> Vec<Mark> {
    let mark = |value| Mark { at: at(value), label: label(value, ticks.places), has_line };
    ticks.values.iter().copied().map(mark).collect()
}

/// A mark for each round time that is inside the chart.
pub fn time_marks(window: Window, most: usize, at: impl Fn(Timestamp) -> f64) -> Vec<Mark> {
    let mark = |(moment, label)| Mark { at: at(moment), label, has_line: true };
    let marks = window.ticks(most).into_iter().map(mark);
    marks.filter(|mark| mark.at <= 1.0).collect()
}

/// A highlighted value on the right axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tag {
    pub at: f64,
    pub label: String,
    pub class: &'static str,
}

/// Text in the plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    pub x: f64,
    pub y: f64,
    pub text: String,
    /// `start`, `middle` or `end`.
    pub anchor: &'static str,
}

/// The parts of a chart.
#[derive(Debug, Default)]
pub struct Chart {
    /// In a box of [`WIDTH`] by [`HEIGHT`].
    pub shapes: Vec<Element>,
    pub words: Vec<Word>,
    /// At the right, from the top down.
    pub rows: Vec<Mark>,
    /// Below, from the left.
    pub columns: Vec<Mark>,
    pub tags: Vec<Tag>,
    pub legend: Option<Element>,
    /// The content in one or two sentences, for screen readers and for the figures.
    pub caption: String,
}

/// The height of a label as a share of the chart's height.
const LABEL_SHARE: f64 = 0.075;

impl Chart {
    pub fn draw(self, slot: Slot<'_>) -> Element {
        let caption_id = format!("panel-{}-caption", slot.key);
        let tags = spread(self.tags);
        let rows = self.rows;
        let stretched = Element::classed("svg", "plot")
            .with("viewBox", format!("0 0 {WIDTH} {HEIGHT}"))
            .with("preserveAspectRatio", "none")
            .with("role", "img")
            .with("aria-labelledby", format!("panel-{}-title", slot.key))
            .with("aria-describedby", caption_id.clone())
            .children(grid(&rows, &self.columns))
            .children(self.shapes);
        let words = (!self.words.is_empty()).then(|| layer("words").children(self.words.into_iter().map(word)));
        let kind = match slot.width {
            Width::Whole => "chart whole",
            Width::Half => "chart",
        };
        let sides = Element::classed("div", kind)
            .child(stretched)
            .children(words)
            .child(right_side(&rows, tags))
            .child(bottom(self.columns));
        Element::classed("figure", "drawn")
            .children(self.legend)
            .child(sides)
            .child(Element::new("figcaption").with("id", caption_id).text(self.caption))
    }
}

/// Why there is no chart.
pub fn empty_panel(why: impl Into<String>) -> Element {
    Element::classed("p", "nothing").text(why.into())
}

/// A drawing that is not stretched. Screen readers get the caption instead.
fn layer(class: &'static str) -> Element {
    Element::classed("svg", class).with("aria-hidden", "true")
}

fn grid(rows: &[Mark], columns: &[Mark]) -> Option<Element> {
    let rows = rows.iter().filter(|row| row.has_line);
    let path = rows.fold(Path::default(), |path, row| path.horizontal(row.at));
    let columns = columns.iter().filter(|column| column.has_line);
    let path = columns.fold(path, |path, column| path.vertical(column.at, 0.0, 1.0));
    path.element("grid")
}

fn word(word: Word) -> Element {
    Element::new("text")
        .with("x", percent(word.x))
        .with("y", percent(word.y))
        .with("dy", "-0.4em")
        .with("text-anchor", word.anchor)
        .text(word.text)
}

fn right_side(rows: &[Mark], tags: Vec<Tag>) -> Element {
    let is_free = |row: &&Mark| tags.iter().all(|tag| (tag.at - row.at).abs() >= LABEL_SHARE * 0.9);
    let labels = rows.iter().map(|row| &row.label).chain(tags.iter().map(|tag| &tag.label));
    let longest = labels.map(|label| label.chars().count()).max().unwrap_or(0);
    let marks = rows.iter().filter(is_free).map(|row| {
        Element::new("text").with("x", "7").with("y", percent(row.at)).with("dy", "0.35em").text(row.label.clone())
    });
    layer("right")
        .with("width", format!("{}em", coordinate(longest as f64 * 0.56 + 1.3)))
        .children(marks)
        .children(tags.iter().map(tag_element))
}

/// In its own drawing, so that box and text share one position.
fn tag_element(tag: &Tag) -> Element {
    let frame = Element::new("rect").with("y", "-10").with("width", "100%").with("height", "20").with("rx", "4");
    let text = Element::new("text").with("x", "7").with("dy", "0.35em").text(tag.label.clone());
    Element::classed("svg", format!("tag {}", tag.class)).with("y", percent(tag.at)).child(frame).child(text)
}

fn bottom(columns: Vec<Mark>) -> Element {
    let label = |(index, mark): (usize, Mark)| {
        let anchor = if mark.at < 0.05 { "start" } else { "middle" };
        // Narrow pages hide every other label.
        let class = if index % 2 == 1 { "extra" } else { "kept" };
        Element::classed("text", class)
            .with("x", percent(mark.at))
            .with("dy", "1.15em")
            .with("text-anchor", anchor)
            .text(mark.label)
    };
    layer("bottom").children(columns.into_iter().enumerate().map(label))
}

/// Moves overlapping tags apart, as little as possible, and keeps them inside.
fn spread(mut tags: Vec<Tag>) -> Vec<Tag> {
    tags.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut least: f64 = 0.0;
    for tag in &mut tags {
        tag.at = tag.at.max(least);
        least = tag.at + LABEL_SHARE;
    }
    let mut most: f64 = 1.0;
    for tag in tags.iter_mut().rev() {
        tag.at = tag.at.min(most).max(0.0);
        most = tag.at - LABEL_SHARE;
    }
    tags
}

/// Nodes separated by spaces.
pub fn spaced(nodes: impl IntoIterator<Item = Element>) -> Vec<Node> {
    let mut spaced = Vec::new();
    for node in nodes {
        if !spaced.is_empty() {
            spaced.push(Node::from(" "));
        }
        spaced.push(node.into());
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(at: f64) -> Tag {
        Tag { at, label: "1".to_owned(), class: "last" }
    }

    #[test]
    fn tags_do_not_overlap() {
        let places: Vec<f64> =
            spread(vec![tag(0.5), tag(0.51), tag(1.0), tag(0.99)]).iter().map(|tag| tag.at).collect();
        for (place, wanted) in places.iter().zip([0.5, 0.575, 0.925, 1.0]) {
            assert!((place - wanted).abs() < 1e-9, "{places:?}");
        }
    }

    #[test]
    fn too_many_tags_stay_inside() {
        let tags = spread((0..40).map(|_| tag(0.5)).collect());
        assert!(tags.iter().all(|tag| (0.0..=1.0).contains(&tag.at)));
    }
}
