//! What runs without a configuration: three small corpora that travel in the binary, and a simulated exchange.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::Context;
use include_dir::{Dir, include_dir};
use tempfile::TempDir;
use tribune_exchange_sim::{Exchange, Settings, start_on};

static CORPORA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");

/// Its `[market]` is the simulated exchange.
pub const CONFIGURATION: &str = r#"
[server]
data_dir = "data"

[[sources]]
name = "manual"
kind = "documents"
path = "manual"
title = "Tribune's manual"
description = "How to install, configure, connect and run Tribune."
embedder = "minilm"

[[sources]]
name = "notes"
kind = "documents"
path = "notes"
title = "Sample notes"
description = "Invented notes of an allotment society: planting, meetings, repairs."
embedder = "minilm"

[[sources]]
name = "hansard"
kind = "speeches"
path = "hansard"
title = "Sample speeches"
description = "Invented speeches of invented members of an Australian parliament, for trying things out."
embedder = "minilm"

[market]
symbols = ["BTCUSDT", "ETHUSDT", "SOLUSDT"]

[store]
"#;

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
            .context("the demo needs a temporary folder and could not create one")?;
        CORPORA.extract(dir.path()).context("the demo's documents could not be unpacked")?;
        let exchange = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the demo's exchange found no free port")?;
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
