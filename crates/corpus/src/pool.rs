//! The threads that CPU-heavy work runs on, so that it never delays the ones that serve connections.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::oneshot;
use tribune_core::{Error, Result};

/// More than this many waiting jobs means answers would come too late to matter.
const MAX_WAITING: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads behind a bounded queue. The threads end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool(Arc<Owner>);

struct Owner(Arc<Queue>);

/// A lock and a condition: idle threads sleep instead of spinning, which on few cores would take
/// the time from the threads that serve.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Work that nobody waits for; done by the threads that searches leave over.
    background: VecDeque<Job>,
    background_running: usize,
    background_limit: usize,
    closed: bool,
}

impl Pool {
    /// One thread a core; background work leaves one of them to searches.
    pub fn start() -> std::io::Result<Self> {
        let threads = cores();
        Self::with(threads, (threads - 1).max(1))
    }

    /// All cores for background work: for programs that do nothing else.
    pub fn for_background() -> std::io::Result<Self> {
        Self::with(cores(), cores())
    }

    fn with(threads: usize, background_limit: usize) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        queue.lock().background_limit = background_limit;
        for number in 0..threads {
            let queue = queue.clone();
            std::thread::Builder::new()
                .name(format!("search-{number}"))
                .spawn(move || {
                    while let Some((job, background)) = queue.next() {
                        job();
                        if background {
                            queue.background_done();
                        }
                    }
                })?;
        }
        Ok(Self(Arc::new(Owner(queue))))
    }

    /// How many background jobs run at once.
    pub fn background_width(&self) -> usize {
        self.0.0.lock().background_limit
    }

    /// Hands over work that must not delay searches. It must not panic.
    pub fn background(&self, work: impl FnOnce() + Send + 'static) {
        self.0.0.lock().background.push_back(Box::new(work));
        self.0.0.work.notify_one();
    }

    /// Runs `work` on a pool thread. If the caller goes away while it waits, it never starts.
    pub async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        let (answer, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !answer.is_closed() {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                drop(answer.send(outcome));
            }
        });
        if !self.0.0.push(job) {
            return Err(Error::unavailable(
                "the server has more searches waiting than it can do; try again in a few seconds",
            ));
        }
        match result.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Error::internal("a search failed unexpectedly; the log has the details")),
            Err(_) => Err(Error::unavailable("the server is stopping")),
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, NonZeroUsize::get)
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `false` when too many jobs wait already.
    fn push(&self, job: Job) -> bool {
        let mut state = self.lock();
        if state.waiting.len() >= MAX_WAITING {
            return false;
        }
        state.waiting.push_back(job);
        drop(state);
        self.work.notify_one();
        true
    }

    /// Waits for a job and says whether it is of the background; `None` when there will be no more.
    fn next(&self) -> Option<(Job, bool)> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.waiting.pop_front() {
                return Some((job, false));
            }
            if state.background_running < state.background_limit
                && let Some(job) = state.background.pop_front()
            {
                state.background_running += 1;
                return Some((job, true));
            }
            if state.closed {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn background_done(&self) {
        self.lock().background_running -= 1;
        self.work.notify_one();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_core::ErrorKind;

    #[tokio::test]
    async fn work_runs_and_a_panic_costs_only_its_own_job() {
        let pool = Pool::start().expect("pool");
        for _ in 0..64 {
            let failed = pool.run(|| -> Result<()> { panic!("on purpose") }).await;
            assert_eq!(failed.expect_err("panicked").kind(), ErrorKind::Internal);
        }
        assert_eq!(pool.run(|| Ok(6 * 7)).await.expect("still alive"), 42);
    }
}
