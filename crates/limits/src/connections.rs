//! The open connections: how many there may be, and which are silent.

pub mod sending;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

use crate::LimitSettings;
use crate::peer::subscriber;
use sending::Sending;

/// Connections that are looked at to find one to close.
const LOOKED_AT: usize = 64;
/// Connections over the limit while those that were told to end do so.
const ENDING: usize = 16;
/// How long a connection waits for one of them to end.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Requests of one connection that are worked on at once, besides those for MCP, whose answers are bounded: a page may have
/// a large document.
const MAX_PAGES: usize = 8;

/// What happens on one connection.
pub struct Activity {
    /// Requests that have arrived.
    begun: AtomicU64,
    /// Requests whose response has not left completely.
    open: AtomicUsize,
    /// Those of them that wait for the client to read.
    unread: AtomicUsize,
    /// Counts whatever shows that the client is there.
    progress: AtomicU64,
    /// Bytes of responses that the client has not taken.
    pub(crate) held: AtomicUsize,
    /// A response was refused, and nothing has been taken since.
    pub(crate) is_full: AtomicBool,
    /// Responses with pieces that wait.
    waiting: Mutex<Vec<Weak<Sending>>>,
    pages: Semaphore,
    /// Told when the connection is to make room for another.
    pub evicted: Notify,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            begun: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            progress: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            waiting: Mutex::default(),
            pages: Semaphore::new(MAX_PAGES),
            evicted: Notify::new(),
        }
    }
}

impl Activity {
    /// Waits until a page may be made.
    pub async fn page(&self) -> Option<SemaphorePermit<'_>> {
        self.pages.acquire().await.ok()
    }

    /// A request has arrived.
    pub fn begin(self: &Arc<Self>) -> Arc<Sending> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        self.progressed();
        Arc::new(Sending::new(self.clone()))
    }

    pub(crate) fn ended(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.progressed();
    }

    pub(crate) fn progressed(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn waits(&self, sending: &Arc<Sending>) {
        let mut waiting = self.waiting.lock();
        waiting.retain(|other| other.strong_count() > 0);
        waiting.push(Arc::downgrade(sending));
    }

    pub(crate) fn set_unread(&self, is_unread: bool) {
        match is_unread {
            true => self.unread.fetch_add(1, Ordering::Relaxed),
            false => self.unread.fetch_sub(1, Ordering::Relaxed),
        };
    }

    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) && self.held.load(Ordering::Relaxed) > 0
    }

    fn is_idle(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    /// Returns once the connection is no longer worth keeping, and why. Meanwhile drops what single streams do not read.
    pub async fn overdue(&self, settings: &LimitSettings) -> &'static str {
        sleep(settings.head).await;
        if self.begun.load(Ordering::Relaxed) == 0 {
            return "silent";
        }
        let (mut seen, mut quiet) = (self.progress.load(Ordering::Relaxed), Duration::ZERO);
        let period = settings.stall.min(settings.idle);
        loop {
            sleep(period).await;
            self.drop_unread();
            let progress = self.progress.load(Ordering::Relaxed);
            if progress != seen {
                (seen, quiet) = (progress, Duration::ZERO);
                continue;
            }
            quiet += period;
            let open = self.open.load(Ordering::Relaxed);
            if open == 0 && quiet >= settings.idle {
                return "idle";
            }
            if open > 0 && open == self.unread.load(Ordering::Relaxed) && quiet >= settings.stall {
                return "unread";
            }
        }
    }

    /// Other streams of the connection may be read, so it stays.
    fn drop_unread(&self) {
        let mut waiting = self.waiting.lock();
        waiting.retain(|sending| sending.upgrade().is_some_and(|sending| !sending.drop_if_stalled()));
    }
}

/// All open connections.
pub struct Connections {
    max: usize,
    /// 0 limits nothing.
    max_of_peer: usize,
    open: Mutex<Open>,
    /// Told when one has ended.
    ended: Notify,
}

#[derive(Default)]
struct Open {
    count: usize,
    of_peer: HashMap<IpAddr, usize>,
    /// Oldest first; some have ended.
    all: VecDeque<Weak<Activity>>,
}

/// Why a connection is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Total,
    /// There will be room when a connection ends that was told to.
    Ending,
    Peer,
}

impl Full {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Total | Self::Ending => "total",
            Self::Peer => "peer",
        }
    }
}

/// An open connection, until it is dropped.
pub struct Admitted {
    pub activity: Arc<Activity>,
    /// Whether another connection was told to end for this one.
    pub evicts: bool,
    peer: Option<IpAddr>,
    connections: Arc<Connections>,
}

impl Connections {
    pub fn new(max: usize, max_of_peer: usize) -> Self {
        Self { max, max_of_peer, open: Mutex::default(), ended: Notify::new() }
    }

