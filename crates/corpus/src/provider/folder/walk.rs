//! Finds the document files of a folder.

use std::fs::Metadata;
use std::path::Path;

use super::{Item, Listing};
use crate::format::{Fault, Formats};

/// Every document file below `root`, in a fixed order. Hidden files and folders are skipped; links are reported and
/// not followed, because they can lead anywhere.
pub(super) fn walk(root: &Path, formats: &Formats) -> Listing {
    let mut found = Listing::default();
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
    let fault = |path: &Path, problem: String| Fault {
        file: relative_to_root(path).unwrap_or_else(|| path.to_string_lossy().into_owned()),
        line: None,
        problem,
        skipped: true,
    };
    let entries = walkdir::WalkDir::new(root).sort_by_file_name().into_iter();
    for entry in entries.filter_entry(|entry| !hidden(entry)) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let problem = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                let path = error.path().unwrap_or(root);
                found.unreachable.push(fault(path, format!("cannot be read: {problem}")));
                continue;
            }
        };
        let path = entry.path();
        let is_link = entry.path_is_symlink() && entry.depth() > 0;
        let is_document = formats.find(path).is_some();
        if is_link && (is_document || path.is_dir()) {
            let problem = match path.is_dir() {
                true => "is a link to a folder; only real folders are read",
                false => "is a link; only real files are indexed",
            };
            found.excluded.push(fault(path, problem.to_owned()));
            continue;
        }
        if !is_document {
            continue;
        }
        match (std::fs::metadata(path), relative_to_root(path)) {
            (Err(error), _) => found.unreachable.push(fault(path, format!("cannot be read: {error}"))),
            (Ok(metadata), _) if !metadata.is_file() => {}
            (Ok(_), None) => found.excluded.push(fault(path, "its name is not UTF-8".to_owned())),
            (Ok(metadata), Some(key)) => {
                found.items.push(Item { key, fingerprint: fingerprint(&metadata), bytes: metadata.len() });
            }
        }
    }
    found
}

/// Changes with the file, without opening it. Inode and change time detect a replacement of the same size and date.
fn fingerprint(metadata: &Metadata) -> String {
    let modified_ns = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |age| age.as_nanos());
    #[cfg(unix)]
    let identity = {
        use std::os::unix::fs::MetadataExt;
        format!("-{}-{}.{}", metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
    };
    #[cfg(not(unix))]
    let identity = "";
    format!("{}-{modified_ns}{identity}", metadata.len())
}
