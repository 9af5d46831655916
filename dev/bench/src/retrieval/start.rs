//! Time from a server's start on an existing index to its first answer.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::texts::Corpus;
use crate::{http::Connection, own::ms, process, protocol, servers::tribune::Tribune};

const READY_LIMIT: Duration = Duration::from_mins(2);
/// The median is reported.
const TIMES: usize = 5;

#[derive(Clone, Debug, Serialize)]
pub struct Start {
    pub vectors: bool,
    /// Until `/readyz` answers 200.
    pub ready_ms: f64,
    /// Until the first search is answered.
    pub answered_ms: f64,
    pub resident_bytes: u64,
}

pub async fn measure(program: Option<&Path>, corpus: &Corpus, vectors: bool) -> Result<Vec<Start>> {
    let Some(program) = program else {
        eprintln!("no tribune binary: the start of a server is not measured");
        return Ok(Vec::new());
    };
    let mut starts = Vec::new();
    for vectors in [false, true].into_iter().filter(|with| vectors || !with) {
        eprintln!("starting a server, {} vectors", if vectors { "with" } else { "without" });
        let tribune = Tribune::configure(program, &corpus.dir, &corpus.folder())?;
        if vectors {
            // The serving benchmark configures keyword search only.
            let config = fs::read_to_string(&tribune.config)?;
            let with_model = config.replace("embedder = \"none\"\n", "");
            ensure!(with_model != config, "the configuration has no embedder to switch on");
            fs::write(&tribune.config, with_model)?;
        }
        let questions = corpus.questions()?;
        let mut times = Vec::with_capacity(TIMES);
        for question in questions.iter().rev().take(TIMES) {
            times.push(once(&tribune, corpus, vectors, question).await?);
        }
        times.sort_by(|a, b| a.answered_ms.total_cmp(&b.answered_ms));
        starts.push(times.swap_remove(TIMES / 2));
    }
    Ok(starts)
}

async fn once(tribune: &Tribune, corpus: &Corpus, vectors: bool, question: &str) -> Result<Start> {
    let begun = Instant::now();
    let server = tribune.start(&corpus.dir.join("serve.log"), READY_LIMIT).await?;
    let ready_ms = ms(begun.elapsed());
    let mut connection = Connection::open(server.addr).await?;
    let request = protocol::search_request(server.addr, 1, question);
    let answer = connection.exchange(&request).await?;
    let answered_ms = ms(begun.elapsed());
    let found = memchr::memmem::find(answer.body, b"doc-").is_some();
    ensure!(answer.status == 200 && found, "the first search found nothing");
    let resident_bytes = process::memory(server.pid).context("memory of the server")?.now_kib * 1024;
    server.stop().await?;
    Ok(Start { vectors, ready_ms, answered_ms, resident_bytes })
}
