//! `/try`: every tool of every profile, with what a host sees of it, a form to call it, and the response.
//!
//! - [`listing`]: profiles and their tools;
//! - [`tool`]: one tool: the form, the confirmation before a change, the response;
//! - [`curl`]: the request as a command;
//! - [`answer`]: the response as text, structured and raw;

mod answer;
mod curl;
mod listing;
mod tool;

use minijinja::{Value, context};
use tribune_core::ToolSpec;
use tribune_core::wire::clip;

pub(crate) use listing::{all, profile};
pub(crate) use tool::tool;

/// The page of a profile, below `base`. Names of profiles and tools need no escaping.
fn profile_page(base: &str, profile: &str) -> String {
    format!("{base}/try/{profile}")
}

fn tool_page(base: &str, profile: &str, tool: &str) -> String {
    format!("{base}/try/{profile}/{tool}")
}

/// A tool for the templates.
fn shown(spec: &ToolSpec, base: &str, profile: &str) -> Value {
    let hints = spec.hints;
    context! {
        name => &spec.name,
        title => &spec.title,
        description => &spec.description,
        summary => first_sentence(&spec.description),
        page => tool_page(base, profile, &spec.name),
        reads => hints.read_only,
        destructive => hints.destructive,
        idempotent => hints.idempotent,
        open_world => hints.open_world,
    }
}

/// The first sentence of a description, which says the most.
fn first_sentence(text: &str) -> String {
    const MAX_CHARS: usize = 220;
    let line = text.lines().next().unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |stop| stop + 1);
    clip(&line[..end], MAX_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn summary_is_one_sentence_or_its_beginning() {
        assert_eq!(first_sentence("Adds a task. Use it often."), "Adds a task.");
        assert_eq!(first_sentence("Adds a task\nand more. Yes."), "Adds a task");
        assert_eq!(first_sentence(""), "");
        assert_eq!(first_sentence(&"é".repeat(300)).chars().count(), 221);
    }
}
