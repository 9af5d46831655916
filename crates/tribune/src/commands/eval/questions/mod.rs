//! A user's own questions, asked of the configured sources through the `search` tool, just as a host
//! would ask them.

#![allow(clippy::disallowed_methods, reason = "it measures")]

mod list;
mod outcome;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tribune_core::wire::object;
use tribune_core::{CallContext, DocumentId, Principal, Source};
use tribune_corpus::{DocumentsSource, IndexError};
use tribune_server::{Profile, Service};

use self::list::{Question, read};
use self::outcome::{Expected, Outcome, QuestionResult};
use super::{above_floor, files};
use crate::cli::{Common, Eval};
use crate::commands::ask::{self, make_ready};
use crate::commands::index::embed_with_progress;
use crate::commands::progress::{Progress, Step};
use crate::commands::{config, print_either, runtime};
use crate::compose::{Mode, Parts, compose};

/// The tool's maximum; documents ranked below it count as not found.
const DEPTH: usize = 50;

pub fn run(common: &Common, args: &Eval, file: &Path) -> anyhow::Result<ExitCode> {
    let mut questions = read(file)?;
    questions.truncate(args.limit());
    let config = config(common)?.only_documents();
    let Parts { service, corpora, .. } = compose(&config, config.settings(config.listen, false), Mode::Command)?;
    let mut notes = Vec::new();
    for corpus in &corpora {
        make_ready(&config, corpus)?;
        notes.extend(build_vectors(corpus, config.server.auto_index)?);
    }
    let profile = service.default_profile();
    if profile.sources().is_empty() {
        bail!("there are no sources to search; add a [[sources]] table to the configuration");
    }
    let examiner = Examiner { service: &service, profile };
    let outcome = Outcome {
        file: file.display().to_string(),
        sources: profile.sources().iter().map(|source| source.name().to_owned()).collect(),
        results: runtime()?.block_on(examiner.ask_all(&questions, file))?,
        notes,
    };
    if let Some(path) = &args.per_query {
        files::write_lines(path, outcome.lines())?;
    }
    print_either(args.json, &outcome.json(), || outcome.readable())?;
    Ok(above_floor(args, outcome.mean().ndcg_10))
}

/// Builds the vectors that a source lacks, if it may be changed; says what is still missing of them.
fn build_vectors(corpus: &DocumentsSource, may_build: bool) -> anyhow::Result<Option<String>> {
    if may_build {
        match embed_with_progress(corpus, &Progress::start()) {
            Ok(_) | Err(IndexError::Busy(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let (passages, covered) = corpus.seen_in_full()?.coverage();
    let name = corpus.name();
    let is_partial = covered > 0 && covered < passages;
    Ok(is_partial.then(|| format!("source `{name}`: {covered} of {passages} passages have vectors so far")))
}

struct Examiner<'a> {
    service: &'a Service,
    profile: &'a Profile,
}

impl Examiner<'_> {
    async fn ask_all(&self, questions: &[Question], file: &Path) -> anyhow::Result<Vec<QuestionResult>> {
        let progress = Progress::start();
        if let Some(first) = questions.first() {
            self.found(&first.text).await?; // not timed: it loads what the others find loaded
        }
        let mut results = Vec::with_capacity(questions.len());
        for (done, question) in (1..).zip(questions) {
            let place = || format!("{}:{}", file.display(), question.line);
            let mut expected = Vec::with_capacity(question.expected.len());
            for id in &question.expected {
                expected.push(self.resolve(id).await.with_context(place)?);
            }
            let started = Instant::now();
            let found = self.found(&question.text).await.with_context(place)?;
            let ms = started.elapsed().as_secs_f64() * 1000.0;
            results.push(QuestionResult::new(question, expected, found, ms));
            progress.show("questions", Step::Queries, done, questions.len() as u64);
        }
        progress.done("questions", Step::Queries);
        Ok(results)
    }

    /// The ids that the tool answers with, best first.
    async fn found(&self, question: &str) -> anyhow::Result<Vec<String>> {
        let arguments = object(json!({"query": question, "limit": DEPTH}));
        let answer = ask::run(self.service, self.profile, "search", arguments).await?;
        let answer: Value = serde_json::from_str(answer.json())?;
        if let Some(gap) = answer["missing"].as_array().and_then(|gaps| gaps.first()) {
            // Without it, the figures would be those of something else.
            bail!("source {} could not answer: {}", gap["source"], gap["reason"]);
        }
        let results = answer["results"].as_array().into_iter().flatten();
        let ids = results.filter_map(|hit| hit["id"].as_str().map(str::to_owned));
        Ok(ids.collect())
    }

    /// The document that an expected id means, whether it names its source or not.
    async fn resolve(&self, text: &str) -> anyhow::Result<Expected> {
        if let Ok(id) = DocumentId::parse(text)
            && self.holds(&id).await?
        {
            return Ok(Expected::new(text, true));
        }
        let mut held = Vec::new();
        for source in self.profile.sources() {
            if let Ok(id) = DocumentId::new(source.name(), text)
                && self.holds(&id).await?
            {
                held.push(id.as_str().to_owned());
            }
        }
        match held.as_slice() {
            [] => Ok(Expected::new(text, false)),
            [only] => Ok(Expected::new(only, true)),
            many => bail!("`{text}` is in more than one source; write {}", many.join(" or ")),
        }
    }

    async fn holds(&self, id: &DocumentId) -> anyhow::Result<bool> {
        let cx = CallContext::new(Principal::Local, Instant::now() + self.service.settings.config.call_timeout);
        for source in self.profile.sources().iter().filter(|source| source.owns(id.scheme())) {
            if source.fetch(id, &cx).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
