//! Which tasks a query is about.

use std::collections::BTreeSet;

use tribune_storage::Task;

/// Words that do not narrow a search for tasks.
const IDLE: [&str; 46] = [
    "a", "about", "all", "am", "an", "and", "any", "are", "at", "by", "can", "do", "for", "from", "have", "how", "i",
    "in", "is", "it", "list", "me", "my", "of", "on", "or", "our", "show", "task", "tasks", "that", "the", "there",
    "thing", "things", "to", "todo", "todos", "was", "we", "what", "which", "who", "with", "you", "your",
];
const MAX_WORDS: usize = 16;

/// The words of a query to search for, at most [`MAX_WORDS`].
pub fn asked(query: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let words = tokens(query).filter(|word| !IDLE.contains(&word.as_str()));
    words.filter(|word| seen.insert(word.clone())).map(|word| stem(&word).to_owned()).take(MAX_WORDS).collect()
}

/// The part of a word that its forms share: `tomatoes` and `tomato` are one.
fn stem(word: &str) -> &str {
    let long = |stem: &&str| stem.chars().count() >= 4;
    ["ing", "es", "s"].iter().find_map(|ending| word.strip_suffix(ending).filter(long)).unwrap_or(word)
}

fn tokens(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Whether a query says that it is about tasks, whatever else it says.
pub fn means_tasks(query: &str) -> bool {
    tokens(query).any(|word| matches!(word.as_str(), "task" | "tasks" | "todo" | "todos"))
}

/// How much of what is asked for begins a word of the task, from 0 to 1.
pub fn coverage(task: &Task, asked: &[String]) -> f32 {
    let fields = [Some(&task.title), task.description.as_ref(), task.category.as_ref()];
    let words: Vec<String> = fields.into_iter().flatten().chain(&task.tags).flat_map(|field| tokens(field)).collect();
    let found = asked.iter().filter(|wanted| words.iter().any(|word| word.starts_with(wanted.as_str()))).count();
    if asked.is_empty() {
        return 1.0;
    }
    found as f32 / asked.len() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_words_ask_for_nothing() {
        assert_eq!(asked("What are my tasks about the Tomatoes, and tomatoes?"), ["tomato"]);
        assert_eq!(asked("show me all my tasks"), Vec::<String>::new());
        assert!(means_tasks("show me all my tasks") && !means_tasks("what is there"));
        assert_eq!(asked("Grüße ÄNDERN"), ["grüße", "ändern"]);
        assert_eq!(asked(&"x y ".repeat(100)).len(), 2);
    }
}
