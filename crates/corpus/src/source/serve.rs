//! Answers from the published version: search, documents, pages and status.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tribune_core::{
    CallContext, Document, DocumentId, Error, Hit, JsonObject, Query, Readers, Result, Source, SourceFacts,
    SourceStatus, Tool,
};
use tribune_embed::Embedder;
use tribune_page::View;

use super::follow::{follow, log, publish_commits};
use super::{DocumentsSource, Upkeep};
use crate::engine::{self, EngineError};
use crate::manifest::field_names;
use crate::query::Filter;
use crate::search::{Legs, SearchRequest};
use crate::snapshot::Snapshot;

impl DocumentsSource {
    /// Documents that match a query and meet conditions, best first, each with its fields.
    pub async fn find(
        &self,
        text: &str,
        limit: usize,
        filter: Filter,
        cx: &CallContext,
    ) -> Result<Vec<(Hit, JsonObject)>> {
        let Some(snapshot) = self.seen_by(cx)? else {
            return Ok(Vec::new());
        };
        let text = text.to_owned();
        let find = move || {
            let ask = SearchRequest { text: &text, limit, filter: &filter, legs: Legs::Both };
            let hits = snapshot.find(&ask).map_err(search_error)?.into_iter();
            hits.map(|hit| {
                let fields = snapshot.metadata(hit.id.key()).map_err(search_error)?;
                Ok((hit, fields))
            })
            .collect()
        };
        self.run_search(find).await
    }

    /// Reads something about a document of this source, on the pool.
    async fn read_document<T, F>(&self, id: &DocumentId, cx: &CallContext, read: F) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce(&Snapshot, &str) -> engine::Result<Option<T>> + Send + 'static,
    {
        if !self.owns(id.scheme()) {
            return Ok(None);
        }
        let Some(snapshot) = self.seen_by(cx)? else {
            return Ok(None);
        };
        let key = id.key().to_owned();
        let unreadable = |e| Error::internal("the index could not be read").caused_by(e);
        self.pool.run(move || read(&snapshot, &key).map_err(unreadable)).await
    }

    /// Runs a search on the pool; if its model waits for a network, on a thread that may wait, because the
    /// pool's threads are for computing.
    async fn run_search<T, F>(&self, search: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        let is_remote = |embedder: &Arc<dyn Embedder>| embedder.is_remote();
        if !self.settings.embedder.as_ref().is_some_and(is_remote) {
            return self.pool.run(search).await;
        }
        let searched = tokio::task::spawn_blocking(search).await;
        searched.map_err(|e| Error::internal("a search failed unexpectedly; the log has the details").caused_by(e))?
    }
}

fn search_error(error: EngineError) -> Error {
    Error::internal("the index could not be searched").caused_by(error)
}

#[async_trait]
impl Source for DocumentsSource {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn readers(&self) -> &Readers {
        &self.settings.readers
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        let Some(snapshot) = self.seen_by(cx)? else {
            return Ok(Arc::default());
        };
        if let Some(hits) = snapshot.cached(&query.text, query.limit) {
            return Ok(hits);
        }
        if snapshot.is_small() {
            return snapshot.search(&query.text, query.limit).map_err(search_error);
        }
        let (text, limit) = (query.text.clone(), query.limit);
        let cancel = cx.cancel.clone();
        let search = move || {
            if cancel.is_cancelled() {
                return Ok(Arc::default());
            }
            snapshot.search(&text, limit).map_err(search_error)
        };
        self.run_search(search).await
    }

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>> {
        self.read_document(id, cx, Snapshot::fetch).await
    }

    async fn related(&self, id: &DocumentId, limit: usize, cx: &CallContext) -> Result<Option<Arc<[Hit]>>> {
        let related = move |snapshot: &Snapshot, key: &str| snapshot.related(key, limit);
        Ok(self.read_document(id, cx, related).await?.map(Arc::from))
    }

    /// Documents do not change under their ids, so there is no older state to show.
    async fn view(&self, document: &Document, _cited: Option<Timestamp>, cx: &CallContext) -> Result<Option<View>> {
        let features = self.features.clone();
        let view = move |snapshot: &Snapshot, key: &str| {
            let Some((document, reading)) = snapshot.page(key)? else {
                return Ok(None);
            };
            let reading = features.page(reading, &document, snapshot)?;
            Ok(Some(View::Reading(Box::new(reading))))
        };
        self.read_document(&document.id, cx, view).await
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        self.features.tools(&self)
    }

    fn admin_tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        self.features.admin_tools(&self)
    }

    fn relates(&self) -> bool {
        true
    }

    fn facts(&self) -> SourceFacts {
        let is_indexed = self.current.load().is_some();
        // A source of public documents that has none yet says so; one with readers says nothing.
        let is_counted = is_indexed && self.settings.readers.is_everybody();
        let public = self.public().unwrap_or_default();
        SourceFacts {
            name: self.settings.name.clone(),
            title: self.settings.title.clone(),
            description: self.settings.description.clone(),
            noun: self.settings.collection.noun.clone(),
            documents: is_counted.then_some(public.documents),
            dates: public.dates(),
            example_id: None,
            live: false,
            fields: field_names(std::iter::once(&public)),
        }
    }

    fn updated(&self) -> Option<Timestamp> {
        self.current.load().as_ref()?.public_since()
    }

    fn status(&self) -> SourceStatus {
        let activity = self.activity();
        if self.current.load().is_none() {
            return SourceStatus::Unready(match (&activity.running, &activity.failure) {
                (Some(state), _) => format!(
                    "indexing for the first time: {} of {} files, {} documents so far",
                    state.files_done, state.files_total, state.documents
                ),
                (None, Some(failure)) => failure.clone(),
                (None, None) => "waiting to be indexed".to_owned(),
            });
        }
        let failure = activity.failure.clone().or_else(|| activity.embedding_failure.clone());
        match failure.or_else(|| self.settings.provider.degraded()) {
            Some(failure) => SourceStatus::Degraded(failure),
            None => SourceStatus::Ready,
        }
    }

    fn origin(&self) -> Option<String> {
        self.settings.provider.origin()
    }

    fn check(&self) -> Result<()> {
        match self.settings.provider.problem() {
            None => Ok(()),
            Some(problem) => Err(Error::not_found(format!("source `{}`: {problem}", self.settings.name))),
        }
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<()> {
        let publish = publish_commits(self.clone(), stop.clone());
        if self.upkeep == Upkeep::Publish {
            publish.await;
            return Ok(());
        }
        let follow = follow(self.clone(), self.upkeep == Upkeep::Follow, stop, Arc::new(log));
        tokio::join!(publish, follow);
        Ok(())
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }
}
