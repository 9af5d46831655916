//! Progress bars, on a terminal only.

use std::collections::HashMap;
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use tribune_core::escape_controls;

use super::print;

const TEMPLATE: &str = "{prefix} [{bar:30}] {pos}/{len} {msg}, {elapsed}, {eta} left";

pub struct Progress {
    bars: MultiProgress,
    open: Mutex<HashMap<(String, Step), ProgressBar>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Files,
    Passages,
    Queries,
}

impl Step {
    const fn noun(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Passages => "passages embedded",
            Self::Queries => "queries",
        }
    }
}

impl Progress {
    pub fn start() -> Self {
        let target =
            if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bars: MultiProgress::with_draw_target(target), open: Mutex::default() }
    }

    pub fn show(&self, source: &str, step: Step, done: u64, total: u64) {
        if total == 0 {
            return;
        }
        let mut open = self.open.lock();
        let bar = open.entry((source.to_owned(), step)).or_insert_with(|| {
            let bar = self.bars.add(ProgressBar::new(total));
            if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                bar.set_style(style);
            }
            bar.set_prefix(source.to_owned());
            bar.set_message(step.noun());
            bar
        });
        bar.set_length(total);
        bar.set_position(done);
    }

    pub fn done(&self, source: &str, step: Step) {
        if let Some(bar) = self.open.lock().remove(&(source.to_owned(), step)) {
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
        self.bars.suspend(|| eprintln!("tribune: {}", escape_controls(text)));
    }
}
