//! What several nodes count together.
//!
//! A node counts by itself, and about once a second tells the others how often it has counted each key in the current
//! window of time: a minute, an hour or a day. A request never waits for that, so callers who use several nodes at once get
//! what they use within that second besides.

mod redis;

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tribune_core::Clock;

pub use redis::RedisCounts;

const TELL_EVERY: Duration = Duration::from_secs(1);
/// Keys beyond which further ones are only counted by this node.
const MAX_KEYS: usize = 50_000;
const TOLD_AT_ONCE: usize = 1_000;
/// How long counts outlive their window: nodes' clocks may differ a little.
const OUTLIVES: u64 = 60;

/// How often this node has counted a key in the current window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// A digest of the rate, the window, and the name or address.
    pub key: u128,
    /// Since the window began, so that telling it twice changes nothing.
    pub own: u64,
    pub keep_secs: u64,
}

/// The way to the other nodes.
pub trait Exchange: Send {
    /// Tells what this node has counted; the answer is what all nodes together have, for each key.
    fn tell(&mut self, told: &[Told]) -> impl Future<Output = Result<Vec<u64>, String>> + Send;
}

#[derive(Debug)]
struct Count {
    /// When its window ends, in seconds of the machine's clock.
    ends: u64,
    own: u64,
    others: u64,
    is_told: bool,
}

/// The counts of the current windows: this node's, and the last known ones of the others.
#[derive(Debug, Default)]
pub struct SharedCounts(Mutex<HashMap<u128, Count>>);

impl SharedCounts {
    /// What all nodes have counted then in a window that ends at `ends`. Adding nothing is a reason to find out, too.
    pub(crate) fn add(&self, key: u128, ends: u64, times: u32) -> u64 {
        let mut counts = self.0.lock();
        if counts.len() >= MAX_KEYS && !counts.contains_key(&key) {
            return 0;
        }
        let count = counts.entry(key).or_insert(Count { ends, own: 0, others: 0, is_told: false });
        count.own += u64::from(times);
        count.is_told = false;
        count.own.saturating_add(count.others)
    }

    /// Exchanges counts until `stop`, and once more then, so that what was counted last outlives this node. While the others
    /// cannot be reached, this node counts alone.
    pub async fn run(&self, mut exchange: impl Exchange, clock: &dyn Clock, stop: &CancellationToken) {
        let mut is_shared = None;
        loop {
            let is_last = stop.run_until_cancelled(sleep(TELL_EVERY)).await.is_none();
            let told = self.untold(secs(clock));
            for told in told.chunks(TOLD_AT_ONCE) {
                let outcome = exchange.tell(told).await.map(|totals| self.learn(told, &totals));
                if is_shared.replace(outcome.is_ok()) != Some(outcome.is_ok()) {
                    metrics::gauge!("tribune_limits_shared").set(f64::from(u8::from(outcome.is_ok())));
                    match &outcome {
                        Ok(()) => tracing::info!("rates are counted together with the other nodes"),
                        Err(reason) => tracing::warn!(reason, "this node counts rates alone until Redis answers"),
                    }
                }
                if outcome.is_err() {
                    break;
                }
            }
            if is_last {
                return;
            }
        }
    }

    /// What the others do not know. Forgets windows that have ended.
    fn untold(&self, now: u64) -> Vec<Told> {
        let mut counts = self.0.lock();
        counts.retain(|_, count| count.ends > now);
        let untold = counts.iter().filter(|(_, count)| !count.is_told);
        untold.map(|(key, count)| Told { key: *key, own: count.own, keep_secs: count.ends - now + OUTLIVES }).collect()
    }

    fn learn(&self, told: &[Told], totals: &[u64]) {
        let mut counts = self.0.lock();
        for (told, total) in told.iter().zip(totals) {
            if let Some(count) = counts.get_mut(&told.key) {
                // Redis may have lost what it knew.
                count.others = count.others.max(total.saturating_sub(told.own));
                count.is_told = count.own == told.own;
            }
        }
    }
}

