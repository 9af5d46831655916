//! `tribune stdio`: standard output carries protocol only.

use std::process::ExitCode;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use super::serve::{keep_indexed, stop_on_signal};
use super::{config, runtime};
use crate::cli::{Common, Stdio};
use crate::compose::{Stay, compose};
use crate::logging;

pub fn run(common: &Common, args: &Stdio) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(common)?;
    let (config, _demo) = config(common)?;
    let parts = compose(&config, config.settings(config.listen, false))?;
    let (service, corpora) = (parts.service.clone(), parts.corpora.clone());
    let profile = service.profile(&args.profile).cloned().with_context(|| {
        let known: Vec<&str> = service.profiles().map(|profile| profile.name()).collect();
        format!(
            "there is no profile `{}`; there are: {}",
            args.profile,
            known.join(", ")
        )
    })?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let cancel = CancellationToken::new();
    for corpus in &corpora {
        drop(corpus.refresh());
    }
    let served = runtime()?.block_on(async {
        let begun = parts.begin(Stay::Serving).await?;
        keep_indexed(&config, &corpora, &cancel);
        stop_on_signal(service.clone());
        let served = tribune_server::serve_stdio(service, profile).await;
        // Before the runtime waits for its threads: one may be in the middle of indexing.
        cancel.cancel();
        begun.end().await;
        Ok::<_, anyhow::Error>(served)
    });
    served??;
    Ok(ExitCode::SUCCESS)
}
