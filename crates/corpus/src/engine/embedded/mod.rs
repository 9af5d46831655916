//! The built-in engine: tantivy, and vectors in files.
//!
//! - `schema`: the fields of an index; `entry` writes and reads them;
//! - `changes`: an atomic change of the index;
//! - `version`: one published version, ranked by `lexical` (words) and `dense` (vectors), with `best` documents;
//! - `segments`: its segments, and the entries with a value;
//! - `visible`: the entries that a caller may see; `filter`: conditions as queries; `facets`: counted values; `timeline`: dated documents in order;
//! - `vectors`: vectors on disk, by the hash of their text.
//!
//! An index is a folder that changes by one rename: a run adds segments and a new manifest, then commits both by
//! renaming `meta.json`.

mod best;
mod changes;
mod dense;
mod entry;
mod facets;
mod filter;
mod lexical;
mod schema;
mod segments;
mod timeline;
mod vectors;
mod version;
mod visible;

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tantivy::{DocAddress, TantivyError};
use tribune_embed::Embedder;

pub use self::schema::EnglishWords;
use self::schema::FORMAT;
use self::vectors::VectorStore;
use super::{Changes, Engine, EngineError, PassageId, Result, VectorWriter, Version, VersionMark};

pub struct Embedded {
    source: String,
    dir: PathBuf,
    model: Option<Model>,
}

/// A model and its vectors.
struct Model {
    embedder: Arc<dyn Embedder>,
    store: VectorStore,
}

impl Embedded {
    /// `index_dir` is the source's own folder below the data directory.
    pub fn new(source: &str, index_dir: &Path, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self {
            source: source.to_owned(),
            dir: index_dir.join(FORMAT),
            model: embedder.map(|embedder| Model { store: VectorStore::new(index_dir, &*embedder), embedder }),
        }
    }
}

impl Engine for Embedded {
    fn published(&self) -> Option<VersionMark> {
        let (index, at) = file_mark(&self.dir.join("meta.json"))?;
        let vectors = self.model.as_ref().and_then(|model| file_mark(&model.store.ready_file()));
        Some(VersionMark {
            index,
            vectors: vectors.map_or(0, |(mark, _)| mark),
            committed: jiff::Timestamp::try_from(at).ok(),
        })
    }

    fn open(&self) -> Result<Option<Arc<dyn Version>>> {
        let opened = version::EmbeddedVersion::open(&self.source, &self.dir, self.model.as_ref());
        Ok(match attempt("opening the index", opened)? {
            Some(version) => Some(Arc::new(version)),
            None => None,
        })
    }

    fn begin(&self, bytes: u64) -> Result<Box<dyn Changes>> {
        let changes = changes::EmbeddedChanges::begin(&self.source, &self.dir, bytes)?;
        Ok(Box::new(changes))
    }

    fn vectors(&self) -> Result<Option<Box<dyn VectorWriter>>> {
        let Some(model) = &self.model else {
            return Ok(None);
        };
        match attempt("opening the vectors", model.store.writer(&*model.embedder))? {
            Some(writer) => Ok(Some(Box::new(writer))),
            None => Err(EngineError::Busy),
        }
    }
}

/// Changes with every commit, because index and vectors are both committed by a rename.
fn file_mark(path: &Path) -> Option<(u128, SystemTime)> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let identity = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let identity = metadata.len();
    let modified = metadata.modified().ok()?;
    let age = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(((u128::from(identity) << 64) | (age.as_nanos() & u128::from(u64::MAX)), modified))
}

/// Ordered like the index.
fn passage_id(address: DocAddress) -> PassageId {
    PassageId((u64::from(address.segment_ord) << 32) | u64::from(address.doc_id))
}

fn address(PassageId(id): PassageId) -> DocAddress {
    DocAddress::new((id >> 32) as u32, (id & u64::from(u32::MAX)) as u32)
}

impl From<TantivyError> for EngineError {
    fn from(cause: TantivyError) -> Self {
        failed("reading the index", cause)
    }
}

impl From<io::Error> for EngineError {
    fn from(cause: io::Error) -> Self {
        failed("reading the index", cause)
    }
}

fn attempt<T, E>(doing: &'static str, result: std::result::Result<T, E>) -> Result<T>
where
    E: Error + Send + Sync + 'static,
{
    result.map_err(|cause| failed(doing, cause))
}

fn failed(doing: &'static str, cause: impl Error + Send + Sync + 'static) -> EngineError {
    if is_disk_full(&cause) {
        return EngineError::DiskFull;
    }
    EngineError::Failed { doing, cause: Box::new(cause) }
}

/// Once a worker is gone, tantivy reports its failed write only as text, so both are checked.
fn is_disk_full(error: &(dyn Error + 'static)) -> bool {
    let is_storage_full = |error: &(dyn Error + 'static)| {
        let io = error.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::StorageFull)
    };
    let text = format!("{error} {error:?}");
    std::iter::successors(Some(error), |&error| error.source()).any(is_storage_full)
        || text.contains("No space left on device")
        || text.contains("StorageFull")
}
