//! `.tribune.toml`: rules for what is in a folder and below it.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tribune_core::Readers;

pub(super) const FILE: &str = ".tribune.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    #[serde(default)]
    readers: Readers,
}

/// What the rules of one folder say about its readers.
pub(super) enum Rule {
    Readers(Readers),
    /// The rules cannot be read.
    Mistake(String),
    /// Whether there are rules is not known, because the folder cannot be searched.
    Unknown,
}

impl Rule {
    pub(super) fn of(folder: &Path) -> Self {
        let file = folder.join(FILE);
        match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::Readers(Readers::default()),
            Err(_) => return Self::Unknown,
            Ok(_) => {}
        }
        let text = fs::read_to_string(&file).map_err(|error| error.to_string());
        match text.and_then(|text| toml::from_str::<Rules>(&text).map_err(|error| error.message().to_owned())) {
            Ok(rules) => Self::Readers(rules.readers),
            Err(problem) => Self::Mistake(format!(
                "{problem}; only the operator sees what is in this folder until this is corrected"
            )),
        }
    }

    /// Rules that are not known name nobody.
    pub(super) fn readers(self) -> Readers {
        match self {
            Self::Readers(readers) => readers,
            Self::Mistake(_) | Self::Unknown => Readers::nobody(),
        }
    }
}

/// Who may see what is in the folders of a scan.
#[derive(Default)]
pub(super) struct FolderReaders(HashMap<PathBuf, Known>);

#[derive(Clone, Default)]
struct Known {
    readers: Readers,
    /// As far as the rules are known.
    at_most: Readers,
}

impl FolderReaders {
    /// Reads the rules of a folder, after those of the folders around it. Returns what is wrong with them.
    pub(super) fn enter(&mut self, folder: &Path) -> Option<String> {
        let around = self.known(folder);
        let rule = Rule::of(folder);
        let mistake = if let Rule::Mistake(problem) = &rule { Some(problem.clone()) } else { None };
        let is_known = !matches!(rule, Rule::Unknown);
        let readers = around.readers.narrowed(&rule.readers());
        let at_most = if is_known { readers.clone() } else { around.at_most };
        self.0.insert(folder.to_owned(), Known { readers, at_most });
        mistake
    }

    fn known(&self, path: &Path) -> Known {
        { path.ancestors() }.find_map(|folder| self.0.get(folder)).cloned().unwrap_or_default()
    }

    pub(super) fn of(&self, path: &Path) -> Readers {
        self.known(path).readers
    }

    /// Who may see what can no longer be read.
    pub(super) fn of_unreachable(&self, path: &Path) -> Readers {
        self.known(path).at_most
    }
}