/// The time of the machine's clock.
pub(crate) fn secs(clock: &dyn Clock) -> u64 {
    u64::try_from(clock.now().as_second()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use jiff::Timestamp;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::Rate;

    /// Runs with tokio's time, which stands still while there is anything to do.
    struct Paused(tokio::time::Instant);

    impl Clock for Paused {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH + self.0.elapsed()
        }

        fn monotonic(&self) -> Instant {
            tokio::time::Instant::now().into_std()
        }
    }

    /// What all nodes have told, by key and node.
    #[derive(Clone, Default)]
    struct Hub {
        told: Arc<Mutex<HashMap<u128, HashMap<usize, u64>>>>,
        is_away: Arc<AtomicBool>,
    }

    struct HubOf(Hub, usize);

    impl Exchange for HubOf {
        async fn tell(&mut self, told: &[Told]) -> Result<Vec<u64>, String> {
            if self.0.is_away.load(Ordering::Relaxed) {
                return Err("away".to_owned());
            }
            let mut all = self.0.told.lock();
            let tell = |told: &Told| {
                let of_key = all.entry(told.key).or_default();
                of_key.insert(self.1, told.own);
                of_key.values().sum()
            };
            Ok(told.iter().map(tell).collect())
        }
    }

    /// A node with a rate of ten a minute.
    struct Node {
        rate: Rate<&'static str>,
        stop: CancellationToken,
        task: JoinHandle<()>,
    }

    impl Node {
        fn start(hub: &Hub, number: usize, clock: &Arc<Paused>) -> Self {
            let (counts, stop) = (Arc::<SharedCounts>::default(), CancellationToken::new());
            let rate = Rate::new(10, Duration::from_secs(60), clock.clone()).shared("calls", Some(&counts));
            let (exchange, clock, told_to_stop) = (HubOf(hub.clone(), number), clock.clone(), stop.clone());
            let task = tokio::spawn(async move { counts.run(exchange, &*clock, &told_to_stop).await });
            Self { rate, stop, task }
        }

        /// How many of so many are let through.
        fn take(&self, times: u32) -> usize {
            (0..times).filter(|_| self.rate.take(&"ann").is_ok()).count()
        }
    }

    fn nodes() -> (Hub, Arc<Paused>, [Node; 2]) {
        let (hub, clock) = (Hub::default(), Arc::new(Paused(tokio::time::Instant::now())));
        let nodes = [1, 2].map(|number| Node::start(&hub, number, &clock));
        (hub, clock, nodes)
    }

    /// Until all nodes have told, and learnt from it.
    async fn exchanged() {
        sleep(TELL_EVERY * 2).await;
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_together_allow_one_limit_in_each_window() {
        let (_, clock, [one, other]) = nodes();
        assert_eq!(one.take(7), 7);
        exchanged().await;
        assert_eq!(other.take(1), 1, "it asks for the count of a key that it has not seen");
        exchanged().await;
        assert_eq!(other.take(9), 2);
        let wait = other.rate.take(&"ann").expect_err("nothing is left");
        assert_eq!(wait, Duration::from_secs(60 - secs(&*clock)), "until the window ends");
        assert_eq!(other.rate.take(&"ben"), Ok(()), "others have their own");
        exchanged().await;
        assert_eq!(one.take(1), 1, "it has not asked since");
        exchanged().await;
        assert_eq!(one.take(1), 0);
        sleep(wait).await;
        assert_eq!((one.take(5), other.take(4)), (5, 4), "a new window");
        exchanged().await;
        assert_eq!(other.take(1), 1);
        one.take(1);
        exchanged().await;
        assert_eq!((one.take(1), other.take(1)), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_count_alone_while_others_are_away() {
        let (hub, _, [one, other]) = nodes();
        hub.is_away.store(true, Ordering::Relaxed);
        assert_eq!(one.take(6), 6);
        exchanged().await;
        assert_eq!(other.take(6), 6);
        exchanged().await;
        assert_eq!(other.take(1), 1);
        hub.is_away.store(false, Ordering::Relaxed);
        exchanged().await;
        other.take(1);
        exchanged().await;
        assert_eq!(other.take(9), 0, "what was counted meanwhile is told");
        hub.told.lock().clear();
        exchanged().await;
        assert_eq!(other.take(9), 0, "and not forgotten with the hub");
    }

    #[tokio::test(start_paused = true)]
    async fn counts_outlive_their_node() {
        let (hub, clock, [one, other]) = nodes();
        one.rate.charge(&"ann", 12);
        one.stop.cancel();
        one.task.await.expect("it ends");
        let successor = Node::start(&hub, 3, &clock);
        for node in [successor, other] {
            assert_eq!(node.rate.check(&"ann"), Ok(()), "it asks");
            exchanged().await;
            assert!(node.rate.check(&"ann").is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_told_twice_or_kept_after_its_window() {
        let (hub, clock, [one, other]) = nodes();
        assert_eq!(one.take(3), 3);
        exchanged().await;
        hub.told.lock().clear();
        exchanged().await;
        assert!(hub.told.lock().is_empty());
        let counts = SharedCounts::default();
        counts.add(1, 60, 1);
        counts.add(2, 120, 1);
        assert_eq!(counts.untold(60), [Told { key: 2, own: 1, keep_secs: 60 + OUTLIVES }]);
        assert_eq!(counts.0.lock().len(), 1);
        for key in 2..MAX_KEYS as u128 + 10 {
            counts.add(key, 120, 1);
        }
        assert_eq!(counts.0.lock().len(), MAX_KEYS);
        assert_eq!(counts.add(0, 120, 7), 0, "counted by its node only");
        drop((clock, other));
    }
}
