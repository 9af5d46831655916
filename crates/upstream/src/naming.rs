//! Tool names that every host accepts: `[a-z][a-z0-9_]*`, at most 50 characters, unique.

use std::collections::HashSet;

use tribune_registry::lint::MAX_NAME_CHARS;

/// The preferred name of a tool: the server's name, then the tool's own in snake case.
pub(crate) fn prefixed(server: &str, tool: &str) -> String {
    let own = snake_case(tool);
    let own = if own.is_empty() { "tool" } else { &own };
    let mut name = format!("{server}_{own}");
    name.truncate(MAX_NAME_CHARS);
    name.trim_end_matches('_').to_owned()
}

/// `wanted`, with a number appended if it is in `taken`; adds the result to `taken`.
pub(crate) fn unique(wanted: &str, taken: &mut HashSet<String>) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2_u32;
    while !taken.insert(name.clone()) {
        let suffix = format!("_{number}");
        let length = wanted.len().min(MAX_NAME_CHARS.saturating_sub(suffix.len()));
        name = format!("{}{suffix}", &wanted[..length]);
        number = number.saturating_add(1);
    }
    name
}

/// `getUser-by.ID` becomes `get_user_by_id`. The result is ASCII, so it can be cut at any byte.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut before = '_';
    for c in name.chars() {
        let starts_word = c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if (starts_word || !c.is_ascii_alphanumeric()) && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        if c.is_ascii_alphanumeric() {
            snake.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    snake.truncate(snake.trim_end_matches('_').len());
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn remote_names_become_snake_case() {
        assert_eq!(prefixed("gh", "search_issues"), "gh_search_issues");
        assert_eq!(prefixed("gh", "getUser-by.ID"), "gh_get_user_by_id");
        assert_eq!(prefixed("gh", "HTTPGet"), "gh_httpget");
        assert_eq!(prefixed("gh", "__x__"), "gh_x");
        assert_eq!(prefixed("gh", "2048"), "gh_2048");
        assert_eq!(prefixed("gh", "поиск"), "gh_tool");
        assert_eq!(prefixed("a", &"x".repeat(99)), format!("a_{}", "x".repeat(48)));
    }

    #[test]
    fn duplicate_names_get_a_number() {
        let mut taken = HashSet::new();
        let long = "y".repeat(MAX_NAME_CHARS);
        let names: Vec<String> =
            ["a_b", "a_b", "a_b_2", "a_b", &long, &long].iter().map(|wanted| unique(wanted, &mut taken)).collect();
        let shortened = format!("{}_2", "y".repeat(48));
        assert_eq!(names, ["a_b", "a_b_2", "a_b_2_2", "a_b_3", &long, &shortened]);
    }

    proptest! {
        #[test]
        fn names_always_fit(server in "[a-z][a-z0-9_]{0,19}", tools in prop::collection::vec(any::<String>(), 1..20)) {
            let mut taken = HashSet::new();
            let names: Vec<String> = tools.iter().map(|tool| unique(&prefixed(&server, tool), &mut taken)).collect();
            for name in &names {
                prop_assert!(name.len() <= MAX_NAME_CHARS);
                prop_assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{}", name);
                prop_assert!(name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_'));
            }
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        }
    }
}
