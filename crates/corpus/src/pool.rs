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
    closed: bool,
}

impl Pool {
    /// One thread a core.
    pub fn start() -> std::io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        let queue = Arc::new(Queue::default());
        for number in 0..threads {
            let queue = queue.clone();
            std::thread::Builder::new()
                .name(format!("search-{number}"))
                .spawn(move || {
                    while let Some(job) = queue.next() {
                        job();
                    }
                })?;
        }
        Ok(Self(Arc::new(Owner(queue))))
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

impl Queue {
    /// `false` when too many jobs wait already.
    fn push(&self, job: Job) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.waiting.len() >= MAX_WAITING {
            return false;
        }
        state.waiting.push_back(job);
        drop(state);
        self.work.notify_one();
        true
    }

    /// Waits for a job; `None` when there will be no more.
    fn next(&self) -> Option<Job> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .work
            .wait_while(state, |state| state.waiting.is_empty() && !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting.pop_front()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
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
