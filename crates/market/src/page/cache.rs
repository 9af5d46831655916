//! What pages ask for again and again, and the exchange is asked for now and then.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;
use tribune_core::{Clock, Result};

/// Different documents that the server keeps live at once.
const LIVE_DOCUMENTS: usize = 64;
/// Answers per document, at most.
const ANSWERS_OF_ONE: usize = 8;
/// Enough for all live documents; the least recently used entry makes room. An entry has some tens of KB, all of them
/// some 20 MB.
const MAX_ENTRIES: usize = LIVE_DOCUMENTS * ANSWERS_OF_ONE;
/// Failures are cached briefly, so that pages recover soon after the exchange.
const KEEP_FAILURE: Duration = Duration::from_secs(2);
/// An old answer is served until a newer one arrives, but no longer than this. It says how old it is.
const KEEP_OLD: Duration = Duration::from_secs(600);

/// The answer, or why there is none.
pub(crate) type Found<T> = std::result::Result<Arc<T>, String>;

/// Answers by key. Concurrent callers with the same key share one request; if the caller that runs it goes away, another
/// takes over.
pub(crate) struct Cache<T> {
    entries: Mutex<HashMap<String, Arc<Entry<T>>>>,
}

struct Entry<T> {
    /// When it was first asked for: the answer is no older.
    asked: Instant,
    keep: Duration,
    found: OnceCell<Found<T>>,
    /// What was found last before this was asked for, and when that was asked for.
    before: Option<(Arc<T>, Instant)>,
}

impl<T> Entry<T> {
    /// For the one that takes its place.
    fn last_found(&self) -> Option<(Arc<T>, Instant)> {
        match self.found.get() {
            Some(Ok(found)) => Some((found.clone(), self.asked)),
            _ => self.before.clone(),
        }
    }

    fn is_fresh(&self, now: Instant) -> bool {
        let keep = match self.found.get() {
            Some(Err(_)) => self.keep.min(KEEP_FAILURE),
            _ => self.keep,
        };
        now.saturating_duration_since(self.asked) < keep
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<T> Cache<T> {
    /// The answer under `key` if it is younger than `keep`, or the answer of `ask` now, or else the older answer.
    pub(crate) async fn get<F>(&self, key: String, keep: Duration, clock: &dyn Clock, ask: F) -> Found<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let entry = self.entry(key, keep, clock.monotonic());
        let ask = || async { ask.await.map(Arc::new).map_err(|error| error.to_string()) };
        let found = entry.found.get_or_init(ask).await.clone();
        let now = clock.monotonic();
        found.or_else(|why| match &entry.before {
            Some((old, asked)) if now.saturating_duration_since(*asked) < KEEP_OLD => Ok(old.clone()),
            _ => Err(why),
        })
    }

    fn entry(&self, key: String, keep: Duration, now: Instant) -> Arc<Entry<T>> {
        let mut entries = self.lock();
        if let Some(entry) = entries.get(&key).filter(|entry| entry.is_fresh(now)) {
            return entry.clone();
        }
        let before = entries.remove(&key).and_then(|entry| entry.last_found());
        while entries.len() >= MAX_ENTRIES {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.asked);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            entries.remove(&oldest);
        }
        let entry = Arc::new(Entry { asked: now, keep, found: OnceCell::new(), before });
        entries.insert(key, entry.clone());
        entry
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry<T>>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tribune_binance::testing::ManualClock;
    use tribune_core::Error;

    const KEEP: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn one_request_serves_all_until_its_time_is_over() {
        let (cache, clock, asked) = (Cache::<usize>::default(), ManualClock::at(0), AtomicUsize::new(0));
        let ask = || async {
            tokio::task::yield_now().await;
            Ok(asked.fetch_add(1, Ordering::SeqCst) + 1)
        };
        let get = || cache.get("candles".to_owned(), KEEP, &clock, ask());
        let (first, second) = tokio::join!(get(), get());
        assert_eq!((first.as_deref(), second.as_deref()), (Ok(&1), Ok(&1)));
        clock.advance_ms(4_999);
        assert_eq!(get().await.as_deref(), Ok(&1));
        clock.advance_ms(1);
        assert_eq!(get().await.as_deref(), Ok(&2));
        let other = cache.get("profile".to_owned(), KEEP, &clock, ask()).await;
        assert_eq!(other.as_deref(), Ok(&3));
    }

    #[tokio::test]
    async fn a_failure_is_kept_for_a_moment_and_who_goes_away_takes_nothing_with_him() {
        let (cache, clock) = (Cache::<usize>::default(), ManualClock::at(0));
        let get = |ask: Result<usize>| cache.get("ticker".to_owned(), KEEP, &clock, async { ask });
        let failed = get(Err(Error::unavailable("no answer"))).await;
        assert_eq!(failed, Err("no answer".to_owned()));
        clock.advance_ms(1_999);
        assert!(get(Ok(1)).await.is_err());
        clock.advance_ms(1);
        assert_eq!(get(Ok(2)).await.as_deref(), Ok(&2));

        let never = cache.get("book".to_owned(), KEEP, &clock, std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(5), never).await.is_err());
        let after = cache.get("book".to_owned(), KEEP, &clock, async { Ok(3) }).await;
        assert_eq!(after.as_deref(), Ok(&3));
    }

    #[tokio::test]
    async fn what_was_found_stays_until_there_is_something_newer() {
        let (cache, clock) = (Cache::<usize>::default(), ManualClock::at(0));
        let get = |ask: Result<usize>| cache.get("ticker".to_owned(), KEEP, &clock, async { ask });
        let fails = || Err(Error::unavailable("no budget"));
        assert_eq!(get(Ok(1)).await.as_deref(), Ok(&1));
        for _ in 0..59 {
            clock.advance_ms(10_000);
            assert_eq!(get(fails()).await.as_deref(), Ok(&1), "old, and there");
        }
        clock.advance_ms(9_999);
        assert_eq!(get(fails()).await.as_deref(), Ok(&1));
        clock.advance_ms(1);
        assert_eq!(get(fails()).await, Err("no budget".to_owned()), "ten minutes are enough");
        clock.advance_ms(2_000);
        assert_eq!(get(Ok(2)).await.as_deref(), Ok(&2));
    }

    #[tokio::test]
    async fn all_that_is_live_has_its_place_whatever_else_is_looked_at() {
        let (cache, clock, asked) = (Cache::<()>::default(), ManualClock::at(0), AtomicUsize::new(0));
        for second in 0..20 {
            for live in 0..LIVE_DOCUMENTS * 5 {
                let ask = async {
                    asked.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                };
                let _ = cache.get(format!("live {live}"), KEEP, &clock, ask).await;
            }
            let _ = cache.get(format!("once {second}"), KEEP, &clock, async { Ok(()) }).await;
            clock.advance_ms(1_000);
        }
        assert_eq!(asked.load(Ordering::SeqCst), LIVE_DOCUMENTS * 5 * 4, "each every five seconds");
    }

    #[tokio::test]
    async fn it_is_bounded() {
        let (cache, clock) = (Cache::<usize>::default(), ManualClock::at(0));
        for at in 0..MAX_ENTRIES + 10 {
            clock.advance_ms(1);
            let found = cache.get(at.to_string(), KEEP, &clock, async { Ok(at) }).await;
            assert_eq!(found.as_deref(), Ok(&at));
        }
        let entries = cache.lock();
        assert_eq!(entries.len(), MAX_ENTRIES);
        assert!(!entries.contains_key("9") && entries.contains_key("10"), "the oldest went");
    }
}
