//! Callers who ask the same at the same time share one request, and its answer for a short while after.
//!
//! Why not `moka::future::Cache::try_get_with`: it runs the request inside the first caller, so that the request is sent,
//! and its weight paid, a second time if that caller goes away; and its entries age by a clock of its own.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tribune_clock::Clock;

use super::error::RestError;
use crate::moment::Stamped;

/// Most different requests under way or fresh. The weight budget allows fewer in any window; this
/// holds where the budget is generous.
const MAX_REQUESTS: usize = 1024;

/// An answer, shared by all callers with the same request.
pub type Shared<T> = Result<Arc<Stamped<T>>, RestError>;

/// A request that runs on a task of its own, so that a caller who goes away takes nothing from the others. Its output
/// is when the answer came, and the answer: of one type for each key.
type Request = futures::future::Shared<BoxFuture<'static, (Instant, Result<Arc<dyn Any + Send + Sync>, RestError>)>>;

pub(super) struct Coalescer {
    requests: Mutex<HashMap<String, Request>>,
    /// How long an answer is reused; zero shares only requests in flight.
    window: Duration,
    clock: Arc<dyn Clock>,
}

impl Coalescer {
    pub(super) fn new(window: Duration, clock: &Arc<dyn Clock>) -> Self {
        Self { requests: Mutex::default(), window, clock: Arc::clone(clock) }
    }

    /// The answer under `key`: a fresh one, that of a request under way, or that of a new request.
    pub(super) async fn get<T, F>(&self, key: String, fetch: F) -> Shared<T>
    where
        T: Send + Sync + 'static,
        F: Future<Output = Result<Stamped<T>, RestError>> + Send + 'static,
    {
        let (_, answer) = self.join(key, fetch)?.await;
        answer?.downcast().map_err(|_| RestError::Abandoned)
    }

