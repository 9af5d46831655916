//! Callers who ask the same at the same time share one request, and its answer for a short while after.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tribune_core::Clock;

use super::error::RestError;
use crate::moment::Stamped;

/// Most different requests under way or fresh. The weight budget allows fewer in any window; this
/// holds where the budget is generous.
const MAX_ENTRIES: usize = 1024;

/// An answer, shared with whoever asked the same.
pub type Shared<T> = Result<Arc<Stamped<T>>, RestError>;

/// `None` until the answer is there.
type Outcome<T> = Option<Shared<T>>;

pub(super) struct Coalescer<T> {
    entries: Arc<Entries<T>>,
    /// How long an answer is given again; zero shares only what is under way.
    window: Duration,
    clock: Arc<dyn Clock>,
}

struct Entries<T>(Mutex<HashMap<String, watch::Receiver<Outcome<T>>>>);

impl<T> Entries<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Outcome<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unless another request has taken the place since.
    fn remove(&self, key: &str, own: &watch::Receiver<Outcome<T>>) {
        let mut entries = self.lock();
        if entries.get(key).is_some_and(|entry| entry.same_channel(own)) {
            entries.remove(key);
        }
    }
}

impl<T: Send + Sync + 'static> Coalescer<T> {
    pub(super) fn new(window: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            entries: Arc::new(Entries(Mutex::default())),
            window,
            clock,
        }
    }

    /// The answer under `key`: a fresh one, that of a request under way, or that of a new request.
    pub(super) async fn get<F>(&self, key: String, fetch: F) -> Shared<T>
    where
        F: Future<Output = Result<Stamped<T>, RestError>> + Send + 'static,
    {
        let mut receiver = self.join(key, fetch)?;
        let answer = receiver.wait_for(Option::is_some).await;
        match answer.as_deref() {
            Ok(Some(answer)) => answer.clone(),
            _ => Err(RestError::Abandoned),
        }
    }

    fn join<F>(&self, key: String, fetch: F) -> Result<watch::Receiver<Outcome<T>>, RestError>
    where
        F: Future<Output = Result<Stamped<T>, RestError>> + Send + 'static,
    {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(&key).filter(|entry| self.serves(entry)) {
            return Ok(entry.clone());
        }
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, entry| entry.borrow().is_none());
        }
        if entries.len() >= MAX_ENTRIES {
            return Err(RestError::Crowded);
        }
        let (sender, receiver) = watch::channel(None);
        entries.insert(key.clone(), receiver.clone());
        drop(entries);
        self.spawn(key, sender, receiver.clone(), fetch);
        Ok(receiver)
    }

    /// Whether an entry can answer: under way and not dead, or fresh.
    fn serves(&self, entry: &watch::Receiver<Outcome<T>>) -> bool {
        match &*entry.borrow() {
            None => entry.has_changed().is_ok(),
            // Kept only while it is to be given again.
            Some(Err(error)) => keep_error(error, self.window) > Duration::ZERO,
            Some(Ok(answer)) => {
                let age = self
                    .clock
                    .monotonic()
                    .saturating_duration_since(answer.received.monotonic);
                age < self.window
            }
        }
    }

    /// On a task of its own, so that a caller who goes away takes nothing from the others.
    fn spawn<F>(&self, key: String, sender: watch::Sender<Outcome<T>>, own: watch::Receiver<Outcome<T>>, fetch: F)
    where
        F: Future<Output = Result<Stamped<T>, RestError>> + Send + 'static,
    {
        let (entries, window) = (Arc::clone(&self.entries), self.window);
        tokio::spawn(async move {
            let answer = fetch.await.map(Arc::new);
            let keep = answer
                .as_ref()
                .map_or_else(|error| keep_error(error, window), |_| window);
            sender.send_replace(Some(answer));
            if !keep.is_zero() {
                tokio::time::sleep(keep).await;
            }
            entries.remove(&key, &own);
        });
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.lock().len()
    }
}

