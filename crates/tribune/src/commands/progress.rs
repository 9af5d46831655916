//! Progress bars, on a terminal only.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tribune_corpus::{EmbedProgress, IndexProgress};

use super::print;

pub struct Progress {
    bars: MultiProgress,
    open: Mutex<HashMap<(String, Step), ProgressBar>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Files,
    Passages,
}

impl Step {
    const fn template(self) -> &'static str {
        match self {
            Self::Files => "{prefix} [{bar:30}] {pos}/{len} files, {msg} documents, {elapsed}",
            Self::Passages => "{prefix} [{bar:30}] {pos}/{len} passages embedded, {per_sec}, {eta} left",
        }
    }
}

impl Progress {
    pub fn start() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self {
            bars: MultiProgress::with_draw_target(target),
            open: Mutex::default(),
        }
    }

    pub fn files(&self, source: &str, state: IndexProgress) {
        self.show(
            source,
            Step::Files,
            state.files_done,
            state.files_total,
            state.documents,
        );
    }

    pub fn passages(&self, source: &str, state: EmbedProgress) {
        self.show(source, Step::Passages, state.done, state.total, 0);
    }

    fn show(&self, source: &str, step: Step, done: u64, total: u64, documents: u64) {
        if total == 0 {
            return;
        }
        let mut open = self.open();
        let bar = open.entry((source.to_owned(), step)).or_insert_with(|| {
            let bar = self.bars.add(ProgressBar::new(total));
            if let Ok(style) = ProgressStyle::with_template(step.template()) {
                bar.set_style(style);
            }
            bar.set_prefix(source.to_owned());
            bar
        });
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(documents.to_string());
    }

    pub fn done(&self, source: &str, step: Step) {
        if let Some(bar) = self.open().remove(&(source.to_owned(), step)) {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
    }

    /// A line on standard output, above the bars.
    pub fn print(&self, text: &str) -> anyhow::Result<()> {
        self.bars.suspend(|| print(text))
    }

    /// A line on standard error, above the bars.
    pub fn complain(&self, text: &str) {
        self.bars.suspend(|| eprintln!("tribune: {text}"));
    }

    fn open(&self) -> MutexGuard<'_, HashMap<(String, Step), ProgressBar>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
