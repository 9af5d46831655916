//! Which crate may use which, and that no crate has a cycle between its top-level modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tribune_architecture::{find_cycle, module_graph};

/// Each crate, and the crates it may depend on. Sources never depend on each other, and `server` on no source.
const LAYERS: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("page", &[]),
    ("core", &["clock", "page"]),
    ("config", &["core"]),
    ("registry", &["core"]),
    ("limits", &["config", "core"]),
    ("storage", &["config", "core"]),
    ("embed", &[]),
    ("binance", &["clock"]),
    ("analytics", &["binance"]),
    ("market-parts", &["core", "page", "binance", "analytics"]),
    ("market-resolve", &["core", "binance"]),
    ("citations", &["config", "core", "page"]),
    // Sources.
    ("extract", &[]),
    ("corpus", &["config", "core", "page", "embed", "extract"]),
    ("speeches", &["registry", "core", "page", "embed", "corpus"]),
    ("feed", &["config", "core", "page", "embed", "corpus"]),
    ("market", MARKET),
    ("reports", MARKET),
    ("trading", MARKET),
    ("tasks", &["core", "page", "storage"]),
    ("upstream", &["registry", "config", "core"]),
    // What serves them.
    ("agent", &["config", "core", "storage"]),
    ("conformance", &[]),
    ("oauth", &["core", "storage"]),
    ("server", &["registry", "limits", "config", "core", "page", "storage", "agent", "oauth", "conformance"]),
    ("exchange-sim", &[]),
];

/// What the sources about markets may depend on.
const MARKET: &[&str] =
    &["config", "core", "page", "binance", "analytics", "market-parts", "market-resolve", "citations"];

/// The composition root may use every crate.
const COMPOSITION_ROOT: &str = "tribune";

fn crates() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let entries = std::fs::read_dir(&folder).expect("the crates").flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file());
    let mut crates: Vec<(String, PathBuf)> =
        folders.map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path)).collect();
    crates.sort();
    assert!(crates.len() > 5, "{} has no crates", folder.display());
    crates
}

/// The crates of this workspace that a crate depends on, except for its tests.
fn dependencies(folder: &Path) -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let mut is_dependencies = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            is_dependencies = line.ends_with("dependencies]") && !line.contains("dev-");
        } else if let Some(name) = line.strip_prefix("tribune-").filter(|_| is_dependencies) {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(name.len());
            found.insert(name[..end].to_owned());
        }
    }
    found
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let layers: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, folder) in crates().iter().filter(|(name, _)| name != COMPOSITION_ROOT) {
        let Some(allowed) = layers.get(name.as_str()) else {
            wrong.push(format!("{name} is not in LAYERS: add it with the crates it may depend on"));
            continue;
        };
        for dependency in dependencies(folder) {
            if !allowed.contains(&dependency.as_str()) {
                wrong.push(format!("{name} depends on {dependency}, which LAYERS does not allow"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_form_no_cycle() {
    let mut wrong = Vec::new();
    for (name, folder) in crates() {
        let graph = module_graph(&folder);
        if let Some(cycle) = find_cycle(&graph) {
            let edges = cycle.iter().zip(cycle.iter().cycle().skip(1));
            let edges = edges.map(|(from, to)| format!("  {from} uses {to}: {}", graph[from][to]));
            wrong.push(format!("{name} has a cycle:\n{}", edges.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
