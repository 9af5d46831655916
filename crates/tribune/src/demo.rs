//! What runs without a configuration: three small corpora that travel in the binary, and a simulated exchange.

use anyhow::Context;
use include_dir::{Dir, include_dir};
use tempfile::TempDir;
use tribune_corpus::{Limits, Reading, SpeechRules};

use crate::config::{Config, EmbedderChoice, MarketConfig, SourceConfig};

static CORPORA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");

/// A configuration whose files live in a folder of their own until the guard is dropped.
pub fn config() -> anyhow::Result<(Config, TempDir)> {
    let dir = tempfile::Builder::new()
        .prefix("tribune-demo-")
        .tempdir()
        .context("the demo needs a temporary folder and could not make one")?;
    CORPORA
        .extract(dir.path())
        .context("the demo's documents could not be unpacked")?;
    let source = |name: &str, title: &str, description: &str| SourceConfig {
        name: name.to_owned(),
        title: title.to_owned(),
        description: Some(description.to_owned()),
        path: dir.path().join(name),
        limits: Limits::default(),
        reading: Reading::default(),
        embedder: EmbedderChoice::MiniLm,
        ingest_dir: None,
    };
    let speeches = SourceConfig {
        reading: Reading::speeches(SpeechRules::australia()),
        ..source(
            "hansard",
            "Sample speeches",
            "Invented speeches of invented members of an Australian parliament, for trying things out.",
        )
    };
    let sources = vec![
        source(
            "manual",
            "Tribune's manual",
            "How to install, configure, connect and run Tribune.",
        ),
        source(
            "notes",
            "Sample notes",
            "Invented notes of an allotment society: planting, meetings, repairs.",
        ),
        speeches,
    ];
    let config = Config::demo(dir.path().join("data"), sources, MarketConfig::simulated()?)?;
    Ok((config, dir))
}
