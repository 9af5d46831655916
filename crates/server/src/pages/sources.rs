//! The sources as cards: size, freshness and status of each.

use std::sync::Arc;

use jiff::Timestamp;
use tribune_core::{Links, Principal, Source, SourceFacts, SourceStatus};
use tribune_page::{Badge, Tone};
use tribune_page::{Element, Region};

use crate::identity::Caller;
use crate::service::Service;

/// The sources that a caller is shown, by name.
pub(super) fn shown(service: &Service, caller: &Caller) -> Vec<String> {
    let is_user = caller.principal != Principal::Anonymous;
    let shown = |source: &&Arc<dyn Source>| caller.may_use(&***source) && (is_user || !source.is_personal());
    service.sources().iter().filter(shown).map(|source| source.name().to_owned()).collect()
}

/// The part of the start page that is live, with these sources. Operators also see what is wrong with one: the reason may
/// name folders and addresses.
pub(super) fn region(service: &Service, names: &[String], is_operator: bool) -> Region {
    let shown = service.sources().iter().filter(|source| names.iter().any(|name| name == source.name()));
    let now = service.clock.now();
    let links = Links::new(service.links.path_prefix());
    let cards = shown.map(|source| card(service, source, &links, now, is_operator));
    Region {
        key: "sources".to_owned(),
        element: Element::new("ul").class("cards").with("data-region", "sources").children(cards),
    }
}

fn card(service: &Service, source: &Arc<dyn Source>, links: &Links, now: Timestamp, is_operator: bool) -> Element {
    let facts = source.facts();
    let status = service.status(&**source);
    let heading = Element::new("h3").text(facts.title.clone()).text(" ").child(tribune_page::badge(&health(&status)));
    let mut card = Element::new("li").class("card source").child(heading);
    if let Some(description) = &facts.description {
        card.push(Element::new("p").class("about").text(description.clone()));
    }
    card.push(extent(&facts, source.updated(), now));
    let problem = match status {
        SourceStatus::Ready => None,
        SourceStatus::Degraded(reason) | SourceStatus::Unready(reason) if is_operator => Some(reason),
        SourceStatus::Degraded(_) => Some("Some of it may be missing or out of date.".to_owned()),
        SourceStatus::Unready(_) => Some("It is not available now.".to_owned()),
    };
    if let Some(problem) = problem {
        card.push(Element::new("p").class("problem").text(problem));
    }
    card.push(links_line(&facts, links));
    card
}

fn health(status: &SourceStatus) -> Badge {
    let (label, tone) = match status {
        SourceStatus::Ready => ("ready", Tone::Good),
        SourceStatus::Degraded(_) => ("degraded", Tone::Warning),
        SourceStatus::Unready(_) => ("not ready", Tone::Bad),
    };
    Badge { label: label.to_owned(), tone, meaning: None }
}

/// Number of documents, their dates, and freshness.
fn extent(facts: &SourceFacts, updated: Option<Timestamp>, now: Timestamp) -> Element {
    let count = facts.counted().map(|count| Element::new("strong").text(count));
    let dates = facts.dates.map(|(first, last)| {
        let dates = if first == last { first.to_string() } else { format!("{first} to {last}") };
        Element::new("span").text(dates)
    });
    let time = updated.map(|updated| {
        Element::new("time")
            .with("datetime", updated.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
            .text(freshness(facts.live, updated, now))
    });
    let mut line = Element::new("p").class("facts num");
    for (at, part) in [count, dates, time].into_iter().flatten().enumerate() {
        if at > 0 {
            line.push(" · ");
        }
        line.push(part);
    }
    line
}

/// In steps, so that a live page does not change every second.
fn freshness(is_live: bool, updated: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(updated).as_secs().max(0);
    let word = if is_live { "confirmed" } else { "indexed" };
    match seconds {
        0..5 if is_live => "live".to_owned(),
        0..60 => format!("{word} less than a minute ago"),
        60..3600 => format!("{word} {} min ago", seconds / 60),
        3600..172_800 => format!("{word} {} h ago", seconds / 3600),
        _ => format!("{word} {}", updated.strftime("%-d %B %Y")),
    }
}

/// Links to the tools and to an example document.
fn links_line(facts: &SourceFacts, links: &Links) -> Element {
    let tools = Element::new("a").with("href", format!("{}/try/{}", links.base(), facts.name)).text("Tools");
    let mut line = Element::new("p").class("ways").child(tools);
    let example = facts.example_id.as_ref().filter(|id| !id.contains('…'));
    match example.and_then(|id| tribune_core::DocumentId::parse(id).ok()) {
        Some(id) => {
            let link = Element::new("a").with("href", links.citation(&id, None));
            line.push(link.child(Element::new("code").text(id.as_str().to_owned())));
        }
        None => line.push(Element::new("code").text(facts.ids())),
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_has_steps_and_ignores_the_future() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let now = at("2026-03-02T12:00:00Z");
        for (updated, is_live, expected) in [
            ("2026-03-02T11:59:58Z", true, "live"),
            ("2026-03-02T11:59:50Z", true, "confirmed less than a minute ago"),
            ("2026-03-02T11:59:58Z", false, "indexed less than a minute ago"),
            ("2026-03-02T12:00:09Z", false, "indexed less than a minute ago"),
            ("2026-03-02T11:30:00Z", false, "indexed 30 min ago"),
            ("2026-03-01T12:00:00Z", false, "indexed 24 h ago"),
            ("2026-02-20T12:00:00Z", false, "indexed 20 February 2026"),
        ] {
            assert_eq!(freshness(is_live, at(updated), now), expected, "{updated}");
        }
    }
}
