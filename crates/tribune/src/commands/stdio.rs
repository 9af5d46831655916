//! `tribune stdio`: standard output carries protocol only.

use std::process::ExitCode;

use super::serve::stop_on_signal;
use super::{config, runtime};
use crate::cli::Common;
use crate::compose::{Mode, compose};
use crate::logging;

pub fn run(common: &Common, profile: &str) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(common)?;
    let config = config(common)?;
    let parts = compose(&config, config.settings(config.listen, false), Mode::Server)?;
    let (service, corpora) = (parts.service.clone(), parts.corpora.clone());
    let profile = parts.profile(profile)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    for corpus in &corpora {
        drop(corpus.refresh());
    }
    let served = runtime()?.block_on(async {
        let running = parts.start().await?;
        stop_on_signal(service.clone());
        let served = tribune_server::serve_stdio(service, profile).await;
        running.stop().await;
        Ok::<_, anyhow::Error>(served)
    });
    served??;
    Ok(ExitCode::SUCCESS)
}
