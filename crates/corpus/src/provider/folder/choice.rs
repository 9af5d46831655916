//! Which files of a folder are read: patterns of the configuration, ignore files, and folders that programs fill.

use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use tribune_core::{Error, Result};

/// An ignore file of Tribune's own, with the rules of `.gitignore`.
const IGNORE_FILE: &str = ".tribuneignore";
/// Folders that hold what package managers and interpreters fetch or make.
const FETCHED: [&str; 4] = ["node_modules", "bower_components", "__pycache__", "site-packages"];
/// Folders that programs build into, if one of [`BUILT_FROM`] is beside them.
const BUILT: [&str; 5] = ["target", "build", "dist", "_build", "out"];
const BUILT_FROM: [&str; 10] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "CMakeLists.txt",
    "Makefile",
    "pom.xml",
    "build.gradle",
    "conf.py",
    "go.mod",
];

/// Which files of a folder are read.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    include: Vec<String>,
    exclude: Vec<String>,
}

impl Choice {
    /// Patterns as in `.gitignore`. Without `include`, everything that is not excluded is chosen.
    pub fn new(include: Vec<String>, exclude: Vec<String>) -> Result<Self> {
        let choice = Self { include, exclude };
        choice.patterns(Path::new("")).map(|_| choice)
    }

    fn patterns(&self, root: &Path) -> Result<Override> {
        let mut patterns = OverrideBuilder::new(root);
        let wrong = |pattern: &str, error| {
            Error::invalid_argument(format!("`{pattern}` is not a pattern: {error}; write it as in .gitignore"))
        };
        for pattern in &self.include {
            patterns.add(pattern).map_err(|error| wrong(pattern, error))?;
        }
        for pattern in &self.exclude {
            patterns.add(&format!("!{pattern}")).map_err(|error| wrong(pattern, error))?;
        }
        patterns.build().map_err(|error| wrong("include", error))
    }

    /// The chosen files and the folders above them, in a fixed order. An error has its path, if it is known.
    pub(super) fn walk(
        &self,
        root: &Path,
    ) -> impl Iterator<Item = std::result::Result<DirEntry, (Option<PathBuf>, String)>> + use<> {
        let mut walk = WalkBuilder::new(root);
        walk.git_global(false)
            .git_exclude(false)
            .require_git(false)
            .parents(false)
            .add_custom_ignore_filename(IGNORE_FILE)
            .overrides(self.patterns(root).unwrap_or_else(|_| Override::empty()))
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(|entry| !is_made(entry));
        walk.build().map(|entry| entry.map_err(|error| (path(&error), problem(&error))))
    }
}

/// Whether a folder holds what programs made or fetched.
fn is_made(entry: &DirEntry) -> bool {
    if entry.depth() == 0 || !entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return false;
    }
    let name = entry.file_name().to_str().unwrap_or_default();
    let has = |folder: &Path, files: &[&str]| files.iter().any(|file| folder.join(file).exists());
    FETCHED.contains(&name)
        || has(entry.path(), &["CACHEDIR.TAG", "pyvenv.cfg"])
        || (BUILT.contains(&name) && entry.path().parent().is_some_and(|parent| has(parent, &BUILT_FROM)))
}

fn path(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path(err),
        ignore::Error::Partial(errors) => errors.iter().find_map(path),
        _ => None,
    }
}

fn problem(error: &ignore::Error) -> String {
    error.io_error().map_or_else(|| error.to_string(), ToString::to_string)
}
