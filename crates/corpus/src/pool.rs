//! The threads for CPU-heavy work, so that it never delays the threads that serve connections.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::oneshot;
use tribune_core::{Error, Result};

/// With more waiting jobs than this, answers would come too late.
const MAX_WAITING: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads behind a bounded queue. The threads end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool(Arc<Owner>);

struct Owner(Arc<Queue>);

/// With a condition variable, because idle threads that spin would slow down the serving threads on few cores.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Work that no caller waits for; runs only while no search is queued.
    background: VecDeque<Job>,
    background_running: usize,
    background_limit: usize,
    closed: bool,
}

impl Pool {
    /// One thread per core for searches; background work uses at most all cores but one.
    pub fn start() -> std::io::Result<Self> {
        Self::serving(cores())
    }

    /// Background work may use every core: for commands that only index.
    pub fn for_background() -> std::io::Result<Self> {
        Self::with(cores() + 1, cores())
    }

    fn serving(cores: usize) -> std::io::Result<Self> {
        Self::with(cores.max(2), (cores - 1).max(1))
    }

    /// A background job can wait minutes for an endpoint, so at least one thread never takes one: `threads` must be
    /// greater than `background_limit`.
    fn with(threads: usize, background_limit: usize) -> std::io::Result<Self> {
        debug_assert!(threads > background_limit);
        let queue = Arc::new(Queue::default());
        queue.lock().background_limit = background_limit;
        for number in 0..threads {
            let queue = queue.clone();
            std::thread::Builder::new().name(format!("search-{number}")).spawn(move || {
                while let Some((job, background)) = queue.next() {
                    // A panic must not end the thread; the caller sees a closed channel.
                    drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)));
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

    /// Queues work that must not delay searches.
    pub fn background(&self, work: impl FnOnce() + Send + 'static) {
        self.0.0.lock().background.push_back(Box::new(work));
        self.0.0.work.notify_one();
    }

    /// Runs `work` on a pool thread. It never starts if the caller is gone by then.
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

    /// `false` if too many jobs wait already.
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

    /// Waits for a job, and tells whether it is background work; `None` once the pool is closed.
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
    async fn panic_costs_only_its_own_job() {
        let pool = Pool::start().expect("pool");
        for _ in 0..64 {
            let failed = pool.run(|| -> Result<()> { panic!("on purpose") }).await;
            assert_eq!(failed.expect_err("panicked").kind(), ErrorKind::Internal);
            pool.background(|| panic!("on purpose"));
        }
        assert_eq!(pool.run(|| Ok(6 * 7)).await.expect("still alive"), 42);
    }

    #[tokio::test]
    async fn searches_run_while_background_jobs_hang() {
        for cores in 1..=4 {
            let pool = Pool::serving(cores).expect("pool");
            let (release, hang) = std::sync::mpsc::channel::<()>();
            let hang = Arc::new(Mutex::new(hang));
            let (started, mut running) = tokio::sync::mpsc::unbounded_channel();
            for _ in 0..cores + 2 {
                let (hang, started) = (hang.clone(), started.clone());
                pool.background(move || {
                    let _ = started.send(());
                    let _ = hang.lock().unwrap_or_else(PoisonError::into_inner).recv();
                });
            }
            for _ in 0..pool.background_width() {
                running.recv().await.expect("a background job has started");
            }
            assert_eq!(pool.run(move || Ok(cores)).await.expect("a free thread"), cores);
            drop(release);
        }
    }
}
