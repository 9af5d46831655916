//! The threads that CPU-heavy work runs on, so that it never delays the ones that serve connections.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crossbeam_channel::{Sender, TrySendError};
use tokio::sync::oneshot;
use tribune_core::{Error, ErrorKind, Result};

/// More than this many waiting jobs means answers would come too late to matter.
const MAX_WAITING: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads behind a bounded queue. The threads end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool {
    jobs: Arc<Sender<Job>>,
}

impl Pool {
    /// One thread a core.
    pub fn start() -> std::io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        let (jobs, queue) = crossbeam_channel::bounded::<Job>(MAX_WAITING);
        for number in 0..threads {
            let queue = queue.clone();
            std::thread::Builder::new()
                .name(format!("search-{number}"))
                .spawn(move || {
                    for job in queue {
                        job();
                    }
                })?;
        }
        Ok(Self { jobs: Arc::new(jobs) })
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
        self.jobs.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => {
                Error::unavailable("the server has more searches waiting than it can do; try again in a few seconds")
            }
            TrySendError::Disconnected(_) => Error::unavailable("the server is stopping"),
        })?;
        match result.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Error::internal("a search failed unexpectedly; the log has the details")),
            Err(_) => Err(Error::new(ErrorKind::Unavailable, "the server is stopping")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
