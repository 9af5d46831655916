//! The `speeches` source: a corpus with the fields of a speech and two tools of its own.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tribune_core::{
    CallContext, Document, DocumentId, Hit, Links, Query, Result, Source, SourceFacts, SourceStatus, Tool,
};
use tribune_page::View;

use tribune_corpus::{DocumentsSource, Folder};

use crate::holdings::{Holdings, ToolNames};
use crate::speech::SpeechRules;
use crate::{fetch, ingest, search, view};

pub struct SpeechesSource {
    corpus: Arc<DocumentsSource>,
    names: ToolNames,
    rules: SpeechRules,
    links: Links,
    /// Set if administrators may ingest speeches.
    ingestion: Option<ingest::Ingestion>,
}

impl SpeechesSource {
    pub fn new(corpus: Arc<DocumentsSource>, names: ToolNames, rules: SpeechRules, links: Links) -> Self {
        Self {
            corpus,
            names,
            rules,
            links,
            ingestion: None,
        }
    }

    /// Lets administrators ingest speeches from the folder `from` into the source's folder.
    #[must_use]
    pub fn ingesting(mut self, from: PathBuf, into: Arc<Folder>) -> Self {
        self.ingestion = Some(ingest::Ingestion::new(self.corpus.clone(), into, from));
        self
    }
}

#[async_trait]
impl Source for SpeechesSource {
    fn name(&self) -> &str {
        self.corpus.name()
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        self.corpus.search(query, cx).await
    }

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>> {
        self.corpus.fetch(id, cx).await
    }

    async fn related(&self, id: &DocumentId, limit: usize, cx: &CallContext) -> Result<Option<Arc<[Hit]>>> {
        self.corpus.related(id, limit, cx).await
    }

    async fn view(&self, document: &Document, cited: Option<Timestamp>, cx: &CallContext) -> Result<Option<View>> {
        match self.corpus.view(document, cited, cx).await? {
            Some(View::Reading(reading)) => {
                let reading = view::speech(*reading, document, &self.facts().title);
                let debate = view::debate(document, &self.corpus).await?;
                Ok(Some(View::Reading(Box::new(view::with_debate(reading, debate)))))
            }
            other => Ok(other),
        }
    }

    fn relates(&self) -> bool {
        self.corpus.relates()
    }

    fn facts(&self) -> SourceFacts {
        self.corpus.facts()
    }

    fn updated(&self) -> Option<Timestamp> {
        self.corpus.updated()
    }

    fn status(&self) -> SourceStatus {
        self.corpus.status()
    }

    fn origin(&self) -> Option<String> {
        self.corpus.origin()
    }

    fn check(&self) -> Result<()> {
        self.corpus.check()
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<()> {
        self.corpus.clone().run(stop).await
    }

    fn revision(&self) -> u64 {
        self.corpus.revision()
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let holdings = Holdings::new(&self.corpus);
        vec![
            Arc::new(search::SearchSpeeches::new(
                &self.corpus,
                &self.names,
                &self.rules,
                &self.links,
                &holdings,
            )),
            Arc::new(fetch::FetchSpeech::new(
                &self.corpus,
                &self.names,
                &self.links,
                &holdings,
            )),
        ]
    }

    fn admin_tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let Some(ingestion) = &self.ingestion else {
            return Vec::new();
        };
        vec![
            Arc::new(ingest::IngestTool::file(ingestion.clone(), &self.names.ingest_file)),
            Arc::new(ingest::IngestTool::directory(
                ingestion.clone(),
                &self.names.ingest_directory,
            )),
        ]
    }
}