    /// Lets a connection in, as soon as those have ended that make room for it.
    pub async fn admit_soon(self: &Arc<Self>, peer: Option<IpAddr>) -> Result<Admitted, Full> {
        let admitted = async {
            loop {
                let mut ended = pin!(self.ended.notified());
                ended.as_mut().enable();
                match self.admit(peer) {
                    Err(Full::Ending) => ended.await,
                    outcome => return outcome,
                }
            }
        };
        timeout(ENDS_WITHIN, admitted).await.unwrap_or(Err(Full::Total))
    }

    /// `peer` is `None` for those that many callers share: loopback, and trusted proxies. When there is no room, a
    /// connection without a request makes some: a flood of silent ones only ends itself.
    fn admit(self: &Arc<Self>, peer: Option<IpAddr>) -> Result<Admitted, Full> {
        let peer = peer.filter(|_| self.max_of_peer > 0).map(subscriber);
        let mut open = self.open.lock();
        if peer.and_then(|peer| open.of_peer.get(&peer)).is_some_and(|own| *own >= self.max_of_peer) {
            return Err(Full::Peer);
        }
        let evicts = open.count >= self.max;
        if evicts && open.count >= self.max + ENDING {
            return Err(Full::Ending);
        }
        if evicts && !open.evict() {
            return Err(Full::Total);
        }
        let activity = Arc::<Activity>::default();
        open.count += 1;
        if let Some(peer) = peer {
            *open.of_peer.entry(peer).or_default() += 1;
        }
        if open.all.len() > 2 * open.count + LOOKED_AT {
            open.all.retain(|activity| activity.strong_count() > 0);
        }
        open.all.push_back(Arc::downgrade(&activity));
        Ok(Admitted { activity, evicts, peer, connections: self.clone() })
    }

    pub fn count(&self) -> usize {
        self.open.lock().count
    }
}

impl Open {
    /// Tells one of the oldest connections without a request to end.
    fn evict(&mut self) -> bool {
        let mut looked_at = 0;
        while looked_at < LOOKED_AT.min(self.all.len()) {
            let Some(activity) = self.all.pop_front().and_then(|oldest| oldest.upgrade()) else {
                continue;
            };
            if activity.is_idle() {
                activity.evicted.notify_one();
                return true;
            }
            self.all.push_back(Arc::downgrade(&activity));
            looked_at += 1;
        }
        false
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.count -= 1;
        self.connections.ended.notify_waiters();
        let Some(peer) = self.peer else {
            return;
        };
        match open.of_peer.get_mut(&peer) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(open.of_peer.remove(&peer)),
        }
    }
}

/// How many connections the descriptors of this process allow: a quarter stays free for files and requests of our own.
pub fn allowed_by_descriptors() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let max: usize = line.split_whitespace().next()?.parse().ok()?;
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some((max - max / 4).saturating_sub(open + ENDING).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Option<IpAddr> {
        Some([203, 0, 113, last].into())
    }

    #[test]
    fn peer_cannot_take_all_connections() {
        let connections = Arc::new(Connections::new(10, 2));
        let first = connections.admit(peer(1)).ok();
        let second = connections.admit(peer(1)).ok();
        assert!(first.is_some() && second.is_some());
        assert_eq!(connections.admit(peer(1)).err(), Some(Full::Peer));
        assert!(connections.admit(peer(2)).is_ok() && connections.admit(None).is_ok());
        drop(first);
        assert!(connections.admit(peer(1)).is_ok());
        drop(second);
        assert_eq!(connections.count(), 0);
        assert!(connections.open.lock().of_peer.is_empty());
    }

    #[tokio::test]
    async fn oldest_connection_without_request_makes_room() {
        let connections = Arc::new(Connections::new(2, 0));
        let busy = connections.admit(None).expect("room");
        let request = busy.activity.begin();
        let silent = connections.admit(None).expect("room");
        let third = connections.admit(None).expect("the silent one makes room");
        assert!(third.evicts);
        silent.activity.evicted.notified().await;
        drop(silent);
        let requests = [third.activity.begin(), request];
        assert_eq!(connections.admit(None).err(), Some(Full::Total), "both have requests");
        drop(requests);
        assert!(connections.admit(None).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn connection_waits_for_those_that_end() {
        let connections = Arc::new(Connections::new(1, 0));
        let mut silent: Vec<Admitted> = (0..=ENDING).map(|_| connections.admit(None).expect("room")).collect();
        assert_eq!(connections.admit(None).err(), Some(Full::Ending));
        assert_eq!(connections.admit_soon(None).await.err(), Some(Full::Total), "none of them ends");
        let (admitted, ()) = tokio::join!(connections.admit_soon(None), async { drop(silent.remove(0)) });
        assert!(admitted.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn silent_and_idle_connections_are_overdue() {
        let settings = LimitSettings::default();
        let silent = Arc::<Activity>::default();
        assert_eq!(silent.overdue(&settings).await, "silent");
        let idle = Arc::<Activity>::default();
        drop(idle.begin());
        assert_eq!(idle.overdue(&settings).await, "idle");
        let working = Arc::<Activity>::default();
        let _request = working.begin();
        let hour = Duration::from_secs(3_600);
        assert!(tokio::time::timeout(hour, working.overdue(&settings)).await.is_err(), "a call is under way");
    }
}