/// How long a failure is given again: an exchange in trouble is not asked by every caller anew, and the weight
/// that each attempt costs is not spent on it. What was never sent costs nothing, and is tried again at once.
fn keep_error(error: &RestError, window: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_millis(250);
    if error.was_asked() {
        window.min(LONGEST)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
    use crate::rest::testing::{ShiftedClock, until};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tribune_core::SystemClock;

    fn coalescer(window_ms: u64) -> Arc<Coalescer<usize>> {
        coalescer_by(Arc::new(SystemClock), window_ms)
    }

    fn coalescer_by(clock: Arc<dyn Clock>, window_ms: u64) -> Arc<Coalescer<usize>> {
        Arc::new(Coalescer::new(Duration::from_millis(window_ms), clock))
    }

    /// Takes 50 ms and answers how many times it was asked.
    async fn count(asked: Arc<AtomicUsize>) -> Result<Stamped<usize>, RestError> {
        let value = asked.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(Stamped {
            value,
            exchange_time: None,
            sent: Moment::now(&SystemClock),
            received: Moment::now(&SystemClock),
            simulated: false,
        })
    }

    #[tokio::test]
    async fn callers_share_one_request_and_its_answer_while_it_is_fresh() {
        // A minute, which passes by hand.
        let clock = Arc::new(ShiftedClock::default());
        let (coalescer, asked) = (coalescer_by(clock.clone(), 60_000), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let (coalescer, asked) = (coalescer.clone(), asked.clone());
            tokio::spawn(async move { coalescer.get("key".to_owned(), count(asked)).await.expect("answer") })
        };
        let all = futures::future::join_all((0..500).map(|_| ask())).await;
        assert!(all.into_iter().all(|answer| answer.expect("joined").value == 1));
        let again = ask().await.expect("joined");
        assert_eq!(again.value, 1);
        clock.pass_ms(30_000);
        let again = ask().await.expect("joined");
        assert_eq!(again.value, 1);
        assert!(
            again.age_ms(&*clock) >= 30_000,
            "an answer given again has its true age"
        );
        clock.pass_ms(30_000);
        assert_eq!(ask().await.expect("joined").value, 2);
    }

    #[tokio::test]
    async fn nothing_is_kept_after_the_window() {
        let coalescer = coalescer(100);
        let answer = coalescer.get("key".to_owned(), count(Arc::default())).await;
        assert_eq!(answer.expect("answer").value, 1);
        until(|| coalescer.len() == 0).await;
    }

    #[tokio::test]
    async fn a_caller_who_goes_away_takes_nothing_from_the_others() {
        let (coalescer, asked) = (coalescer(0), Arc::new(AtomicUsize::new(0)));
        let first = tokio::time::timeout(
            Duration::from_millis(5),
            coalescer.get("key".to_owned(), count(asked.clone())),
        );
        assert!(first.await.is_err());
        let second = coalescer.get("key".to_owned(), count(asked.clone())).await;
        assert_eq!(second.expect("answer").value, 1);
        let third = coalescer.get("key".to_owned(), count(asked)).await;
        assert_eq!(
            third.expect("answer").value,
            2,
            "without a window nothing is given again"
        );
    }

    #[tokio::test]
    async fn errors_are_shared_and_kept_for_a_moment_and_a_panic_is_an_error() {
        let coalescer = coalescer(1000);
        let fails = || async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Err(RestError::Firewall { status: 403 })
        };
        let (one, two) = tokio::join!(
            coalescer.get("key".to_owned(), fails()),
            coalescer.get("key".to_owned(), count(Arc::default()))
        );
        let failed = Some(RestError::Firewall { status: 403 });
        assert_eq!((one.err(), two.err()), (failed.clone(), failed.clone()));
        let at_once = coalescer.get("key".to_owned(), count(Arc::default())).await;
        assert_eq!(at_once.err(), failed);
        until(|| coalescer.len() == 0).await;
        let after = coalescer.get("key".to_owned(), count(Arc::default())).await;
        assert_eq!(after.expect("answer").value, 1);

        let panics = async { panic!("on purpose") };
        let given_up = coalescer.get("other".to_owned(), panics).await;
        assert_eq!(given_up.err(), Some(RestError::Abandoned));
        let after = coalescer.get("other".to_owned(), count(Arc::default())).await;
        assert_eq!(after.expect("answer").value, 1);
    }

    #[tokio::test]
    async fn the_number_of_requests_under_way_is_bounded() {
        let coalescer = coalescer(0);
        let forever = std::future::pending::<Result<Stamped<usize>, RestError>>;
        for at in 0..MAX_ENTRIES {
            coalescer.join(at.to_string(), forever()).expect("room");
        }
        assert!(matches!(
            coalescer.join("one more".to_owned(), forever()),
            Err(RestError::Crowded)
        ));
        assert!(
            coalescer.join("7".to_owned(), forever()).is_ok(),
            "joining takes no room"
        );
    }
}
