//! Starts the Tribune binary on a corpus.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::process::{Server, free_addr};

/// A configuration written for this run.
pub struct Tribune {
    pub program: PathBuf,
    pub config: PathBuf,
}

impl Tribune {
    /// Writes `DIR/tribune.toml`: one source of documents, and the index in
    /// `DIR/data`.
    pub fn configure(program: &Path, dir: &Path, documents: &Path) -> Result<Self> {
        let config = dir.join("tribune.toml");
        // Debug formatting of a string escapes as TOML's basic strings do, for
        // all that a path in a temporary directory holds.
        let text = format!(
            "[server]\n\
             listen = \"127.0.0.1:0\"\n\
             data_dir = {:?}\n\
             \n\
             [[sources]]\n\
             name = \"notes\"\n\
             kind = \"documents\"\n\
             embedder = \"none\"\n\
             path = {:?}\n",
            dir.join("data").display().to_string(),
            documents.display().to_string(),
        );
        fs::write(&config, text).with_context(|| format!("write {}", config.display()))?;
        Ok(Self { program: program.to_owned(), config })
    }

    pub fn index_args(&self) -> [OsString; 3] {
        ["index".into(), "--config".into(), self.config.clone().into()]
    }

    pub async fn start(&self, log: &Path, limit: Duration) -> Result<Server> {
        let addr = free_addr()?;
        let args: [OsString; 5] =
            ["serve".into(), "--config".into(), self.config.clone().into(), "--listen".into(), addr.to_string().into()];
        Server::start(&self.program, &args, addr, log, limit).await.context("start tribune")
    }
}

/// The binary to use: the one named, else the one built beside this program,
/// else the one in the workspace's target directory.
pub fn find(named: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(path) = named {
        ensure!(path.is_file(), "no tribune binary at {}", path.display());
        return Ok(Some(path.to_owned()));
    }
    let here = std::env::current_exe().context("find this program")?;
    let candidates = [here.with_file_name("tribune"), PathBuf::from("../target/release/tribune")];
    Ok(candidates.into_iter().find(|path| path.is_file()))
}
