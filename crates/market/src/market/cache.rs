//! Answers that are read often and fetched rarely.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
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

/// The answer and when it was requested, which is the most that it can be old; or why there is none.
pub(crate) type Found<T> = std::result::Result<(Arc<T>, Instant), String>;

/// Answers by key. Concurrent callers with the same key share one request; if the caller that runs it goes away, another
/// takes over.
pub(crate) struct Cache<T> {
    entries: Mutex<HashMap<String, Arc<Entry<T>>>>,
}

struct Entry<T> {
    /// When it was requested.
    asked: Instant,
    keep: Duration,
    found: OnceCell<Found<T>>,
    before: Option<(Arc<T>, Instant)>,
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
        let asked = entry.asked;
        let ask = || async { ask.await.map(|found| (Arc::new(found), asked)).map_err(|error| error.to_string()) };
        let found = entry.found.get_or_init(ask).await.clone();
        let now = clock.monotonic();
        found.or_else(|why| match &entry.before {
            Some((old, asked)) if now.saturating_duration_since(*asked) < KEEP_OLD => Ok((old.clone(), *asked)),
            _ => Err(why),
        })
    }

    fn entry(&self, key: String, keep: Duration, now: Instant) -> Arc<Entry<T>> {
        let mut entries = self.entries.lock();
        let before = entries.get(&key).cloned();
        let is_fresh = |entry: &&Arc<Entry<T>>| {
            let keep = match entry.found.get() {
                Some(Err(_)) => entry.keep.min(KEEP_FAILURE),
                _ => entry.keep,
            };
            now.saturating_duration_since(entry.asked) < keep
        };
        if let Some(fresh) = before.as_ref().filter(is_fresh) {
            return fresh.clone();
        }
        if before.is_none() && entries.len() >= MAX_ENTRIES {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.asked).map(|(key, _)| key.clone());
            oldest.map(|oldest| entries.remove(&oldest));
        }
        let before = before.and_then(|entry| match entry.found.get() {
            Some(Ok(found)) => Some(found.clone()),
            _ => entry.before.clone(),
        });
        let entry = Arc::new(Entry { asked: now, keep, found: OnceCell::new(), before });
        entries.insert(key, entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tribune_binance::testing::ManualClock;
    use tribune_core::Error;

    const KEEP: Duration = Duration::from_secs(5);

    async fn get<T: Clone>(
        cache: &Cache<T>,
        key: &str,
        clock: &ManualClock,
        ask: impl Future<Output = Result<T>> + Send,
    ) -> std::result::Result<T, String> {
        cache.get(key.to_owned(), KEEP, clock, ask).await.map(|(found, _)| T::clone(&found))
    }

    #[tokio::test]
    async fn one_request_serves_all_until_it_expires() {
        let (cache, clock, asked) = (Cache::<usize>::default(), ManualClock::at(0), AtomicUsize::new(0));
        let ask = || async {
            tokio::task::yield_now().await;
            Ok(asked.fetch_add(1, Ordering::SeqCst) + 1)
        };
        let look = || get(&cache, "candles", &clock, ask());
        assert_eq!(tokio::join!(look(), look()), (Ok(1), Ok(1)));
        clock.advance_ms(4_999);
        assert_eq!(look().await, Ok(1));
        clock.advance_ms(1);
        assert_eq!(look().await, Ok(2));
        assert_eq!(get(&cache, "profile", &clock, ask()).await, Ok(3));
    }

    #[tokio::test]
    async fn failures_are_cached_briefly_and_outlive_their_caller() {
        let (cache, clock) = (Cache::<usize>::default(), ManualClock::at(0));
        let look = |ask: Result<usize>| get(&cache, "ticker", &clock, async { ask });
        let failed = look(Err(Error::unavailable("no answer"))).await;
        assert_eq!(failed, Err("no answer".to_owned()));
        clock.advance_ms(1_999);
        assert!(look(Ok(1)).await.is_err());
        clock.advance_ms(1);
        assert_eq!(look(Ok(2)).await, Ok(2));

        let never = cache.get("book".to_owned(), KEEP, &clock, std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(5), never).await.is_err());
        assert_eq!(get(&cache, "book", &clock, async { Ok(3) }).await, Ok(3));
    }

    #[tokio::test]
    async fn old_answer_stays_until_a_newer_one() {
        let (cache, clock) = (Cache::<usize>::default(), ManualClock::at(0));
        let look = |ask: Result<usize>| get(&cache, "ticker", &clock, async { ask });
        let fails = || Err(Error::unavailable("no budget"));
        assert_eq!(look(Ok(1)).await, Ok(1));
        for _ in 0..59 {
            clock.advance_ms(10_000);
            assert_eq!(look(fails()).await, Ok(1), "old, and there");
        }
        clock.advance_ms(9_999);
        assert_eq!(look(fails()).await, Ok(1));
        clock.advance_ms(1);
        assert_eq!(look(fails()).await, Err("no budget".to_owned()), "ten minutes are enough");
        clock.advance_ms(2_000);
        assert_eq!(look(Ok(2)).await, Ok(2));
    }

    #[tokio::test]
    async fn live_documents_stay_in_the_cache() {
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
            assert_eq!(get(&cache, &at.to_string(), &clock, async { Ok(at) }).await, Ok(at));
        }
        let entries = cache.entries.lock();
        assert_eq!(entries.len(), MAX_ENTRIES);
        assert!(!entries.contains_key("9") && entries.contains_key("10"), "the oldest went");
    }
}
