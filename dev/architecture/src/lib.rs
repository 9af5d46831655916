//! Reads the module graph of a crate from its source: which top-level module refers to which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// For each top-level module of a crate, the others that it refers to, each with one file that does.
pub type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// Reads the crate in `folder`, by `src/lib.rs` or `src/main.rs`. Test code is ignored.
pub fn module_graph(folder: &Path) -> Graph {
    let src = folder.join("src");
    let root = ["lib.rs", "main.rs"].map(|name| src.join(name));
    let Some(root) = root.iter().find(|path| path.is_file()) else {
        return Graph::new();
    };
    let text = std::fs::read_to_string(root).unwrap_or_default();
    let names = RootNames::new(&tokens(&text));
    let mut graph: Graph = names.modules.iter().map(|name| (name.clone(), BTreeMap::new())).collect();
    for module in &names.modules {
        let mut files = Vec::new();
        collect(&src.join(format!("{module}.rs")), vec![module.clone()], &mut files);
        collect(&src.join(module), vec![module.clone()], &mut files);
        for (path, file) in files {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            for name in root_references(&tokens(&text), &path) {
                let target = names.module_of(&name).filter(|target| target != module);
                if let (Some(target), Some(edges)) = (target, graph.get_mut(module)) {
                    edges.entry(target).or_insert_with(|| file.display().to_string());
                }
            }
        }
    }
    graph
}

/// A cycle of the graph, if there is one: the modules in order.
pub fn find_cycle(graph: &Graph) -> Option<Vec<String>> {
    fn visit<'g>(
        graph: &'g Graph,
        at: &'g str,
        path: &mut Vec<&'g str>,
        done: &mut BTreeSet<&'g str>,
    ) -> Option<usize> {
        if let Some(start) = path.iter().position(|module| *module == at) {
            return Some(start);
        }
        if !done.insert(at) {
            return None;
        }
        path.push(at);
        for next in graph.get(at).into_iter().flat_map(|edges| edges.keys()) {
            if let Some(start) = visit(graph, next, path, done) {
                return Some(start);
            }
        }
        path.pop();
        None
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|module| {
        let mut path = Vec::new();
        let start = visit(graph, module, &mut path, &mut done)?;
        Some(path[start..].iter().map(|module| (*module).to_owned()).collect())
    })
}

/// Files of a module and its submodules, each with its module path.
fn collect(at: &Path, path: Vec<String>, files: &mut Vec<(Vec<String>, std::path::PathBuf)>) {
    if at.is_file() {
        files.push((path, at.to_owned()));
        return;
    }
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        let entry = entry.path();
        let name = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_rust = entry.is_dir() || entry.extension().is_some_and(|end| end == "rs");
        if !is_rust || name == "tests" {
            continue;
        }
        let mut inner = path.clone();
        if name != "mod" {
            inner.push(name);
        }
        collect(&entry, inner, files);
    }
}

/// What the names at the root of a crate lead to.
struct RootNames {
    modules: BTreeSet<String>,
    /// Re-exported names, and the module they come from.
    exports: BTreeMap<String, String>,
}

impl RootNames {
    fn new(tokens: &[String]) -> Self {
        let mut modules = BTreeSet::new();
        for three in tokens.windows(3) {
            if three[0] == "mod" && three[2] == ";" {
                modules.insert(three[1].clone());
            }
        }
        let mut exports = BTreeMap::new();
        for (at, token) in tokens.iter().enumerate() {
            let is_statement = at == 0 || matches!(tokens[at - 1].as_str(), ";" | "}" | "pub" | ")" | "]");
            if token != "use" || !is_statement {
                continue;
            }
            let end = tokens[at..].iter().position(|token| token == ";").unwrap_or(0) + at;
            let mut tree = &tokens[at + 1..end];
            if matches!(tree.first().map(String::as_str), Some("crate" | "self")) {
                tree = &tree[2.min(tree.len())..];
            }
            let Some(module) = tree.first().filter(|name| modules.contains(*name)) else {
                continue;
            };
            for (place, name) in tree.iter().enumerate().skip(1) {
                let ends = tree.get(place + 1).is_none_or(|next| matches!(next.as_str(), "," | "}"));
                if ends && is_identifier(name) {
                    exports.insert(name.clone(), module.clone());
                }
            }
        }
        Self { modules, exports }
    }

    fn module_of(&self, name: &str) -> Option<String> {
        if self.modules.contains(name) {
            return Some(name.to_owned());
        }
        self.exports.get(name).cloned()
    }
}

