//! Source code: the text as it is, with the places where definitions begin.

use std::sync::LazyLock;

use regex::Regex;

use super::Found;
use crate::extracted::{Extracted, Place};

pub(super) const EXTENSIONS: &[&str] = &[
    "rs", "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "tsx", "go", "java", "kt", "kts", "scala", "swift", "c", "h",
    "cc", "cpp", "cxx", "hpp", "hh", "cs", "fs", "rb", "php", "pl", "pm", "lua", "r", "jl", "hs", "ml", "mli", "ex",
    "exs", "erl", "clj", "el", "lisp", "sh", "bash", "zsh", "fish", "ps1", "sql", "proto", "graphql", "css", "scss",
    "less", "vue", "svelte", "dart", "zig", "nim", "tf", "toml", "ini", "cfg", "gradle", "cmake", "mk",
];

const MAX_NAME_CHARS: usize = 60;

/// A definition at the beginning of a line: its keyword and its name.
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|async|unsafe|extern|override|open|data|sealed|inline|const)\s+)*(fn|def|class|struct|enum|trait|interface|impl|func|function|fun|module|mod|object|type|record|namespace|CREATE\s+(?:TABLE|VIEW|FUNCTION))\s+(?:<[^>]*>\s*)?([\w$.:<>, ]*\w)",
    )
    .expect("a pattern")
});

pub(super) fn read(text: String) -> Found {
    let mut at = 0;
    let mut places = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(found) = DEFINITION.captures(line.trim_end()) {
            let name: String = found[2].trim().chars().take(MAX_NAME_CHARS).collect();
            places.push(Place { at, label: format!("{} {name}", &found[1]) });
        }
        at += line.len();
    }
    Ok(Extracted { text, places, ..Extracted::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_places() {
        let source = "use x;\n\npub async fn build(a: u8) {}\n\nclass Tide(Base):\n    def inner(self): pass\n";
        let places = read(source.to_owned()).expect("code").places;
        let labels: Vec<&str> = places.iter().map(|place| place.label.as_str()).collect();
        assert_eq!(labels, ["fn build", "class Tide"]);
    }
}
