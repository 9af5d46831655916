//! Reports in Redis, which several processes share.
//!
//! - `report:BTCUSDT`: the report's JSON, which expires when the report is too old
//! - `report:writer:BTCUSDT`: who may write it, as a hash
//! - `report:symbols`: the symbols that have reports, as a sorted set
//!
//! Needs one Redis of version 6.2 or later (`SET … PXAT`), not a cluster: the scripts use several keys. Foreign values
//! under these keys are reported to readers and replaced by writers.
//!
//! **Ages.** Nodes' clocks may differ, so only Redis's clock counts. A report's key expires [`Timing::keep_report`] after
//! the report was *generated*; a reader derives the age from the remaining time to live, and adds the time since its
//! request. A writer estimates Redis's time from its last answer. The estimate is never ahead of Redis's clock, so an age
//! can be too large by the time that an answer takes, but never too small, even if a write is delayed.

mod decoded;
mod link;

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use redis::{Client, ConnectionAddr, IntoConnectionInfo as _, Script, ScriptInvocation};
use tribune_core::{Clock, Error};

use super::{Claim, Found, Generated, Indexed, Lease, NodeId, ReportCache, Timing, Token, Unavailable};
use crate::aged::{AgedReport, millis};
use decoded::Decoded;
use link::{Connection, Link, micros};

const SYMBOLS: &str = "report:symbols";
/// The life of a key that is not there.
const NOTHING: i64 = -2;
/// A report has some kilobytes.
const MAX_REPORT_BYTES: usize = 1 << 20;
const MAX_SYMBOLS: usize = 10_000;
/// Characters of foreign text that a message repeats.
const MAX_QUOTED: usize = 200;
/// The longest entry of the index that is ours, with room to spare.
const MAX_ENTRY_BYTES: usize = 200;