/// The names right below the crate's root that a file refers to: `a` in `crate::a::B`, `super::a` or `crate::{a, b}`.
fn root_references(tokens: &[String], file: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // One entry for each open brace: the inline module that it belongs to.
    let mut braces: Vec<Option<String>> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or("", |before| tokens[before].as_str());
        match tokens[at].as_str() {
            "mod" if tokens.get(at + 2).is_some_and(|next| next == "{") => {
                if is_test_module(tokens, at) {
                    at = block_end(tokens, at + 2);
                    continue;
                }
                braces.push(Some(tokens[at + 1].clone()));
                at += 2;
            }
            "{" => braces.push(None),
            "}" => drop(braces.pop()),
            start @ ("crate" | "super") if before != "::" && tokens.get(at + 1).is_some_and(|next| next == "::") => {
                let inline = braces.iter().flatten().cloned();
                let mut path: Vec<String> = file.iter().cloned().chain(inline).collect();
                if start == "crate" {
                    path.clear();
                } else {
                    path.pop();
                }
                let mut next = at + 2;
                while tokens.get(next).is_some_and(|token| token == "super") {
                    path.pop();
                    next += 2;
                }
                if path.is_empty() {
                    first_names(tokens, next, &mut found);
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn is_test_module(tokens: &[String], at: usize) -> bool {
    let before = &tokens[at.saturating_sub(8)..at];
    let words: Vec<&str> = before.iter().map(String::as_str).collect();
    words.windows(3).any(|three| three == ["cfg", "(", "test"])
}

/// The token after the brace that closes the one at `open`.
fn block_end(tokens: &[String], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The name at `at`, or the first names of each branch of a group.
fn first_names(tokens: &[String], at: usize, found: &mut BTreeSet<String>) {
    match tokens.get(at) {
        Some(name) if is_identifier(name) => {
            found.insert(name.clone());
        }
        Some(brace) if brace == "{" => {
            let end = block_end(tokens, at) - 1;
            let mut depth = 0;
            for place in at..end {
                match tokens[place].as_str() {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    name if depth == 1 && is_identifier(name) => {
                        if matches!(tokens[place - 1].as_str(), "{" | ",") {
                            found.insert(name.to_owned());
                        }
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Identifiers, `::` and single characters of Rust source, without comments, strings and white space.
fn tokens(source: &str) -> Vec<String> {
    let text: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        match rest {
            ['/', '/', ..] => at += rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => at += comment_length(rest),
            ['"', ..] => at += string_length(rest),
            // The character after the backslash may be a quote.
            ['\'', '\\', _, escaped @ ..] => {
                at += 4 + escaped.iter().position(|c| *c == '\'').unwrap_or(escaped.len());
            }
            ['\'', _, '\'', ..] => at += 3,
            [first, ..] if first.is_alphanumeric() || *first == '_' => {
                let length = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
                let word: String = rest[..length].iter().collect();
                at += length;
                let is_raw = matches!(word.as_str(), "r" | "br" | "cr");
                match raw_string_length(&text[at..]).filter(|_| is_raw) {
                    Some(length) => at += length,
                    None => tokens.push(word),
                }
            }
            [':', ':', ..] => {
                tokens.push("::".to_owned());
                at += 2;
            }
            [space, ..] if space.is_whitespace() => at += 1,
            [other, ..] => {
                tokens.push(other.to_string());
                at += 1;
            }
            [] => break,
        }
    }
    tokens
}

/// Block comments nest.
fn comment_length(text: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        match &text[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

fn string_length(text: &[char]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Of what follows the `r`: `#"…"#`.
fn raw_string_length(text: &[char]) -> Option<usize> {
    let hashes = text.iter().take_while(|c| **c == '#').count();
    (text.get(hashes) == Some(&'"')).then(|| {
        let mut at = hashes + 1;
        while at < text.len() {
            let closes = text[at] == '"' && text[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
            if closes {
                return at + 1 + hashes;
            }
            at += 1;
        }
        text.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(source: &str, file: &[&str]) -> Vec<String> {
        let file: Vec<String> = file.iter().map(|part| (*part).to_owned()).collect();
        root_references(&tokens(source), &file).into_iter().collect()
    }

    #[test]
    fn paths_to_the_root_are_found() {
        assert_eq!(references("use crate::a::{B, c::D};", &["x"]), ["a"]);
        assert_eq!(references("use crate::{a::{B, C}, d, E};", &["x"]), ["E", "a", "d"]);
        assert_eq!(references("use super::a; fn f() { super::super::b::g() }", &["x", "y"]), ["b"]);
        assert_eq!(references("use super::a;", &["x"]), ["a"]);
        assert_eq!(references("mod inner { use super::a; use super::super::b; }", &["x"]), ["b"]);
        assert_eq!(references("pub(crate) fn f(x: crate::a::B) {}", &["x"]), ["a"]);
    }

    #[test]
    fn comments_strings_and_tests_are_ignored() {
        let source = r##"
            // crate::a
            /* crate::b /* crate::c */ crate::d */
            const A: &str = "crate::e";
            const B: &str = r#"crate::f""#;
            const C: char = '"'; const D: char = '\'';
            fn f<'a>(x: &'a str) { crate::g::h(x) }
            #[cfg(test)]
            mod tests { use crate::i; }
        "##;
        assert_eq!(references(source, &["x"]), ["g"]);
    }

    #[test]
    fn re_exports_lead_to_their_module() {
        let root = tokens("mod a; pub mod b; pub use a::{One, deep::Two as Three}; use b::Four;");
        let names = RootNames::new(&root);
        let module = |name: &str| names.module_of(name).unwrap_or_default();
        assert_eq!(["a", "One", "Three", "Four", "Other"].map(module), ["a", "a", "a", "b", ""]);
    }

    #[test]
    fn cycles_are_found() {
        let graph = |edges: &[(&str, &str)]| {
            let mut graph = Graph::new();
            for (from, to) in edges {
                graph.entry((*to).to_owned()).or_default();
                let from = graph.entry((*from).to_owned()).or_default();
                from.insert((*to).to_owned(), String::new());
            }
            graph
        };
        assert_eq!(find_cycle(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
        let cycle = find_cycle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")]));
        assert_eq!(cycle, Some(vec!["b".to_owned(), "c".to_owned()]));
    }
}
