//! Tribune as a library: what its server does with a corpus, without the network.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Principal, Query, Source};
use tribune_corpus::{
    Collection, DocumentsSource, Filter, Folder, Legs, Limits, Pool, Reading, SearchRequest, Settings,
    snapshot::Snapshot,
};

use super::{
    engines::{Caller, Condition, LIMIT, Opened},
    generated::Generated,
    texts::{Corpus, folder_bytes},
};

/// As `servers::tribune` names its one source.
const SOURCE: &str = "notes";

fn index_dir(corpus: &Corpus) -> PathBuf {
    corpus.index("data").join("index").join(SOURCE)
}

fn source(corpus: &Corpus, vectors: bool, pool: Pool) -> DocumentsSource {
    let settings = Settings {
        name: SOURCE.to_owned(),
        title: "Notes".to_owned(),
        description: None,
        readers: tribune_core::Readers::default(),
        provider: Arc::new(Folder::new(corpus.folder(), Reading::default(), Limits::default())),
        collection: Collection::default(),
        index_dir: index_dir(corpus),
        embedder: vectors.then(|| Arc::new(Generated::new()) as _),
    };
    DocumentsSource::new(settings, pool)
}

pub fn index(corpus: &Corpus) -> Result<u64> {
    let source = source(corpus, false, Pool::for_background()?);
    let report = source.update(&CancellationToken::new(), &|_| ())?;
    ensure!(report.faults_in_all == 0, "{} faults in generated texts", report.faults_in_all);
    folder_bytes(&index_dir(corpus))
}

/// Returns the size of the vectors; the index must exist.
pub fn add_vectors(corpus: &Corpus) -> Result<u64> {
    let before = folder_bytes(&index_dir(corpus))?;
    let source = source(corpus, true, Pool::for_background()?);
    source.refresh()?;
    source.embed(&CancellationToken::new(), &|_| ())?.context("there is no index to make vectors for")?;
    Ok(folder_bytes(&index_dir(corpus))? - before)
}

pub struct Open {
    source: DocumentsSource,
    snapshot: Snapshot,
    legs: Legs,
    runtime: tokio::runtime::Runtime,
}

impl Open {
    pub fn new(corpus: &Corpus, vectors: bool) -> Result<Self> {
        let source = source(corpus, vectors, Pool::start()?);
        source.refresh()?;
        let snapshot = source.seen_in_full()?;
        let (passages, covered) = snapshot.coverage();
        ensure!(!vectors || covered == passages, "only {covered} of {passages} passages have a vector");
        Ok(Self {
            source,
            snapshot,
            legs: if vectors { Legs::Both } else { Legs::Words },
            runtime: tokio::runtime::Builder::new_current_thread().build()?,
        })
    }
}

impl Opened for Open {
    fn caller(&self) -> Result<Caller<'_>> {
        Ok(Box::new(|question| {
            let ask = SearchRequest {
                text: &question.text,
                limit: LIMIT,
                filter: &question.condition.as_ref().map(filter).unwrap_or_default(),
                legs: self.legs,
            };
            Ok(self.snapshot.find(&ask)?.len())
        }))
    }

    fn whole_way(&self) -> Option<Caller<'_>> {
        Some(Box::new(|question| {
            let query = Query { text: question.text.clone(), limit: LIMIT };
            let deadline = std::time::Instant::now() + Duration::from_secs(60);
            let context = CallContext::new(Principal::Anonymous, deadline);
            Ok(self.runtime.block_on(self.source.search(&query, &context))?.len())
        }))
    }

    fn filters(&self) -> bool {
        true
    }
}

fn filter(condition: &Condition) -> Filter {
    use tribune_corpus::Condition as Conditioned;
    Filter(vec![match condition {
        Condition::Kind(kind) => Conditioned::Is { field: "kind".to_owned(), value: (*kind).to_owned() },
        Condition::Days(from, until) => Conditioned::Days { from: Some(*from), until: Some(*until) },
    }])
}
