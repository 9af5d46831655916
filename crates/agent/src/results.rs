//! What a tool's answer is worth beyond its text: a few words for a person, and what it can be cited by.

use serde_json::Value;
use tribune_core::ToolOutput;

use crate::chat::Citation;
use crate::text::{clip, plain};

pub(crate) const MAX_PREVIEW_CHARS: usize = 200;
const MAX_CITATIONS: usize = 20;
/// Of an answer that names none of them.
const MAX_UNNAMED: usize = 5;
/// Shorter titles stand in other words too.
const MIN_TITLE_CHARS: usize = 4;
const MAX_TITLE_CHARS: usize = 300;
const MAX_URL_BYTES: usize = 2048;

/// Lists that answers hold, and what one thing in them is called.
const LISTS: [(&str, &str); 2] = [("tasks", "task"), ("results", "result")];

/// A few words about an answer: how many things, or what it is called, or how it begins; never ids.
pub(crate) fn preview(output: &ToolOutput, answer: &Value) -> String {
    let words = counted(answer)
        .or_else(|| title(answer).map(str::to_owned))
        .or_else(|| output.own_text().map(str::to_owned))
        .or_else(|| (output.count > 0).then(|| count(output.count as u64, "result")));
    let words = clip(&plain(&words.unwrap_or_default()), MAX_PREVIEW_CHARS);
    if words.is_empty() { "done".to_owned() } else { words }
}

fn counted(answer: &Value) -> Option<String> {
    LISTS.iter().find_map(|(list, thing)| {
        let here = answer[*list].as_array()?.len() as u64;
        Some(match answer["total"].as_u64().filter(|total| *total > here) {
            Some(total) => format!("{here} of {}", count(total, thing)),
            None => count(here, thing),
        })
    })
}

fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Of the answer itself, or of the one thing that it holds.
fn title(answer: &Value) -> Option<&str> {
    let own = |value: &'_ Value| value["title"].as_str().is_some_and(|title| !title.trim().is_empty());
    let holder = if own(answer) {
        answer
    } else {
        answer.as_object()?.values().find(|value| own(value))?
    };
    holder["title"].as_str()
}

/// Adds what an answer can be cited by, each address once.
pub(crate) fn collect_citations(answer: &Value, citations: &mut Vec<Citation>) {
    // The user's own list is no source of what is said about it, and what is gone cannot be opened.
    if answer["deleted"] == true || answer["tasks"].is_array() {
        return;
    }
    let listed = answer["results"].as_array().into_iter().flatten();
    for citation in std::iter::once(answer).chain(listed).filter_map(citation) {
        add_citation(citation, citations);
    }
}

pub(crate) fn add_citation(citation: Citation, citations: &mut Vec<Citation>) {
    if citations.len() < MAX_CITATIONS && citations.iter().all(|known| known.url != citation.url) {
        citations.push(citation);
    }
}

/// Those that an answer names, by address or title. One that names none may rest on any of the first.
pub(crate) fn behind(answer: &str, mut citations: Vec<Citation>) -> Vec<Citation> {
    let said = answer.to_lowercase();
    let is_named = |citation: &Citation| {
        let title = citation.title.to_lowercase();
        answer.contains(&citation.url) || (title.chars().count() >= MIN_TITLE_CHARS && said.contains(&title))
    };
    if citations.iter().any(is_named) {
        citations.retain(is_named);
    } else {
        citations.truncate(MAX_UNNAMED);
    }
    citations
}

fn citation(thing: &Value) -> Option<Citation> {
    let url = thing["url"].as_str().filter(|url| is_link(url))?;
    let title = clip(&plain(thing["title"].as_str()?), MAX_TITLE_CHARS);
    (!title.is_empty()).then(|| Citation {
        title,
        url: url.to_owned(),
    })
}

/// An address that a page may link to as it stands.
fn is_link(url: &str) -> bool {
    let plain = url.len() <= MAX_URL_BYTES && !url.contains(|c: char| c.is_whitespace() || c.is_control());
    let parsed = plain.then(|| reqwest::Url::parse(url).ok()).flatten();
    parsed.is_some_and(|url| matches!(url.scheme(), "http" | "https"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn preview_of(answer: &Value) -> String {
        preview(&ToolOutput::structured(answer, 0).expect("an answer"), answer)
    }

    #[test]
    fn a_preview_says_how_many_or_which() {
        assert_eq!(preview_of(&json!({"results": [1, 2, 3]})), "3 results");
        assert_eq!(preview_of(&json!({"tasks": [1]})), "1 task");
        assert_eq!(preview_of(&json!({"tasks": [1, 2], "total": 12})), "2 of 12 tasks");
        assert_eq!(preview_of(&json!({"id": "x", "title": "Buy milk"})), "Buy milk");
        assert_eq!(
            preview_of(&json!({"status": "ok", "task": {"id": 1, "title": "Buy\n milk"}})),
            "Buy milk"
        );
        assert_eq!(preview_of(&json!({"ok": true})), "done");
        let long = preview_of(&json!({"title": "x".repeat(500)}));
        assert_eq!(long.chars().count(), MAX_PREVIEW_CHARS);
    }

    #[test]
    fn a_preview_shows_no_ids() {
        let output =
            ToolOutput::from_json("{}".into(), 0).with_text("deleted 018f6b1e-7c1d-7aaa-8bbb-0123456789ab".into());
        assert_eq!(preview(&output, &json!({})), "deleted …");
    }

    #[test]
    fn an_answer_is_cited_by_what_it_names_or_else_by_the_first() {
        let cited = |number: usize| Citation {
            title: format!("Title {number:02}"),
            url: format!("https://example.org/{number:02}"),
        };
        let all: Vec<Citation> = (0..10).map(cited).collect();
        assert_eq!(
            behind("See title 03 and https://example.org/07.", all.clone()),
            [cited(3), cited(7)]
        );
        assert_eq!(behind("See above.", all.clone()), all[..MAX_UNNAMED]);
        assert_eq!(behind("See above.", Vec::new()), []);
    }

    #[test]
    fn citations_are_links_with_titles_each_once() {
        let mut citations = Vec::new();
        let answer = json!({
            "title": "Top", "url": "https://example.org/top",
            "results": [
                {"title": "One", "url": "http://example.org/1"},
                {"title": "Again", "url": "http://example.org/1"},
                {"title": "Script", "url": "javascript:alert(1)"},
                {"title": "Broken", "url": "http://example.org/\nx"},
                {"title": "  ", "url": "http://example.org/2"},
                {"url": "http://example.org/3"},
                {"title": 4, "url": ["x"]},
                "text",
            ],
        });
        collect_citations(&answer, &mut citations);
        let found: Vec<_> = citations.iter().map(|c| (c.title.as_str(), c.url.as_str())).collect();
        assert_eq!(
            found,
            [("Top", "https://example.org/top"), ("One", "http://example.org/1")]
        );
        let task = json!({"title": "Two", "url": "http://example.org/2"});
        for own in [
            json!({"tasks": [task]}),
            json!({"title": "Two", "url": "http://example.org/2", "deleted": true}),
        ] {
            let mut citations = Vec::new();
            collect_citations(&own, &mut citations);
            assert_eq!(citations, []);
        }
    }

    #[test]
    fn citations_are_bounded() {
        let many: Vec<Value> = (0..50)
            .map(|n| json!({"title": "t", "url": format!("https://example.org/{n}")}))
            .collect();
        let mut citations = Vec::new();
        collect_citations(&json!({"results": many}), &mut citations);
        assert_eq!(citations.len(), MAX_CITATIONS);
    }
}
