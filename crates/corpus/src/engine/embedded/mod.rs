//! The built-in engine: tantivy, and vectors in files.
//!
//! - `schema`: the fields of an index; `entry` fills them from a record;
//! - `changes`: an atomic change of the index;
//! - `version`: one published version, read by `lexical` (words) and `dense` (vectors), with `best` documents;
//! - `filter`: conditions as queries; `facets`: counted values; `timeline`: dated documents in order;
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
mod timeline;
mod vectors;
mod version;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tantivy::DocAddress;
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
            model: embedder.map(|embedder| Model {
                store: VectorStore::new(index_dir, &*embedder),
                embedder,
            }),
        }
    }
}

impl Engine for Embedded {
    fn published(&self) -> Option<VersionMark> {
        let (index, at) = file_mark(&self.dir.join("meta.json"))?;
        let vectors = self
            .model
            .as_ref()
            .and_then(|model| file_mark(&model.store.ready_file()));
        Some(VersionMark {
            index,
            vectors: vectors.map_or(0, |(mark, _)| mark),
            committed: jiff::Timestamp::try_from(at).ok(),
        })
    }

    fn open(&self) -> Result<Option<Arc<dyn Version>>> {
        let opened = version::EmbeddedVersion::open(&self.source, &self.dir, self.model.as_ref());
        let version = attempt("opening the index", opened)?;
        Ok(version.map(|version| Arc::new(version) as Arc<dyn Version>))
    }

    fn begin(&self, bytes: u64) -> Result<Box<dyn Changes>> {
        Ok(Box::new(changes::EmbeddedChanges::begin(
            &self.source,
            &self.dir,
            bytes,
        )?))
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
    Some((
        (u128::from(identity) << 64) | (age.as_nanos() & u128::from(u64::MAX)),
        modified,
    ))
}

/// Ordered like the index.
fn passage_id(address: DocAddress) -> PassageId {
    PassageId((u64::from(address.segment_ord) << 32) | u64::from(address.doc_id))
}

fn address(PassageId(id): PassageId) -> DocAddress {
    DocAddress::new((id >> 32) as u32, (id & u64::from(u32::MAX)) as u32)
}

fn attempt<T, E>(doing: &'static str, result: std::result::Result<T, E>) -> Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    result.map_err(|cause| {
        if is_disk_full(&cause) {
            EngineError::DiskFull
        } else {
            EngineError::Failed {
                doing,
                cause: Box::new(cause),
            }
        }
    })
}

/// Once a worker is gone, tantivy reports its failed write only as text, so both are checked.
fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::StorageFull)
        {
            return true;
        }
        cause = error.source();
    }
    let text = format!("{error} {error:?}");
    text.contains("No space left on device") || text.contains("StorageFull")
}
