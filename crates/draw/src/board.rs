//! A board as regions, each of which a live page renews as a whole.

use tribune_core::Links;
use tribune_core::view::{Amount, Badge, Board, Content, Headline, Panel, Tone, Width};

use crate::candles::candles;
use crate::chart::{Place, nothing, spaced};
use crate::depth::depth;
use crate::figures::{amount, figures, sign, tone_class};
use crate::ladder::ladder;
use crate::lines::lines;
use crate::profile::profile;
use crate::table::table;
use crate::{Element, number, text, time};

/// A part of a board's page that a live page renews as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// `head`, or `panel-` and the panel's key; also `data-region` of the element.
    pub key: String,
    pub element: Element,
}

/// What is younger is as good as now; what is older than the second is stale.
const FRESH_MS: u64 = 2_000;
const STALE_MS: u64 = 15_000;

/// The head, and then every panel.
pub fn regions(board: &Board, links: &Links) -> Vec<Region> {
    let head = Region {
        key: "head".to_owned(),
        element: head(board),
    };
    let panels = board.panels.iter().map(|shown| Region {
        key: format!("panel-{}", shown.key),
        element: panel(shown, links),
    });
    std::iter::once(head).chain(panels).collect()
}

fn head(board: &Board) -> Element {
    let badges = (!board.badges.is_empty()).then(|| {
        Element::new("p")
            .class("badges")
            .children(spaced(board.badges.iter().map(badge)))
    });
    let notes = board
        .notes
        .iter()
        .map(|note| Element::new("p").class("note").with("dir", "auto").text(note.clone()));
    Element::new("div")
        .class("board-head")
        .with("data-region", "head")
        .children(badges)
        .children(board.headline.as_ref().map(headline))
        .children(notes)
}

pub fn badge(badge: &Badge) -> Element {
    let class = tone_class(badge.tone).map_or("badge".to_owned(), |tone| format!("badge {tone}"));
    let element = Element::new("span").class(class);
    match &badge.meaning {
        Some(meaning) => element
            .with("title", meaning.clone())
            .text(badge.label.clone())
            .child(Element::new("span").class("unseen").text(format!(": {meaning}"))),
        None => element.text(badge.label.clone()),
    }
}

fn headline(shown: &Headline) -> Element {
    let label = Element::new("p").class("label").text(shown.label.clone());
    let mut value = Element::new("p")
        .class("price")
        .child(Element::new("span").class("figure").children(amount(&shown.value)));
    if let Some((by, tone)) = &shown.change {
        value.push(" ");
        value.push(change(by, *tone));
    }
    let row = (!shown.figures.is_empty()).then(|| figures(&shown.figures));
    let main = Element::new("div").child(label).child(value).children(age(shown));
    Element::new("div").class("headline").child(main).children(row)
}

fn change(by: &Amount, tone: Tone) -> Element {
    let class = tone_class(tone).map_or("change".to_owned(), |tone| format!("change {tone}"));
    Element::new("span")
        .class(class)
        .children(sign(tone))
        .children(amount(by))
}

/// How old the figure was when it was read, and from when it is.
fn age(shown: &Headline) -> Option<Element> {
    let as_of = shown.as_of.map(|at| {
        Element::new("time")
            .with("datetime", at.to_string())
            .text(time::second(at))
    });
    let old = shown.age_ms.map(freshness).as_ref().map(badge);
    if as_of.is_none() && old.is_none() {
        return None;
    }
    Some(
        Element::new("p")
            .class("age")
            .children(spaced(old.into_iter().chain(as_of))),
    )
}

/// An age in words, with how to take it.
pub fn freshness(age_ms: u64) -> Badge {
    let age = number::age(age_ms);
    let (label, tone, meaning) = match age_ms {
        ..FRESH_MS => (format!("{age} old"), Tone::Good, "as good as now"),
        ..STALE_MS => (format!("{age} old"), Tone::Plain, "recent"),
        _ => (format!("stale, {age} old"), Tone::Warning, "it may have changed since"),
    };
    Badge {
        label,
        tone,
        meaning: Some(meaning.to_owned()),
    }
}

pub fn panel(panel: &Panel, links: &Links) -> Element {
    let title = format!("panel-{}-title", panel.key);
    let class = match panel.width {
        Width::Half => "panel",
        Width::Whole => "panel whole",
    };
    let note = panel
        .note
        .clone()
        .map(|note| Element::new("p").class("about").text(note));
    Element::new("section")
        .class(class)
        .with("data-region", format!("panel-{}", panel.key))
        .with("aria-labelledby", title.clone())
        .child(Element::new("h2").with("id", title).text(panel.title.clone()))
        .children(note)
        .child(content(panel, links))
}

fn content(panel: &Panel, links: &Links) -> Element {
    let place = Place {
        key: panel.key,
        width: panel.width,
    };
    let words = |nodes| Element::new("div").class("words-of").children::<crate::Node>(nodes);
    match &panel.content {
        Content::Figures(shown) => figures(shown),
        Content::Table(shown) => table(shown, place, links),
        Content::Candles(shown) => candles(shown, place),
        Content::Depth(shown) => depth(shown, place),
        Content::Profile(shown) => profile(shown, place),
        Content::Lines(shown) => lines(shown, place),
        Content::Ladder(shown) => ladder(shown, place),
        Content::Text(shown) => words(text::plain(shown)),
        Content::Markdown(shown) => words(text::markdown(shown)),
        Content::Missing(why) => nothing(why.clone()),
    }
}
