//! Tool descriptions with the current facts of the sources.
//!
//! Each says when to use the tool, when not, what it covers (with counts and dates), how it chains, what its parameters
//! take, and why to prefer it. The most important part comes first, because hosts cut descriptions.

use minijinja::{Environment, context};
use tribune_core::SourceFacts;
use tribune_core::wire::clip;
use tribune_registry::lint::MAX_DESCRIPTION_CHARS;

pub(super) const SEARCH: &str = include_str!("../../templates/search.txt");
pub(super) const FETCH: &str = include_str!("../../templates/fetch.txt");
pub(super) const RELATED: &str = include_str!("../../templates/related.txt");

/// The first sentence of the server's instructions.
pub(crate) fn overview(sources: &[SourceFacts]) -> String {
    format!("{}: {}.", collection(sources), scope(sources, 4))
}

/// Renders with as many details as fit.
pub(super) fn describe(template: &str, sources: &[SourceFacts]) -> String {
    let mut rendered = String::new();
    for (most_sources, most_fields, about) in [(6, 8, 200), (4, 6, 100), (2, 3, 0), (1, 0, 0)] {
        rendered = render_with(template, sources, most_sources, most_fields, about);
        if rendered.chars().count() <= MAX_DESCRIPTION_CHARS {
            return rendered;
        }
    }
    clip(&rendered, MAX_DESCRIPTION_CHARS - 1).into_owned()
}

fn render_with(
    template: &str,
    sources: &[SourceFacts],
    most_sources: usize,
    most_fields: usize,
    about_chars: usize,
) -> String {
    let about: Vec<&str> =
        sources.iter().filter_map(|source| source.description.as_deref()).filter(|_| about_chars > 0).collect();
    let about = about.join("; ");
    let example = sources.first().map_or_else(|| "source:…".to_owned(), SourceFacts::ids);
    let values = context! {
        collection => collection(sources),
        scope => scope(sources, most_sources),
        nouns => nouns(sources),
        about => clip(about.trim_end_matches('.'), about_chars),
        fields => fields(sources, most_fields),
        live => !sources.is_empty() && sources.iter().all(|source| source.live),
        example => format!("`{example}`"),
    };
    let rendered = Environment::new().render_str(template, values);
    // The tests render every template; a plain description is better than no server.
    rendered.map_or_else(|_| overview(sources), |text| text.trim_end().to_owned())
}

fn collection(sources: &[SourceFacts]) -> String {
    match sources {
        [] => "an empty collection".to_owned(),
        [one] => clip(&one.title, 80).into_owned(),
        [first, second] => format!("{} and {}", clip(&first.title, 60), clip(&second.title, 60)),
        many => format!("{} and {} more sources", clip(&many[0].title, 60), many.len() - 1),
    }
}

/// For each source: `Field notes (12 documents, 2024-05-28 to 2025-10-09)`.
fn scope(sources: &[SourceFacts], most: usize) -> String {
    let mut parts: Vec<String> = sources.iter().take(most).map(|source| extent(source, sources.len() > 1)).collect();
    if sources.len() > most {
        parts.push(format!("and {} more sources", sources.len() - most));
    }
    if parts.is_empty() {
        return "no sources are configured".to_owned();
    }
    parts.join(", ")
}

fn extent(source: &SourceFacts, named: bool) -> String {
    let count = source.counted().unwrap_or_else(|| source.noun.clone());
    let extent = match source.dates {
        Some((first, last)) if first == last => format!("{count}, {first}"),
        Some((first, last)) => format!("{count}, {first} to {last}"),
        None => count,
    };
    if named { format!("{} ({extent})", clip(&source.title, 60)) } else { extent }
}

fn nouns(sources: &[SourceFacts]) -> String {
    let mut nouns: Vec<&str> = sources.iter().map(|source| source.noun.as_str()).collect();
    nouns.sort_unstable();
    nouns.dedup();
    match nouns.as_slice() {
        [one] => (*one).to_owned(),
        _ => "sources".to_owned(),
    }
}

fn fields(sources: &[SourceFacts], most: usize) -> String {
    let plain = |name: &&String| {
        let fit = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        !name.is_empty() && name.len() <= 30 && name.chars().all(fit)
    };
    let mut names = vec!["title"];
    for name in sources.iter().flat_map(|source| &source.fields).filter(plain) {
        if names.len() >= most {
            break;
        }
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.truncate(most);
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts(name: &str, title: &str, documents: u64) -> SourceFacts {
        SourceFacts {
            name: name.to_owned(),
            title: title.to_owned(),
            description: Some("Speeches of one member on housing, water and rail.".to_owned()),
            noun: "documents".to_owned(),
            documents: Some(documents),
            dates: Some((jiff::civil::date(2024, 5, 28), jiff::civil::date(2025, 10, 9))),
            example_id: None,
            live: false,
            fields: vec!["speaker".to_owned(), "party".to_owned()],
        }
    }

    #[test]
    fn description_begins_with_count_and_dates() {
        insta::assert_snapshot!(describe(SEARCH, &[facts("hansard", "the speeches of the member for Cook", 64)]));
    }

    #[test]
    fn several_sources_are_each_named() {
        insta::assert_snapshot!(describe(FETCH, &[facts("a", "Field notes", 12_345), facts("b", "Minutes", 1)]));
    }

    proptest! {
        #[test]
        fn descriptions_stay_within_host_limits(titles in proptest::collection::vec("\\PC{0,200}", 0..12), count in any::<u64>()) {
            let sources: Vec<SourceFacts> = titles.iter().map(|title| facts("x", title, count)).collect();
            for text in [describe(SEARCH, &sources), describe(FETCH, &sources)] {
                prop_assert!(text.chars().count() <= MAX_DESCRIPTION_CHARS);
                prop_assert!(!text.is_empty());
            }
        }
    }
}
