//! The documents in the repository: their links lead somewhere, and their configuration loads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{binary, root};

/// Every Markdown document for readers, relative to the repository.
fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut files = Vec::new();
    for folder in ["", "docs", "deploy", "crates/tribune/demo/manual"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    assert!(files.len() > 20, "{files:?}");
    files
}

/// Targets of `[text](target)` and `![text](target)` that are not on the web.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

fn has_anchor(file: &Path, wanted: &str) -> bool {
    let text = fs::read_to_string(file).expect("a document");
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|anchor| anchor == wanted)
}

#[test]
fn links_in_documents_resolve() {
    for file in documents() {
        let text = fs::read_to_string(&file).expect("a document");
        for link in links(&text) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => file.clone(),
                path => file.parent().expect("a folder").join(path),
            };
            assert!(target.exists(), "{}: {link}", file.display());
            assert!(heading.is_empty() || has_anchor(&target, heading), "{}: {link}", file.display());
        }
    }
}

#[test]
fn readme_has_at_most_130_lines() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    assert!(readme.lines().count() <= 130);
}

/// The blocks of configuration in a document, fenced as `toml`.
fn configurations(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```toml\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next())
}

/// Values of `key = "…"` in a configuration.
fn values<'a>(configuration: &'a str, key: &str) -> Vec<&'a str> {
    let start = format!("{key} = \"");
    let lines = configuration.lines().filter_map(|line| line.strip_prefix(&start));
    lines.filter_map(|rest| rest.split('"').next()).collect()
}

/// Runs `tribune check` on a configuration, with its folders below `dir` and its secrets in the environment.
fn check(dir: &Path, configuration: &str) -> Result<(), String> {
    let configuration = configuration.replace("\"/srv/", "\"srv/").replace("\"/var/lib/tribune\"", "\"data\"");
    for folder in values(&configuration, "path") {
        fs::create_dir_all(dir.join(folder)).expect("a folder");
    }
    fs::write(dir.join("tribune.toml"), &configuration).expect("written");
    let mut command = Command::new(binary());
    command.current_dir(dir).arg("check");
    for secret in configuration.split("\"env:").skip(1) {
        let name = secret.split('"').next().expect("a name");
        command.env(name, "redis://127.0.0.1:6379/0#a-secret-of-the-test");
    }
    let run = command.output().expect("ran");
    if run.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr)))
}

#[test]
fn configurations_in_documents_load() {
    let mut tried = 0;
    for file in documents() {
        let text = fs::read_to_string(&file).expect("a document");
        for configuration in configurations(&text) {
            let dir = tempfile::tempdir().expect("a folder");
            let outcome = check(dir.path(), configuration);
            assert!(outcome.is_ok(), "{}:\n{configuration}\n{outcome:?}", file.display());
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}
