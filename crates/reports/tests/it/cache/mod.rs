//! The contract suite of report caches: `kept` runs on memory and on a real Redis, `leases` on Redis, which several nodes
//! share.

mod kept;
mod leases;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tribune_core::SystemClock;
use tribune_reports::cache::{
    Claim, Found, Generated, Lease, MemoryCache, NodeId, RedisCache, ReportCache, Timing, Token,
};

use crate::redis_server::RedisServer;
use crate::reports::{claim, symbol};

/// Nothing expires during a test, however busy the machine is.
pub const PATIENT: Timing = Timing {
    keep_report: Duration::from_secs(300),
    lease: Duration::from_secs(60),
    keep_symbol: Duration::from_secs(3600),
    read_within: Duration::from_secs(10),
    write_within: Duration::from_secs(10),
};

/// The lifetime of what should expire in a test.
const BRIEF: Duration = Duration::from_millis(60);

/// Waits until it has expired.
async fn wait_for_expiry() {
    sleep(BRIEF + Duration::from_millis(40)).await;
}

/// A cache that several nodes share, each with its own handle.
struct Shared {
    open: Box<dyn Fn() -> Arc<dyn ReportCache> + Send + Sync>,
    _server: Option<RedisServer>,
}

impl Shared {
    fn memory(timing: Timing) -> Self {
        let cache = Arc::new(MemoryCache::new(Arc::new(SystemClock), timing));
        Self { open: Box::new(move || cache.clone()), _server: None }
    }

    fn redis(timing: Timing) -> Self {
        let server = RedisServer::start();
        let url = server.url();
        let open = move || -> Arc<dyn ReportCache> {
            Arc::new(RedisCache::open(&url, Arc::new(SystemClock), timing).expect("an address"))
        };
        Self { open: Box::new(open), _server: Some(server) }
    }

    fn open(&self) -> Arc<dyn ReportCache> {
        (self.open)()
    }
}

pub async fn claims(cache: &Arc<dyn ReportCache>, node: &NodeId, claim: Claim) -> Lease {
    let mut leases = cache.claim(node, &[claim]).await.expect("it answers");
    assert_eq!(leases.len(), 1);
    leases.remove(0)
}

pub async fn takes(cache: &Arc<dyn ReportCache>, node: &NodeId, name: &str) -> Token {
    match claims(cache, node, claim(name)).await {
        Lease::Taken(token) => token,
        other => panic!("not taken: {other:?}"),
    }
}

pub async fn writes(cache: &Arc<dyn ReportCache>, write: Generated) -> bool {
    let mut written = cache.write(&[write]).await.expect("it answers");
    assert_eq!(written.len(), 1);
    written.remove(0)
}

pub async fn reads(cache: &Arc<dyn ReportCache>, name: &str) -> Vec<Found> {
    cache.read(&[symbol(name)]).await.expect("it answers")
}

/// Makes each promise a test of Redis.
macro_rules! on_redis {
    ($($promise:ident)*) => {
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(crate::cache::Shared::redis).await;
            })*
        }
    };
}

/// The same of both caches.
macro_rules! on_both {
    ($($promise:ident)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(crate::cache::Shared::memory).await;
            })*
        }

        crate::cache::on_redis! { $($promise)* }
    };
}

use {on_both, on_redis};
