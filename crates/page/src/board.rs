//! A board as regions, each of which a live page updates as a whole.

use crate::model::{Amount, Badge, Board, Content, Headline, Hrefs, Panel, Tone, Width};

use crate::candles::candles;
use crate::chart::{Slot, empty_panel, spaced};
use crate::depth::depth;
use crate::figures::{amount, figures, sign, toned};
use crate::ladder::ladder;
use crate::lines::lines;
use crate::markdown::markdown;
use crate::plain::plain;
use crate::profile::profile;
use crate::table::table;
use crate::{Element, number, time};

/// A part of a board's page that is updated as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// `head`, or `panel-` and the panel's key; also `data-region` of the element.
    pub key: String,
    pub element: Element,
}

/// Younger values are fresh; older ones than `STALE_MS` are stale.
const FRESH_MS: u64 = 2_000;
const STALE_MS: u64 = 15_000;

/// The head, and then every panel.
pub fn regions(board: &Board, hrefs: Hrefs<'_>) -> Vec<Region> {
    let head = Region { key: "head".to_owned(), element: head(board) };
    let panels =
        board.panels.iter().map(|shown| Region { key: format!("panel-{}", shown.key), element: panel(shown, hrefs) });
    std::iter::once(head).chain(panels).collect()
}

fn head(board: &Board) -> Element {
    let badges = (!board.badges.is_empty())
        .then(|| Element::classed("p", "badges").children(spaced(board.badges.iter().map(badge))));
    let notes = board.notes.iter().map(|note| Element::classed("p", "note").with("dir", "auto").text(note.clone()));
    Element::classed("div", "board-head")
        .with("data-region", "head")
        .children(badges)
        .children(board.headline.as_ref().map(headline))
        .children(notes)
}

pub fn badge(badge: &Badge) -> Element {
    let element = Element::classed("span", toned("badge", badge.tone));
    match &badge.meaning {
        Some(meaning) => element
            .with("title", meaning.clone())
            .text(badge.label.clone())
            .child(Element::classed("span", "unseen").text(format!(": {meaning}"))),
        None => element.text(badge.label.clone()),
    }
}

fn headline(shown: &Headline) -> Element {
    let label = Element::classed("p", "label").text(shown.label.clone());
    let mut value =
        Element::classed("p", "price").child(Element::classed("span", "figure").children(amount(&shown.value)));
    if let Some((by, tone)) = &shown.change {
        value.push(" ");
        value.push(change(by, *tone));
    }
    let row = (!shown.figures.is_empty()).then(|| figures(&shown.figures));
    let main = Element::new("div").child(label).child(value).children(age(shown));
    Element::classed("div", "headline").child(main).children(row)
}

fn change(by: &Amount, tone: Tone) -> Element {
    Element::classed("span", toned("change", tone)).children(sign(tone)).children(amount(by))
}

/// The figure's age when it was read, and its time.
fn age(shown: &Headline) -> Option<Element> {
    let as_of = shown.as_of.map(|at| Element::new("time").with("datetime", at.to_string()).text(time::second(at)));
    let old = shown.age_ms.map(freshness).as_ref().map(badge);
    let parts = spaced(old.into_iter().chain(as_of));
    (!parts.is_empty()).then(|| Element::classed("p", "age").children(parts))
}

/// An age as a badge.
pub fn freshness(age_ms: u64) -> Badge {
    let age = number::age(age_ms);
    let (label, tone, meaning) = match age_ms {
        ..FRESH_MS => (format!("{age} old"), Tone::Good, "current"),
        FRESH_MS..STALE_MS => (format!("{age} old"), Tone::Plain, "recent"),
        _ => (format!("stale, {age} old"), Tone::Warning, "it may have changed since"),
    };
    Badge { label, tone, meaning: Some(meaning.to_owned()) }
}

pub fn panel(panel: &Panel, hrefs: Hrefs<'_>) -> Element {
    let title = format!("panel-{}-title", panel.key);
    let class = match panel.width {
        Width::Half => "panel",
        Width::Whole => "panel whole",
    };
    let note = panel.note.clone().map(|note| Element::classed("p", "about").text(note));
    Element::classed("section", class)
        .with("data-region", format!("panel-{}", panel.key))
        .with("aria-labelledby", title.clone())
        .child(Element::new("h2").with("id", title).text(panel.title.clone()))
        .children(note)
        .child(content(panel, hrefs))
}

fn content(panel: &Panel, hrefs: Hrefs<'_>) -> Element {
    let slot = Slot { key: panel.key, width: panel.width };
    let words = |nodes| Element::classed("div", "words-of").children::<crate::Node>(nodes);
    match &panel.content {
        Content::Figures(shown) => figures(shown),
        Content::Table(shown) => table(shown, slot, hrefs),
        Content::Candles(shown) => candles(shown, slot),
        Content::Depth(shown) => depth(shown, slot),
        Content::Profile(shown) => profile(shown, slot),
        Content::Lines(shown) => lines(shown, slot),
        Content::Ladder(shown) => ladder(shown, slot),
        Content::Text(shown) => words(plain(shown)),
        Content::Markdown(shown) => words(markdown(shown)),
        Content::Missing(why) => empty_panel(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sample;

    fn head_html(shown: Headline) -> String {
        let board = Board { headline: Some(shown), ..sample::board() };
        regions(&board, &|id| format!("/data/{id}"))[0].element.to_string()
    }

    #[test]
    fn regions_have_keys_and_unique_ids() {
        let regions = regions(&sample::board(), &|id| format!("/data/{id}"));
        assert_eq!(regions[0].key, "head");
        let mut ids = BTreeSet::new();
        for region in &regions {
            let html = region.element.to_string();
            let root = html.split('>').next().unwrap_or_default();
            assert!(root.contains(&format!("data-region=\"{}\"", region.key)), "{root}");
            for id in html.split(" id=\"").skip(1) {
                let id = id.split('"').next().unwrap_or_default();
                assert!(ids.insert(id.to_owned()), "duplicate id {id}");
            }
            for named in html.split(" aria-labelledby=\"").skip(1) {
                let names = named.split('"').next().unwrap_or_default();
                assert!(names.split(' ').all(|name| ids.contains(name) || html.contains(&format!("id=\"{name}\""))));
            }
        }
    }

    #[test]
    fn head_shows_simulation_change_and_age() {
        insta::assert_snapshot!(head_html(sample::headline()).replace("><", ">\n<"));
    }

    #[test]
    fn old_values_are_stale() {
        for (age_ms, label, tone) in [
            (1_999, "1.9\u{a0}s old", Tone::Good),
            (2_000, "2.0\u{a0}s old", Tone::Plain),
            (14_999, "14\u{a0}s old", Tone::Plain),
            (15_000, "stale, 15\u{a0}s old", Tone::Warning),
        ] {
            let badge = freshness(age_ms);
            assert_eq!((badge.label.as_str(), badge.tone), (label, tone));
        }
        let unknown = Headline { as_of: None, age_ms: None, ..sample::headline() };
        assert!(!head_html(unknown).contains("class=\"age\""));
    }

    #[test]
    fn fall_has_arrow_sign_and_word() {
        let fell = Headline { change: Some((Amount::new("-1.5", "%"), Tone::Down)), ..sample::headline() };
        let html = head_html(fell);
        assert!(html.contains('▼') && html.contains("−1.5") && html.contains("down: "), "{html}");
    }
}
