//! What is not indexed, in a few words: `12 images`, `3 PDF without text (scanned?)`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::format::Reason;
use crate::manifest::Manifest;

/// Extensions of files that hold no text, with a word for them.
const KINDS: &[(&str, &[&str])] = &[
    ("image", &["png", "jpg", "jpeg", "gif", "svg", "webp", "bmp", "ico", "tif", "tiff", "heic", "avif", "psd", "ai"]),
    ("audio file", &["mp3", "wav", "flac", "ogg", "m4a", "aac", "opus"]),
    ("video", &["mp4", "mov", "mkv", "avi", "webm", "m4v"]),
    ("font", &["ttf", "otf", "woff", "woff2", "eot"]),
    ("packed file", &["7z", "rar", "bz2", "xz", "zst", "dmg", "iso", "jar", "whl", "deb", "rpm"]),
    ("program", &["exe", "dll", "so", "dylib", "o", "a", "class", "pyc", "bin", "wasm"]),
    ("database", &["db", "sqlite", "sqlite3", "mdb", "parquet"]),
];

/// Files that no format reads, counted by kind.
pub(crate) fn kinds(files: &[String]) -> BTreeMap<String, u64> {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for file in files {
        let extension = Path::new(file).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let extension = extension.to_ascii_lowercase();
        let known = KINDS.iter().find(|(_, extensions)| extensions.contains(&&*extension));
        let kind = match known {
            Some((kind, _)) => (*kind).to_owned(),
            None if extension.is_empty() => "file without an extension".to_owned(),
            None => format!(".{extension} file"),
        };
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

impl Manifest {
    /// What is not indexed and why, most frequent first.
    pub fn skipped(&self) -> Vec<String> {
        let mut groups: BTreeMap<(String, Reason), u64> = BTreeMap::new();
        for (name, entry) in &self.files {
            let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or("file");
            for (reason, count) in &entry.unreadable {
                *groups.entry((extension.to_ascii_uppercase(), *reason)).or_default() += count;
            }
        }
        let unreadable = groups.into_iter().map(|((kind, reason), count)| {
            let why = match reason {
                Reason::NoText => "without text (scanned?)",
                Reason::Encrypted => "encrypted",
                Reason::Damaged => "damaged",
                Reason::TooLarge => "too large",
                Reason::Killed => "given up because they crashed their parser",
            };
            (count, format!("{count} {kind} {why}"))
        });
        let unread = self.unread.iter().map(|(kind, count)| {
            let plural = if *count == 1 { String::new() } else { "s".to_owned() };
            let shown = match kind.strip_prefix("file ") {
                Some(rest) => format!("{count} file{plural} {rest}"),
                None => format!("{count} {kind}{plural}"),
            };
            (*count, shown)
        });
        let mut all: Vec<(u64, String)> = unreadable.chain(unread).collect();
        all.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        all.into_iter().map(|(_, shown)| shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::FileEntry;

    #[test]
    fn skipped_files_are_counted_by_kind_and_reason() {
        let mut manifest = Manifest::default();
        let files = ["a.PNG", "b.jpg", "c.xyz", "Makefile"].map(str::to_owned);
        manifest.unread = kinds(&files);
        for name in ["1.pdf", "2.pdf", "3.docx"] {
            let reason = if name.ends_with("pdf") { Reason::NoText } else { Reason::Encrypted };
            let entry = FileEntry { unreadable: BTreeMap::from([(reason, 1)]), ..FileEntry::default() };
            manifest.files.insert(name.to_owned(), entry);
        }
        assert_eq!(
            manifest.skipped(),
            [
                "2 PDF without text (scanned?)",
                "2 images",
                "1 DOCX encrypted",
                "1 .xyz file",
                "1 file without an extension",
            ]
        );
    }
}
