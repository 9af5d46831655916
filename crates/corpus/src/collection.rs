//! What a corpus is made of, and how it treats its records, from any provider.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use tribune_core::Readers;
use tribune_embed::Embedder;

use crate::provider::Provider;

/// What a corpus is made of.
#[derive(Clone)]
pub struct Settings {
    /// The source's name, which is also its id scheme.
    pub name: String,
    pub title: String,
    pub description: Option<String>,
    /// Who may use the source.
    pub readers: Readers,
    /// The source's own folder below the data directory.
    pub index_dir: PathBuf,
    /// Where its records come from.
    pub provider: Arc<dyn Provider>,
    pub collection: Collection,
    /// Ranks by meaning beside keywords; without one, only keyword search works.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// The default is for plain documents.
#[derive(Debug, Clone)]
pub struct Collection {
    /// Plural noun: "documents", "speeches".
    pub noun: String,
    pub duplicates: Duplicates,
    /// Fields whose values are counted, so that tool descriptions can list them.
    pub counted_fields: &'static [&'static str],
    /// Transcripts, in which the same text is a duplicate only on the same occasion.
    pub transcripts: Option<Transcripts>,
    /// Set if records are read in the order of their dates, not of their keys.
    pub timeline: Option<Timeline>,
}

impl Default for Collection {
    fn default() -> Self {
        Self {
            noun: "documents".to_owned(),
            duplicates: Duplicates::Keep,
            counted_fields: &[],
            transcripts: None,
            timeline: None,
        }
    }
}

/// What to do with a document whose text another one has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// Index both.
    #[default]
    Keep,
    /// Index the first, and report later ones.
    Skip,
    /// Index the first; later ones are failures.
    Error,
}

/// Transcripts repeat short texts: "Hear, hear" on two days is two records.
#[derive(Debug, Clone, Copy)]
pub struct Transcripts {
    /// The extension of their files.
    pub extension: &'static str,
    /// Fields that distinguish occasions.
    pub occasion: &'static [&'static str],
}

/// The order of dated records.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeline {
    /// The field that separates series: a record's neighbours have the same value.
    pub series: Option<&'static str>,
    /// The field with a number that orders the records of one day.
    pub page: Option<&'static str>,
}
