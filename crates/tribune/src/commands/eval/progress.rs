//! Progress on a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use tokio_util::sync::CancellationToken;
use tribune_corpus::DocumentsSource;
use tribune_corpus::embedding::{EmbedReport, EmbeddingError};

use tribune_core::Source;

pub fn bar(prefix: &str, total: u64, noun: &str) -> ProgressBar {
    let bar = if std::io::stderr().is_terminal() {
        ProgressBar::new(total)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {msg}, {elapsed}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_prefix(prefix.to_owned());
    bar.set_message(noun.to_owned());
    bar
}

/// The vectors that a corpus lacks.
pub fn embed_with_progress(corpus: &DocumentsSource) -> Result<Option<EmbedReport>, EmbeddingError> {
    let bar = bar(corpus.name(), 0, "passages embedded");
    let report = corpus.embed(&CancellationToken::new(), &|state| {
        bar.set_length(state.total);
        bar.set_position(state.done);
    });
    bar.finish_and_clear();
    report
}
