//! SQLite's full text, with the settings that suit it best here.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use rusqlite::Connection;

use super::{
    engines::{Caller, LIMIT, Opened},
    texts::{Corpus, folder_bytes},
};

const FOLDER: &str = "sqlite";

fn file(corpus: &Corpus) -> PathBuf {
    corpus.index(FOLDER).join("passages.db")
}

fn connection(path: &PathBuf) -> Result<Connection> {
    let connection = Connection::open(path).with_context(|| format!("open {}", path.display()))?;
    // Pages are read from the mapped file, as the other engines read theirs.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
         PRAGMA cache_size = -65536; PRAGMA mmap_size = 2147418112;",
    )?;
    Ok(connection)
}

pub fn index(corpus: &Corpus) -> Result<u64> {
    fs::create_dir_all(corpus.index(FOLDER))?;
    let mut connection = connection(&file(corpus))?;
    connection
        .execute_batch("CREATE VIRTUAL TABLE passages USING fts5(id UNINDEXED, text, tokenize = 'porter unicode61')")?;
    let transaction = connection.transaction()?;
    let mut insert = transaction.prepare("INSERT INTO passages (id, text) VALUES (?, ?)")?;
    for document in corpus.documents()? {
        let document = document?;
        for passage in document.passages() {
            insert.execute((&document.id, passage))?;
        }
    }
    drop(insert);
    transaction.commit()?;
    // One segment, which makes every query faster.
    connection
        .execute_batch("INSERT INTO passages (passages) VALUES ('optimize'); PRAGMA wal_checkpoint(TRUNCATE);")?;
    drop(connection);
    folder_bytes(&corpus.index(FOLDER))
}

pub struct Open {
    file: PathBuf,
}

impl Open {
    pub fn new(corpus: &Corpus) -> Self {
        Self { file: file(corpus) }
    }
}

impl Opened for Open {
    fn caller(&self) -> Result<Caller<'_>> {
        let connection = connection(&self.file)?;
        Ok(Box::new(move |question| {
            let mut search = connection
                .prepare_cached("SELECT id, text FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?")?;
            let words: Vec<String> = question.text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
            let mut rows = search.query((words.join(" OR "), LIMIT as i64))?;
            let mut found = 0;
            while let Some(row) = rows.next()? {
                std::hint::black_box(row.get_ref(1)?.as_str()?);
                found += 1;
            }
            Ok(found)
        }))
    }
}
