//! Which files of a folder are documents.

use std::path::{Path, PathBuf};

use crate::read::{Fault, Format, Reading};

pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    pub(crate) relative: String,
    pub(crate) format: Format,
    pub(crate) metadata: std::fs::Metadata,
}

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) files: Vec<FoundFile>,
    /// Files and folders that could not be looked at now.
    pub(crate) unreachable: Vec<Fault>,
    /// What is not read on purpose.
    pub(crate) passed_over: Vec<Fault>,
}

/// Every document file below `root`, in a fixed order. Hidden files and folders are passed over;
/// links are named and not followed, because they can lead anywhere.
pub(crate) fn walk(root: &Path, reading: &Reading) -> Found {
    let mut found = Found::default();
    let hidden = |entry: &walkdir::DirEntry| {
        entry.depth() > 0 && entry.file_name().to_str().is_some_and(|name| name.starts_with('.'))
    };
    let relative_to_root = |path: &Path| -> Option<String> {
        let relative = path.strip_prefix(root).ok()?;
        if relative.as_os_str().is_empty() {
            return path.file_name()?.to_str().map(str::to_owned);
        }
        let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
        Some(parts?.join("/"))
    };
    let entries = walkdir::WalkDir::new(root).sort_by_file_name().into_iter();
    for entry in entries.filter_entry(|entry| !hidden(entry)) {
        let fault = |path: &Path, problem: String| Fault {
            file: relative_to_root(path).unwrap_or_else(|| path.to_string_lossy().into_owned()),
            line: None,
            problem,
            skipped: true,
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(root).to_owned();
                let problem = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                found
                    .unreachable
                    .push(fault(&path, format!("cannot be read: {problem}")));
                continue;
            }
        };
        let path = entry.path();
        let is_linked_folder = entry.path_is_symlink() && entry.depth() > 0 && path.is_dir();
        if is_linked_folder {
            let problem = "is a link to a folder; only real folders are read".to_owned();
            found.passed_over.push(fault(path, problem));
            continue;
        }
        let Some(format) = Format::of(path, reading) else {
            continue;
        };
        if entry.path_is_symlink() && entry.depth() > 0 {
            found
                .passed_over
                .push(fault(path, "is a link; only real files are indexed".to_owned()));
            continue;
        }
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => continue,
            Err(error) => {
                found.unreachable.push(fault(path, format!("cannot be read: {error}")));
                continue;
            }
        };
        match relative_to_root(path) {
            Some(relative) => found.files.push(FoundFile {
                path: path.to_owned(),
                relative,
                format,
                metadata,
            }),
            None => found.passed_over.push(fault(path, "its name is not UTF-8".to_owned())),
        }
    }
    found
}
