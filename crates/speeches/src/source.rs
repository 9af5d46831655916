//! What speeches add to their corpus: two tools, ingestion, and more on a page.

use std::sync::Arc;

use tribune_core::{Document, Links, Tool};
use tribune_corpus::snapshot::Snapshot;
use tribune_corpus::{DocumentsSource, Features, engine};
use tribune_page::Reading;

use crate::holdings::{Holdings, ToolNames};
use crate::ingest::{Incoming, IngestTool, Ingestion};
use crate::speech::SpeechRules;
use crate::{fetch, search, view};

/// The features of a source of speeches.
pub struct Speeches {
    pub title: String,
    pub names: ToolNames,
    pub rules: SpeechRules,
    pub links: Links,
    /// Set if administrators may ingest speeches.
    pub incoming: Option<Incoming>,
}

impl Features for Speeches {
    fn tools(&self, corpus: &Arc<DocumentsSource>) -> Vec<Arc<dyn Tool>> {
        let holdings = Holdings::new(corpus);
        vec![
            Arc::new(search::SearchSpeeches {
                spec: search::spec(&self.names, &holdings),
                corpus: corpus.clone(),
                rules: self.rules.clone(),
                links: self.links.clone(),
            }),
            Arc::new(fetch::FetchSpeech {
                spec: fetch::spec(&self.names, &holdings),
                names: self.names.clone(),
                corpus: corpus.clone(),
                links: self.links.clone(),
            }),
        ]
    }

    fn admin_tools(&self, corpus: &Arc<DocumentsSource>) -> Vec<Arc<dyn Tool>> {
        let Some(incoming) = self.incoming.clone() else {
            return Vec::new();
        };
        let corpus = corpus.clone();
        let ingestion = Ingestion { corpus, incoming };
        vec![
            Arc::new(IngestTool::new(ingestion.clone(), &self.names.ingest_file, false)),
            Arc::new(IngestTool::new(ingestion, &self.names.ingest_directory, true)),
        ]
    }

    fn page(&self, reading: Reading, document: &Document, snapshot: &Snapshot) -> engine::Result<Reading> {
        view::speech(reading, document, &self.title, snapshot)
    }
}
