//! Runs the background task of every source ([`Source::run`]) and restarts it when it fails.

use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tribune_core::{Result, Source, SourceStatus};

const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);
/// A restarted task that runs this long has recovered: the source is healthy again and the backoff starts over.
const RECOVERED_AFTER: Duration = Duration::from_secs(30);
/// How long a shutdown waits for tasks to end.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// A number from 0 to 1, so that many processes do not restart at the same moment.
pub type Jitter = Arc<dyn Fn() -> f64 + Send + Sync>;

/// Why the task of a source is not running; `None` while it is.
type Failure = Arc<Mutex<Option<String>>>;

/// The background tasks of all sources of a service.
#[derive(Default)]
pub struct Supervisor {
    failures: HashMap<String, Failure>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Supervisor {
    /// Nothing runs before [`Supervisor::start`].
    pub(crate) fn new(sources: &[Arc<dyn Source>]) -> Self {
        let failures = sources.iter().map(|source| (source.name().to_owned(), Failure::default()));
        Self { failures: failures.collect(), ..Self::default() }
    }

    /// Starts one task per source. Must be called within a runtime, and once.
    pub(crate) fn start<'s>(&self, sources: impl IntoIterator<Item = &'s Arc<dyn Source>>, jitter: &Jitter) {
        for source in sources {
            let failure = self.failures.get(source.name()).cloned().unwrap_or_default();
            let source = source.clone();
            let name = source.name().to_owned();
            let run = move |stop| source.clone().run(stop);
            self.tasks.spawn(supervise(name, run, self.stop.clone(), failure, jitter.clone()));
        }
        self.tasks.close();
    }

    /// Starts a task of no source: its failures are only logged and counted.
    pub fn also<F>(&self, name: &str, jitter: &Jitter, run: impl Fn(CancellationToken) -> F + Send + 'static)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (stop, failure) = (self.stop.clone(), Failure::default());
        self.tasks.spawn(supervise(name.to_owned(), run, stop, failure, jitter.clone()));
    }

    /// The status of a source, degraded while its background task fails.
    pub(crate) fn status(&self, source: &dyn Source) -> SourceStatus {
        let failure = self.failures.get(source.name()).and_then(|failure| failure.lock().clone());
        let Some(failure) = failure else {
            return source.status();
        };
        match source.status() {
            SourceStatus::Ready => SourceStatus::Degraded(failure),
            SourceStatus::Degraded(reason) => SourceStatus::Degraded(format!("{reason}; {failure}")),
            SourceStatus::Unready(reason) => SourceStatus::Unready(format!("{reason}; {failure}")),
        }
    }

    /// Tells every task to end and waits for them, for a few seconds at most.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(STOP_WITHIN, self.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = self.tasks.len(), "background tasks did not stop in time");
        }
    }
}

async fn supervise<F>(
    name: String,
    start: impl Fn(CancellationToken) -> F,
    stop: CancellationToken,
    failure: Failure,
    jitter: Jitter,
) where
    F: Future<Output = Result<()>>,
{
    let mut failures = 0;
    loop {
        let run = AssertUnwindSafe(start(stop.clone())).catch_unwind();
        tokio::pin!(run);
        let early = tokio::select! {
            outcome = &mut run => Some(outcome),
            () = sleep(RECOVERED_AFTER), if failures > 0 => None,
        };
        let outcome = match early {
            Some(outcome) => outcome,
            None => {
                tracing::info!(source = name, "background task runs again");
                *failure.lock() = None;
                failures = 0;
                run.await
            }
        };
        let (cause, reason) = match outcome {
            Ok(Ok(())) => {
                *failure.lock() = None;
                return;
            }
            _ if stop.is_cancelled() => return,
            Ok(Err(error)) => ("error", error.message().to_owned()),
            Err(panic) => ("panic", format!("panicked: {}", panic_message(&*panic))),
        };
        metrics::counter!("tribune_source_restarts_total", "source" => name.clone(), "cause" => cause).increment(1);
        let delay = backoff(failures, jitter());
        failures += 1;
        tracing::error!(source = name, cause, reason, failures, ?delay, "background task failed; restarting it");
        *failure.lock() = Some(format!("background task failed and is being restarted: {reason}"));
        if stop.run_until_cancelled(sleep(delay)).await.is_none() {
            return;
        }
    }
}

