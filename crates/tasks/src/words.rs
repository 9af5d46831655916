//! Which tasks a query is about.

use std::collections::BTreeSet;

use tribune_storage::Task;

/// Words that are not searched for.
const STOP_WORDS: [&str; 46] = [
    "a", "about", "all", "am", "an", "and", "any", "are", "at", "by", "can", "do", "for", "from", "have", "how", "i",
    "in", "is", "it", "list", "me", "my", "of", "on", "or", "our", "show", "task", "tasks", "that", "the", "there",
    "thing", "things", "to", "todo", "todos", "was", "we", "what", "which", "who", "with", "you", "your",
];
const MAX_WORDS: usize = 16;

/// The words of a query to search for, at most [`MAX_WORDS`].
pub fn search_words(query: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let words = tokens(query).filter(|word| !STOP_WORDS.contains(&word.as_str()));
    words.filter(|word| seen.insert(word.clone())).map(|word| stem(&word).to_owned()).take(MAX_WORDS).collect()
}

/// Removes an ending, so that `tomatoes` finds `tomato`.
fn stem(word: &str) -> &str {
    let long = |stem: &&str| stem.chars().count() >= 4;
    ["ing", "es", "s"].iter().find_map(|ending| word.strip_suffix(ending).filter(long)).unwrap_or(word)
}

fn tokens(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Whether a query mentions tasks.
pub fn means_tasks(query: &str) -> bool {
    tokens(query).any(|word| matches!(word.as_str(), "task" | "tasks" | "todo" | "todos"))
}

/// The share of the wanted words that begin a word of the task, from 0 to 1.
pub fn coverage(task: &Task, wanted: &[String]) -> f32 {
    let fields = [Some(&task.title), task.description.as_ref(), task.category.as_ref()];
    let words: Vec<String> = fields.into_iter().flatten().chain(&task.tags).flat_map(|field| tokens(field)).collect();
    let found = wanted.iter().filter(|part| words.iter().any(|word| word.starts_with(part.as_str()))).count();
    if wanted.is_empty() {
        return 1.0;
    }
    found as f32 / wanted.len() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_not_searched() {
        assert_eq!(search_words("What are my tasks about the Tomatoes, and tomatoes?"), ["tomato"]);
        assert_eq!(search_words("show me all my tasks"), Vec::<String>::new());
        assert!(means_tasks("show me all my tasks") && !means_tasks("what is there"));
        assert_eq!(search_words("Grüße ÄNDERN"), ["grüße", "ändern"]);
        assert_eq!(search_words(&"x y ".repeat(100)).len(), 2);
    }
}
