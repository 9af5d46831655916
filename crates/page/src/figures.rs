//! Labelled values.

use crate::model::{Amount, Figure, Tone};

use crate::chart::empty_panel;
use crate::number::{grouped, is_decimal, is_signed};
use crate::{Element, Node, time};

/// Figures in a row that wraps.
pub fn figures(shown: &[Figure]) -> Element {
    if shown.is_empty() {
        return empty_panel("There are no figures.");
    }
    Element::classed("dl", "figures").children(shown.iter().map(figure))
}

fn figure(figure: &Figure) -> Element {
    let value = Element::classed("dd", toned("value", figure.tone));
    let value = match &figure.value {
        Some(known) => value.children(marker(figure.tone, &known.text)).children(amount(known)),
        None => value.child(Element::classed("span", "soft").text("unknown")),
    };
    let note = figure.note.clone().map(|note| Element::classed("dd", "about").text(note));
    Element::new("div").child(Element::new("dt").text(figure.label.clone())).child(value).children(note)
}

/// A number and its unit.
pub fn amount(amount: &Amount) -> Vec<Node> {
    let shown = match time::moment(&amount.text) {
        Some(moment) => moment,
        None if is_decimal(&amount.text) => Element::classed("span", "num").text(grouped(&amount.text)),
        None => Element::classed("span", "words").text(amount.text.clone()),
    };
    let mut nodes: Vec<Node> = vec![shown.into()];
    if let Some(unit) = amount.unit.as_ref().filter(|unit| !unit.is_empty()) {
        nodes.push(" ".into());
        nodes.push(Element::classed("span", "unit").text(unit.clone()).into());
    }
    nodes
}

/// Shows a number's tone without colour. Signed numbers and words need no marker.
pub fn marker(tone: Tone, text: &str) -> Vec<Node> {
    if is_decimal(text) && !is_signed(text) { sign(tone) } else { Vec::new() }
}

/// A glyph, and a word for screen readers.
pub fn sign(tone: Tone) -> Vec<Node> {
    let Some((word, glyph)) = word_and_glyph(tone) else {
        return Vec::new();
    };
    let glyph = Element::classed("span", "sign").with("aria-hidden", "true").text(glyph);
    let word = Element::classed("span", "unseen").text(format!("{word}: "));
    vec![glyph.into(), word.into()]
}

/// The classes of an element that shows a tone.
pub fn toned(class: &str, tone: Tone) -> String {
    match word_and_glyph(tone) {
        Some((word, _)) => format!("{class} {word}"),
        None => class.to_owned(),
    }
}

/// The word is also the class.
fn word_and_glyph(tone: Tone) -> Option<(&'static str, &'static str)> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some(("good", "✓")),
        Tone::Warning => Some(("warning", "!")),
        Tone::Bad => Some(("bad", "✕")),
        Tone::Simulated => Some(("simulated", "~")),
        Tone::Up => Some(("up", "▲")),
        Tone::Down => Some(("down", "▼")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_figure_says_why() {
        let html = figures(&[Figure::unknown("Spread", "the book is not live")]).to_string();
        assert_eq!(
            html,
            r#"<dl class="figures"><div><dt>Spread</dt><dd class="value"><span class="soft">unknown</span></dd><dd class="about">the book is not live</dd></div></dl>"#
        );
    }

    #[test]
    fn tone_is_shown_without_colour() {
        assert!(marker(Tone::Plain, "1.5").is_empty());
        assert!(marker(Tone::Up, "+1.5").is_empty(), "the sign says it");
        assert!(marker(Tone::Up, "buy").is_empty(), "the word says it");
        let marked: String = marker(Tone::Down, "1.5").iter().map(Node::to_string).collect();
        assert!(marked.contains('▼') && marked.contains("down"), "{marked}");
    }
}