/// Doubles from one second to a minute; the jitter takes away up to half of it.
fn backoff(failures: u32, jitter: f64) -> Duration {
    let delay = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(failures)).min(MAX_DELAY);
    delay.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use async_trait::async_trait;
    use tokio::sync::mpsc;
    use tokio::time::Instant;
    use tribune_core::{CallContext, Document, DocumentId, Error, Hit, Query, Result, SourceFacts};

    use super::*;

    /// What one run of the task does.
    enum Run {
        Fail,
        Panic,
        Return,
        UntilStopped,
    }

    /// Plays one `Run` after the other, and says when each starts.
    struct Scripted {
        name: &'static str,
        runs: Mutex<VecDeque<Run>>,
        started: mpsc::UnboundedSender<Instant>,
    }

    #[async_trait]
    impl Source for Scripted {
        fn name(&self) -> &str {
            self.name
        }

        async fn search(&self, _: &Query, _: &CallContext) -> Result<Arc<[Hit]>> {
            Ok(Arc::default())
        }

        async fn fetch(&self, _: &DocumentId, _: &CallContext) -> Result<Option<Document>> {
            Ok(None)
        }

        fn facts(&self) -> SourceFacts {
            SourceFacts::default()
        }

        async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<()> {
            let run = self.runs.lock().pop_front();
            self.started.send(Instant::now()).expect("a listener");
            // Time stands still until the test has seen the start.
            sleep(RUN_TIME).await;
            match run.expect("a script") {
                Run::Fail => Err(Error::unavailable("no route to host")),
                Run::Panic => panic!("index out of bounds"),
                Run::Return => Ok(()),
                Run::UntilStopped => {
                    stop.cancelled().await;
                    Ok(())
                }
            }
        }
    }

    const RUN_TIME: Duration = Duration::from_millis(1);

    fn scripted(
        name: &'static str,
        runs: impl IntoIterator<Item = Run>,
    ) -> (Arc<dyn Source>, mpsc::UnboundedReceiver<Instant>) {
        let (started, starts) = mpsc::unbounded_channel();
        let runs = Mutex::new(runs.into_iter().collect());
        (Arc::new(Scripted { name, runs, started }), starts)
    }

    fn supervised(sources: &[Arc<dyn Source>]) -> Supervisor {
        let supervisor = Supervisor::new(sources);
        let no_jitter: Jitter = Arc::new(|| 0.0);
        supervisor.start(sources, &no_jitter);
        supervisor
    }

    #[tokio::test(start_paused = true)]
    async fn failed_task_restarts_with_backoff() {
        let (source, mut starts) = scripted("a", [Run::Fail, Run::Panic, Run::Fail, Run::UntilStopped]);
        let supervisor = supervised(std::slice::from_ref(&source));
        let first = starts.recv().await.expect("started");
        let failures = [(1, "no route to host"), (3, "index out of bounds"), (7, "no route")];
        for (runs, (secs, reason)) in (1..).zip(failures) {
            let started = starts.recv().await.expect("restarted");
            assert_eq!(started - first, Duration::from_secs(secs) + RUN_TIME * runs);
            let SourceStatus::Degraded(told) = supervisor.status(&*source) else {
                panic!("not degraded");
            };
            assert!(told.contains(reason), "{told}");
        }
        sleep(RECOVERED_AFTER + Duration::from_secs(1)).await;
        assert_eq!(supervisor.status(&*source), SourceStatus::Ready);
        supervisor.stop().await;
        assert!(supervisor.tasks.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn finished_task_is_not_restarted() {
        let (source, mut starts) = scripted("a", [Run::Fail, Run::Fail, Run::Return]);
        let supervisor = supervised(std::slice::from_ref(&source));
        for _ in 0..3 {
            starts.recv().await.expect("started");
        }
        supervisor.tasks.wait().await;
        assert_eq!(supervisor.status(&*source), SourceStatus::Ready, "it has nothing left to do");
    }

    #[tokio::test(start_paused = true)]
    async fn failing_task_leaves_others_alone() {
        let (bad, mut bad_starts) = scripted("bad", [Run::Panic, Run::UntilStopped]);
        let (good, mut good_starts) = scripted("good", [Run::UntilStopped]);
        let supervisor = supervised(&[bad.clone(), good.clone()]);
        good_starts.recv().await.expect("started");
        bad_starts.recv().await.expect("started");
        bad_starts.recv().await.expect("restarted");
        assert_eq!(supervisor.status(&*good), SourceStatus::Ready);
        assert!(matches!(supervisor.status(&*bad), SourceStatus::Degraded(_)));
        supervisor.stop().await;
        assert!(good_starts.try_recv().is_err(), "it was not restarted");
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_interrupts_the_backoff() {
        let (source, mut starts) = scripted("a", [Run::Fail]);
        let supervisor = supervised(std::slice::from_ref(&source));
        starts.recv().await.expect("started");
        supervisor.stop().await;
        assert!(supervisor.tasks.is_empty());
        assert!(starts.try_recv().is_err());
    }

    #[test]
    fn backoff_is_bounded_and_jitter_shortens_it() {
        assert_eq!(backoff(0, 0.0), Duration::from_secs(1));
        assert_eq!(backoff(2, 0.0), Duration::from_secs(4));
        assert_eq!(backoff(2, 1.0), Duration::from_secs(2));
        assert_eq!(backoff(u32::MAX, 0.0), MAX_DELAY);
    }
}
