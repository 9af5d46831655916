//! What runs without a configuration: three small corpora that travel in the binary, and a simulated exchange.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::Context;
use include_dir::{Dir, include_dir};
use tempfile::TempDir;
use tribune_exchange_sim::{Exchange, Settings, start_on};

static CORPORA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");

/// Its `[market]` is the simulated exchange.
pub const CONFIGURATION: &str = include_str!("demo.toml");

/// The folder and the exchange of a demo, which end with it.
#[derive(Debug)]
pub struct Demo {
    dir: TempDir,
    /// Bound from the start, so that the configuration can name its address.
    exchange: TcpListener,
}

impl Demo {
    pub fn new() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("tribune-demo-")
            .tempdir()
            .context("cannot create a temporary folder for the demo")?;
        CORPORA.extract(dir.path()).context("cannot unpack the demo's documents")?;
        let exchange = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port for the demo's exchange")?;
        Ok(Self { dir, exchange })
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn exchange_url(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}", self.exchange.local_addr()?))
    }

    /// Must be called within a runtime.
    pub async fn start_exchange(&self) -> anyhow::Result<Exchange> {
        let listener = self.exchange.try_clone()?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(start_on(listener, Settings::default()).await?)
    }
}
