//! Log lines on standard error, written by a thread of their own so that a slow reader of them
//! never delays an answer.

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

use crate::cli::{Common, LogFormat};

/// rmcp and tantivy may put messages and paths into their lines; what an operator needs is in ours.
const DEFAULT: &str = "info,rmcp=off,tantivy=warn";

/// Logs until the guard is dropped.
pub fn start(common: &Common) -> anyhow::Result<WorkerGuard> {
    let filter = match &common.log {
        // A bare level sets ours alone.
        Some(level) if level.parse::<tracing::Level>().is_ok() => {
            format!("{DEFAULT},{level},rmcp=off,tantivy=warn")
        }
        Some(filter) => filter.clone(),
        None => DEFAULT.to_owned(),
    };
    let filter = EnvFilter::try_new(&filter).map_err(|e| {
        anyhow::anyhow!("--log `{filter}` is not a level or filter ({e}); use error, warn, info, debug or trace")
    })?;
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    match common.log_format {
        LogFormat::Text => lines
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .with_target(false)
            .init(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .init(),
    }
    Ok(guard)
}