static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/read.lua")));
static INDEXED: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/indexed.lua")));
static CLAIM: LazyLock<Script> = LazyLock::new(|| writing(include_str!("scripts/claim.lua")));
static WRITE: LazyLock<Script> = LazyLock::new(|| writing(include_str!("scripts/write.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| writing(include_str!("scripts/release.lua")));

/// A script of the writer's side.
fn writing(source: &str) -> Script {
    Script::new(&[include_str!("scripts/common.lua"), source].concat())
}

fn report_key(symbol: &str) -> String {
    format!("report:{symbol}")
}

fn writer_key(symbol: &str) -> String {
    format!("report:writer:{symbol}")
}

/// Foreign text, shortened and on one line.
fn quoted(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_QUOTED).collect()
}

/// A run of a script on these keys.
fn call(script: &'static Script, keys: &[&str]) -> ScriptInvocation<'static> {
    let mut call = script.prepare_invoke();
    call.key(keys);
    call
}

/// A client for an address; it has not connected yet. Errors do not repeat the address: it may contain a password.
pub fn client(url: &str) -> tribune_core::Result<Client> {
    let bad = || {
        Error::invalid_argument(
            "the Redis URL cannot be used; write it as redis://host:6379, with rediss:// for TLS, user:password@ before the host, or /2 after the port for database 2 (percent-encode special characters)",
        )
    };
    // A fragment would switch the checks of TLS off.
    let url = Some(url).filter(|url| url.starts_with("redis") && !url.contains('#')).ok_or_else(bad)?;
    let info = url.into_connection_info().map_err(|_| bad())?;
    // Saves a round trip per connection.
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        // An error means that the program has installed a provider already.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    Client::open(info.set_redis_settings(settings)).map_err(|_| bad())
}

/// Connects on first use, and reconnects when needed.
pub struct RedisCache {
    clock: Arc<dyn Clock>,
    timing: Timing,
    place: Arc<str>,
    /// A connection of their own, so that readers do not wait behind large writes.
    readers: Link,
    writers: Link,
    decoded: Decoded,
}

impl RedisCache {
    /// Fails only for a malformed address: Redis may start later.
    pub fn open(url: &str, clock: Arc<dyn Clock>, timing: Timing) -> tribune_core::Result<Self> {
        let client = client(url)?;
        let info = client.get_connection_info();
        let database = match info.redis_settings().db() {
            0 => String::new(),
            database => format!(", database {database}"),
        };
        let place: Arc<str> = format!("Redis at {}{database}", info.addr()).into();
        let link = |within| Link {
            client: client.clone(),
            place: place.clone(),
            within,
            clock: clock.clone(),
            current: Mutex::default(),
        };
        let (readers, writers) = (link(timing.read_within), link(timing.write_within));
        Ok(Self { timing, readers, writers, place, clock, decoded: Decoded::new() })
    }

    /// What is under a report's key, and how long it will be.
    fn found(&self, symbol: &Arc<str>, life_ms: i64, json: Vec<u8>, sent: Instant) -> Found {
        if life_ms == NOTHING {
            return Ok(None);
        }
        let keep = self.timing.keep_report;
        let life = u64::try_from(life_ms).ok().map(Duration::from_millis);
        let Some(when_sent) = life.and_then(|life| keep.checked_sub(life)) else {
            return Err("a value whose type, length or expiry is not that of a report".to_owned());
        };
        let report = self.decoded.report(symbol, json)?;
        // Redis counts whole milliseconds, so the time to live may be up to one shorter.
        let since_sent = self.clock.monotonic().saturating_duration_since(sent);
        let since = when_sent + Duration::from_millis(1) + since_sent;
        // Redis lets a key live up to a millisecond longer.
        Ok((since < keep).then_some(AgedReport { report, since }))
    }

    fn write_call(&self, write: &Generated, json: &[u8], redis: &Connection) -> ScriptInvocation<'static> {
        let Generated { report, at } = write;
        let elapsed = self.clock.monotonic().saturating_duration_since(*at);
        let entry = [&*report.symbol, &*report.base_asset, &*report.quote_asset].join("/");
        let mut call = call(&WRITE, &[&writer_key(&report.symbol), &report_key(&report.symbol), SYMBOLS]);
        call.arg((&report.writer.node_id, report.writer.writer_token, report.writer.sequence))
            .arg((redis.redis_time_at(*at), micros(elapsed)))
            .arg(json)
            .arg((entry, MAX_SYMBOLS))
            .arg(millis(self.timing.lease))
            .arg(millis(self.timing.keep_report))
            .arg(millis(self.timing.keep_symbol));
        call
    }
}

/// Sorted by symbol; foreign entries are skipped.
fn by_symbol(entries: Vec<(Vec<u8>, u64)>, since_sent: Duration) -> Vec<Indexed> {
    let read = |(entry, age_ms): (Vec<u8>, u64)| {
        // Names cannot contain a slash. Foreign ones need not be UTF-8.
        let entry = String::from_utf8_lossy(&entry);
        let mut names = entry.split('/').map(Arc::from);
        let indexed = Indexed {
            symbol: names.next()?,
            base: names.next()?,
            quote: names.next()?,
            age: Duration::from_millis(age_ms) + since_sent,
        };
        names.next().is_none().then_some(indexed)
    };
    let mut indexed: Vec<Indexed> = entries.into_iter().filter_map(read).collect();
    indexed.sort_by(|one, other| one.symbol.cmp(&other.symbol));
    indexed
}

#[async_trait]
impl ReportCache for RedisCache {
    async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable> {
        let ask = |redis: Connection| async move {
            let read = |symbol: &Arc<str>| {
                let mut call = call(&READ, &[&report_key(symbol)]);
                call.arg(MAX_REPORT_BYTES);
                call
            };
            let calls: Vec<_> = symbols.iter().map(read).collect();
            let sent = self.clock.monotonic();
            let answers: Vec<(i64, Vec<u8>)> = redis.run(&calls).await?;
            let found = |(symbol, (life_ms, json)): (&Arc<str>, (i64, Vec<u8>))| {
                let found = self.found(symbol, life_ms, json, sent);
                found.map_err(|what| format!("{} holds {what}", report_key(symbol)))
            };
            Ok(symbols.iter().zip(answers).map(found).collect())
        };
        self.readers.run("read", ask).await
    }

    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable> {
        let ask = |redis: Connection| async move {
            let keep = millis(self.timing.keep_symbol);
            let mut call = call(&INDEXED, &[SYMBOLS]);
            call.arg((MAX_SYMBOLS, MAX_ENTRY_BYTES, keep));
            let sent = self.clock.monotonic();
            let mut answers: Vec<Vec<(Vec<u8>, u64)>> = redis.run(&[call]).await?;
            let since_sent = self.clock.monotonic().saturating_duration_since(sent);
            Ok(by_symbol(answers.pop().unwrap_or_default(), since_sent))
        };
        self.readers.run("indexed", ask).await
    }

    async fn claim(&self, node: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable> {
        let ask = |redis: Connection| async move {
            let times = (millis(self.timing.lease), millis(self.timing.keep_symbol));
            let claim = |claim: &Claim| {
                let mut call = call(&CLAIM, &[&writer_key(&claim.symbol)]);
                call.arg((&**node, u8::from(claim.is_fresh))).arg(times);
                call
            };
            let calls: Vec<_> = claims.iter().map(claim).collect();
            let answers: Vec<(u64, String, Token)> = redis.run(&calls).await?;
            let lease = |(time, outcome, token): (u64, String, Token)| {
                redis.note_time(time);
                match outcome.as_str() {
                    "taken" => Lease::Taken(token),
                    "renewed" => Lease::Renewed(token),
                    _ => Lease::Other,
                }
            };
            Ok(answers.into_iter().map(lease).collect())
        };
        self.writers.run("claim", ask).await
    }

    async fn write(&self, writes: &[Generated]) -> Result<Vec<bool>, Unavailable> {
        let reports = writes.iter().map(|write| serde_json::to_vec(&write.report)).collect::<Result<Vec<_>, _>>();
        let reports = &reports.map_err(|error| Unavailable(format!("a report cannot be written as JSON: {error}")))?;
        let send = |redis: Connection| async move {
            let both = writes.iter().zip(reports);
            let calls: Vec<_> = both.map(|(write, json)| self.write_call(write, json, &redis)).collect();
            let answers: Vec<(u64, bool)> = redis.run(&calls).await?;
            let stored = |(time, is_stored)| {
                redis.note_time(time);
                is_stored
            };
            Ok(answers.into_iter().map(stored).collect())
        };
        self.writers.run("write", send).await
    }

    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)]) -> Result<(), Unavailable> {
        let send = |redis: Connection| async move {
            let release = |(symbol, token): &(Arc<str>, Token)| {
                let mut call = call(&RELEASE, &[&writer_key(symbol)]);
                call.arg((&**node, *token, millis(self.timing.lease)));
                call
            };
            let calls: Vec<_> = leases.iter().map(release).collect();
            redis.run::<redis::Value>(&calls).await?;
            Ok(())
        };
        self.writers.run("release", send).await
    }

    fn place(&self) -> &str {
        &self.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_core::SystemClock;

    fn open(url: &str) -> tribune_core::Result<RedisCache> {
        RedisCache::open(url, Arc::new(SystemClock), Timing::DEFAULT)
    }

    #[test]
    fn places_have_no_secrets() {
        let place = |url| open(url).expect("an address").place.to_string();
        assert_eq!(place("redis://127.0.0.1"), "Redis at 127.0.0.1:6379");
        assert_eq!(place("redis://me:hunter2@cache.example:7000/3"), "Redis at cache.example:7000, database 3");
        assert_eq!(place("rediss://:hunter2@cache.example"), "Redis at cache.example:6379");
    }

    #[test]
    fn malformed_addresses_are_refused_without_secrets() {
        for url in [
            "",
            "  ",
            "127.0.0.1:6379",
            "http://:hunter2@127.0.0.1",
            "redis://",
            "redis://:hunter2@host:99999",
            "redis://:hunter2@host/hunter2",
            "rediss://:hunter2@host#insecure",
            "redis://:hunter2@host?protocol=hunter2",
        ] {
            let Err(error) = open(url) else {
                panic!("`{url}` was accepted");
            };
            let text = format!("{error} {error:?}");
            assert!(text.contains("redis://host:6379"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