    fn join<T, F>(&self, key: String, fetch: F) -> Result<Request, RestError>
    where
        T: Send + Sync + 'static,
        F: Future<Output = Result<Stamped<T>, RestError>> + Send + 'static,
    {
        let now = self.clock.monotonic();
        let mut requests = self.requests.lock();
        requests.retain(|_, request| match request.peek() {
            None => true,
            Some((came, answer)) => answer.is_ok() && now.saturating_duration_since(*came) < self.window,
        });
        if let Some(request) = requests.get(&key) {
            return Ok(request.clone());
        }
        if requests.len() >= MAX_REQUESTS {
            requests.retain(|_, request| request.peek().is_none());
        }
        if requests.len() >= MAX_REQUESTS {
            return Err(RestError::Crowded);
        }
        let clock = Arc::clone(&self.clock);
        let answer = AssertUnwindSafe(fetch).catch_unwind().map(move |fetched| {
            let answer = fetched.unwrap_or(Err(RestError::Abandoned));
            (clock.monotonic(), answer.map(|answer| Arc::new(answer) as _))
        });
        let request = answer.boxed().shared();
        requests.insert(key, request.clone());
        drop(requests);
        tokio::spawn(request.clone());
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
    use crate::testing::ManualClock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;
    use tribune_clock::SystemClock;

    struct Bench {
        clock: Arc<ManualClock>,
        coalescer: Arc<Coalescer>,
        asked: Arc<AtomicUsize>,
        /// A request is answered once it has one of these.
        answers: Arc<Semaphore>,
    }

    impl Bench {
        fn new(window_ms: u64, answers: usize) -> Self {
            let clock = Arc::new(ManualClock::at(0));
            let shared: Arc<dyn Clock> = clock.clone();
            let coalescer = Coalescer::new(Duration::from_millis(window_ms), &shared);
            Self {
                clock,
                coalescer: Arc::new(coalescer),
                asked: Arc::default(),
                answers: Arc::new(Semaphore::new(answers)),
            }
        }

        /// Answers how many times it was asked.
        fn fetch(&self) -> impl Future<Output = Result<Stamped<usize>, RestError>> + Send + use<> {
            let (asked, answers) = (self.asked.clone(), self.answers.clone());
            async move {
                let value = asked.fetch_add(1, Ordering::SeqCst) + 1;
                answers.acquire().await.expect("open").forget();
                Ok(Stamped {
                    value,
                    exchange_time: None,
                    sent: Moment::now(&SystemClock),
                    received: Moment::now(&SystemClock),
                    simulated: false,
                })
            }
        }

        async fn ask(&self, key: &str) -> Result<usize, RestError> {
            let answer = self.coalescer.get(key.to_owned(), self.fetch()).await;
            answer.map(|answer| answer.value)
        }

        async fn fail(&self, error: RestError) -> Result<usize, RestError> {
            let fetch = async {
                tokio::task::yield_now().await;
                Err(error)
            };
            let answer = self.coalescer.get("key".to_owned(), fetch).await;
            answer.map(|answer| answer.value)
        }
    }

    #[tokio::test]
    async fn callers_share_one_request_and_its_fresh_answer() {
        let bench = Bench::new(1_000, 2);
        let all = futures::future::join_all((0..500).map(|_| bench.ask("key"))).await;
        assert!(all.into_iter().all(|answer| answer == Ok(1)));
        bench.clock.advance_ms(999);
        assert_eq!(bench.ask("key").await, Ok(1));
        bench.clock.advance_ms(1);
        assert_eq!(bench.ask("key").await, Ok(2));
    }

    #[tokio::test]
    async fn old_answers_are_dropped_by_the_next_request() {
        let bench = Bench::new(100, 10);
        for at in 0..5 {
            bench.ask(&at.to_string()).await.expect("answer");
        }
        bench.clock.advance_ms(100);
        bench.ask("another").await.expect("answer");
        assert_eq!(bench.coalescer.requests.lock().len(), 1);
    }

    #[tokio::test]
    async fn cancelled_caller_keeps_shared_fetch() {
        let bench = Bench::new(0, 0);
        assert_eq!(bench.ask("key").now_or_never(), None, "the caller goes away");
        let second = bench.ask("key");
        bench.answers.add_permits(1);
        assert_eq!(second.await, Ok(1));
        bench.answers.add_permits(1);
        assert_eq!(bench.ask("key").await, Ok(2), "without a window nothing is given again");
    }

    #[tokio::test]
    async fn abandoned_answer_expires() {
        let bench = Bench::new(1_000, 0);
        assert_eq!(bench.ask("key").now_or_never(), None);
        bench.answers.add_permits(1);
        let is_answered = || {
            let requests = bench.coalescer.requests.lock();
            requests["key"].peek().is_some()
        };
        while !is_answered() {
            tokio::task::yield_now().await;
        }
        bench.clock.advance_ms(1_000);
        bench.answers.add_permits(1);
        assert_eq!(bench.ask("key").await, Ok(2));
    }

    #[tokio::test]
    async fn errors_are_shared_and_not_kept() {
        let bench = Bench::new(1_000, 10);
        let failed = Err(RestError::Firewall { status: 403 });
        let (one, two) = tokio::join!(bench.fail(RestError::Firewall { status: 403 }), bench.ask("key"));
        assert_eq!((one, two), (failed.clone(), failed));
        assert_eq!(bench.ask("key").await, Ok(1));
    }

    #[tokio::test]
    async fn unsent_requests_and_panics_are_tried_again() {
        let bench = Bench::new(1_000, 10);
        assert_eq!(bench.fail(RestError::Crowded).await, Err(RestError::Crowded));
        assert_eq!(bench.ask("key").await, Ok(1));
        let panics = async { panic!("on purpose") };
        let given_up = bench.coalescer.get::<usize, _>("other".to_owned(), panics).await;
        assert_eq!(given_up.err(), Some(RestError::Abandoned));
        assert_eq!(bench.ask("other").await, Ok(2));
    }

    #[tokio::test]
    async fn requests_under_way_are_bounded() {
        let bench = Bench::new(0, 0);
        for at in 0..MAX_REQUESTS {
            drop(bench.coalescer.join(at.to_string(), bench.fetch()).expect("room"));
        }
        let one_more = bench.coalescer.join("one more".to_owned(), bench.fetch());
        assert!(matches!(one_more, Err(RestError::Crowded)));
        assert!(bench.coalescer.join("7".to_owned(), bench.fetch()).is_ok(), "joining takes no room");
    }
}
