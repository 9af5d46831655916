//! `tribune search`, `fetch` and `call`: tools called as a host calls them.

#![allow(clippy::disallowed_methods, reason = "a command runs in real time")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tribune_core::wire::object;
use tribune_core::{CallContext, JsonObject, Principal, Source, SourceStatus, ToolOutput};
use tribune_corpus::{DocumentsSource, IndexError};

use super::index::{PATIENCE, update_with_progress};
use super::progress::Progress;
use super::{config, print, runtime};
use crate::cli::{Call, Common, Fetch, Output, Search};
use crate::compose::{Mode, compose};
use crate::config::Config;
use crate::logging;

pub fn search(common: &Common, args: &Search) -> anyhow::Result<ExitCode> {
    let arguments = object(json!({"query": args.query.join(" "), "limit": args.limit}));
    ask(common, "search", arguments, &args.output, |answer| {
        let mut text = String::new();
        for (rank, hit) in (1..).zip(answer["results"].as_array().into_iter().flatten()) {
            let part = |name: &str| hit[name].as_str().unwrap_or_default();
            text.push_str(&format!(
                "{rank}. {}\n   {}\n   id  {}\n   url {}\n\n",
                part("title"),
                part("text"),
                part("id"),
                part("url")
            ));
        }
        for gap in answer["missing"].as_array().into_iter().flatten() {
            text.push_str(&format!(
                "missing: {}: {}\n",
                gap["source"].as_str().unwrap_or_default(),
                gap["reason"].as_str().unwrap_or_default()
            ));
        }
        if text.is_empty() { "nothing found".to_owned() } else { text.trim_end().to_owned() }
    })
}

pub fn fetch(common: &Common, args: &Fetch) -> anyhow::Result<ExitCode> {
    let arguments = object(json!({"id": args.id}));
    ask(common, "fetch", arguments, &args.output, |answer| {
        let part = |name: &str| answer[name].as_str().unwrap_or_default();
        let mut text = format!("{}\n{}\n", part("title"), part("url"));
        for (name, value) in answer["metadata"].as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{name}: {value}\n"));
        }
        format!("{text}\n{}", part("text").trim_end())
    })
}

pub fn call(common: &Common, args: &Call) -> anyhow::Result<ExitCode> {
    let arguments: JsonObject = serde_json::from_str(&args.arguments).map_err(|error| {
        let tool = &args.tool;
        anyhow!("the arguments are not a JSON object ({error}); write them like this: tribune call {tool} '{{\"argument\": \"value\"}}'")
    })?;
    ask(common, &args.tool, arguments, &args.output, |answer| serde_json::to_string_pretty(answer).unwrap_or_default())
}

fn ask(
    common: &Common,
    tool: &str,
    arguments: JsonObject,
    output: &Output,
    readable: impl FnOnce(&Value) -> String,
) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(&quiet(common))?;
    let config = config(common)?;
    let parts = compose(&config, config.settings(config.listen, false), Mode::Command)?;
    let (service, corpora) = (parts.service.clone(), parts.corpora.clone());
    for corpus in &corpora {
        make_ready(&config, corpus)?;
        if config.file.is_some() {
            embed_few(corpus);
        }
    }
    let profile = parts.profile(&output.profile)?;
    if config.demo.is_some() && needs_user(&profile, tool) {
        eprintln!(
            "tribune: the demo forgets what `{tool}` changes when this command ends; `tribune init` writes a configuration that keeps it"
        );
    }
    let answer = runtime()?.block_on(async {
        let _running = parts.start().await?;
        run(&service, &profile, tool, arguments).await
    })?;
    if output.json {
        print(answer.json())?;
    } else {
        print(&readable(&serde_json::from_str(answer.json())?))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn needs_user(profile: &tribune_server::Profile, tool: &str) -> bool {
    let state = profile.state();
    let registered = state.registry.lookup(tool);
    registered.is_some_and(|registered| registered.tool().needs_user())
}

/// On a terminal the answer is enough; only warnings are logged.
pub(super) fn quiet(common: &Common) -> Common {
    let log = common.log.clone().filter(|log| !log.is_empty());
    Common { log: log.or_else(|| Some("warn".to_owned())), ..common.clone() }
}

pub(super) async fn run(
    service: &tribune_server::Service,
    profile: &tribune_server::Profile,
    tool: &str,
    arguments: JsonObject,
) -> anyhow::Result<ToolOutput> {
    let state = profile.state();
    let Some(registered) = state.registry.lookup(tool) else {
        let known: Vec<&str> = state.registry.names().collect();
        bail!("there is no tool `{tool}`; there are: {}", known.join(", "));
    };
    let cx = CallContext::new(Principal::Local, Instant::now() + service.settings.config.call_timeout);
    Ok(tribune_server::service::call::run(service, &registered, arguments, &cx).await?)
}

/// Builds missing vectors if they are few; otherwise says how to build them.
fn embed_few(corpus: &DocumentsSource) {
    const FEW: u64 = 300;
    let Ok(snapshot) = corpus.seen_in_full() else { return };
    let (passages, covered) = snapshot.coverage();
    let missing = passages.saturating_sub(covered);
    if !corpus.has_model() || missing == 0 {
        return;
    }
    if missing > FEW {
        let name = corpus.name();
        eprintln!(
            "tribune: source `{name}`: keyword search only, because {missing} passages have no vector yet; `tribune index` builds them"
        );
    } else if let Err(error) = corpus.embed(&CancellationToken::new(), &|_| {}) {
        tracing::debug!(%error, "keyword search only");
    }
}

/// Updates a corpus, unless it has an index and another process is updating it.
pub(super) fn make_ready(config: &Config, corpus: &DocumentsSource) -> anyhow::Result<()> {
    corpus.refresh()?;
    let indexed = corpus.status() == SourceStatus::Ready;
    if indexed && !config.server.auto_index {
        return Ok(());
    }
    // An existing index answers at once; without one, wait.
    let patience = if indexed { Duration::ZERO } else { PATIENCE };
    match update_with_progress(corpus, &Progress::start(), patience) {
        Ok(_) => Ok(()),
        Err(error) if indexed => {
            if !matches!(error.downcast_ref::<IndexError>(), Some(IndexError::Busy(_))) {
                eprintln!("tribune: {}", super::chain(&error));
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}
