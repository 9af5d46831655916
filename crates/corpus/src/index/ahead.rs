//! Reads keys on several threads, ahead of the one that indexes them: extraction takes longer than indexing.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use parking_lot::Mutex;

use crate::format::{Reason, Record, Sink, Stop};
use crate::provider::{Item, Provider};

/// Keys that are being read or wait to be indexed, for each thread.
const KEYS_AHEAD: usize = 2;
/// What one key may have waiting.
const FOUND_AHEAD: usize = 8;
const MAX_THREADS: usize = 8;

/// What a provider gives to its sink.
pub(super) enum Found {
    Record(Option<u64>, Box<Record>, Vec<String>),
    Fault(Option<u64>, bool, String),
    Unreadable(Reason, String),
}

/// One key to read, and where what it holds goes.
type Job<'a> = (&'a Item, SyncSender<Found>);

/// Gives each item in order to `take`, with what it holds, until `take` breaks.
pub(super) fn read_ahead<B>(
    provider: &dyn Provider,
    items: &[Item],
    mut take: impl FnMut(&Item, Receiver<Found>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let is_over = AtomicBool::new(false);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(items.len());
    std::thread::scope(|scope| {
        let (jobs, waiting): (Sender<Job<'_>>, _) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let is_over = &is_over;
        for _ in 0..threads {
            let waiting = waiting.clone();
            scope.spawn(move || {
                loop {
                    let job = waiting.lock().recv();
                    let Ok((item, found)) = job else { break };
                    // Only a receiver that is gone stops a reading.
                    let _ = provider.read(&item.key, &mut Ahead { found, is_over });
                }
            });
        }
        drop(waiting);
        let mut upcoming = items.iter();
        let mut begun = VecDeque::new();
        loop {
            while begun.len() < threads * KEYS_AHEAD
                && let Some(item) = upcoming.next()
            {
                let (sender, found) = sync_channel(FOUND_AHEAD);
                // The threads are there as long as `jobs` is.
                let _ = jobs.send((item, sender));
                begun.push_back((item, found));
            }
            let Some((item, found)) = begun.pop_front() else { return ControlFlow::Continue(()) };
            take(item, found).map_break(|end| {
                is_over.store(true, Ordering::Release);
                end
            })?;
        }
    })
}

struct Ahead<'a> {
    found: SyncSender<Found>,
    is_over: &'a AtomicBool,
}

impl Sink for Ahead<'_> {
    fn record(&mut self, line: Option<u64>, record: Record, warnings: Vec<String>) -> Result<(), Stop> {
        self.found.send(Found::Record(line, Box::new(record), warnings)).map_err(|_| Stop)
    }

    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        let _ = self.found.send(Found::Fault(line, skipped, problem));
    }

    fn unreadable(&mut self, reason: Reason, problem: String) {
        let _ = self.found.send(Found::Unreadable(reason, problem));
    }

    fn is_wanted(&self) -> bool {
        !self.is_over.load(Ordering::Acquire)
    }
}

impl Found {
    pub(super) fn give(self, sink: &mut dyn Sink) -> Result<(), Stop> {
        match self {
            Self::Record(line, record, warnings) => sink.record(line, *record, warnings),
            Self::Fault(line, skipped, problem) => {
                sink.fault(line, skipped, problem);
                Ok(())
            }
            Self::Unreadable(reason, problem) => {
                sink.unreadable(reason, problem);
                Ok(())
            }
        }
    }
}
