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

mod address;
mod decoded;
mod failure;
mod link;

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use redis::{ErrorKind, RedisError};
use tribune_core::Clock;

use super::{Claim, Found, Indexed, Lease, NodeId, ReportCache, Stored, Timing, Token, Unavailable, Write, Written};
use address::Address;
use decoded::Decoded;
use failure::{Failure, quoted};
use link::{Call, Connection, Link, Script, micros};

const SYMBOLS: &str = "report:symbols";
/// A report has some kilobytes.
const MAX_REPORT_BYTES: usize = 1 << 20;
/// Reports per round trip, which bounds the size of an answer.
const READ_AT_ONCE: usize = 64;
const MAX_SYMBOLS: usize = 10_000;
/// The longest entry of the index that is ours, with room to spare.
const MAX_ENTRY_BYTES: usize = 200;

static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/read.lua")));
static INDEXED: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/indexed.lua")));
static CLAIM: LazyLock<Script> = LazyLock::new(|| writing(include_str!("scripts/claim.lua")));
static WRITE: LazyLock<Script> = LazyLock::new(|| writing(include_str!("scripts/write.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| writing(include_str!("scripts/release.lua")));

/// A script of the writer's side.
fn writing(source: &str) -> Script {
    Script::new([include_str!("scripts/common.lua"), source].concat())
}

fn report_key(symbol: &str) -> String {
    format!("report:{symbol}")
}

fn writer_key(symbol: &str) -> String {
    format!("report:writer:{symbol}")
}

/// Our other keys begin with lower-case words, and symbols have none: a caller must not reach those keys.
fn may_be_a_symbol(text: &str) -> bool {
    (1..=64).contains(&text.len()) && !text.contains(|c: char| c.is_ascii_lowercase() || c == ':' || c.is_control())
}

/// Names under our keys may be foreign, so they need not be UTF-8.
fn name(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// For a word that our scripts do not answer.
fn unexpected() -> Failure {
    RedisError::from((ErrorKind::UnexpectedReturnType, "no answer of our scripts")).into()
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

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCache").field("place", &self.place).finish_non_exhaustive()
    }
}

impl RedisCache {
    /// Fails only for a malformed address: Redis may start later.
    pub fn open(url: &str, clock: Arc<dyn Clock>) -> tribune_core::Result<Self> {
        Self::open_with_timing(url, clock, Timing::DEFAULT)
    }

    pub fn open_with_timing(url: &str, clock: Arc<dyn Clock>, timing: Timing) -> tribune_core::Result<Self> {
        let address = Address::parse(url)?;
        Ok(Self {
            timing,
            readers: Link::new(&address, "read", timing.read_within, clock.clone()),
            writers: Link::new(&address, "write", timing.write_within, clock.clone()),
            place: address.place,
            clock,
            decoded: Decoded::new(),
        })
    }

    async fn fetch(&self, mut redis: Connection, symbols: &[&Arc<str>]) -> Result<Vec<Found>, Failure> {
        let mut found = Vec::with_capacity(symbols.len());
        for some in symbols.chunks(READ_AT_ONCE) {
            let call = |symbol: &&Arc<str>| Call::on([report_key(symbol)]).with(MAX_REPORT_BYTES);
            let calls: Vec<Call> = some.iter().map(call).collect();
            let sent = self.clock.monotonic();
            let answers: Vec<(String, i64, Vec<u8>)> = redis.run(&READ, &calls).await?;
            for (symbol, (kind, number, json)) in some.iter().zip(answers) {
                let read = self.found(symbol, &kind, number, json, sent);
                let garbage = |what| Found::Garbage(format!("{} holds {what}", report_key(symbol)));
                found.push(read.unwrap_or_else(garbage));
            }
            if symbols.len() > READ_AT_ONCE {
                tokio::task::yield_now().await;
            }
        }
        Ok(found)
    }

    /// What is under a report's key; an error says what is there instead of a report.
    fn found(&self, symbol: &Arc<str>, kind: &str, number: i64, json: Vec<u8>, sent: Instant) -> Result<Found, String> {
        match kind {
            "none" => return Ok(Found::Nothing),
            "string" => {}
            "long" => return Err(format!("{number} bytes, too many for a report")),
            kind => return Err(format!("a {} instead of a report", quoted(kind))),
        }
        let never = |_| "a value that never expires, so that its age is not known".to_owned();
        let life = Duration::from_millis(u64::try_from(number).map_err(never)?);
        let keep = self.timing.keep_report;
        let Some(when_sent) = keep.checked_sub(life) else {
            return Err("a value that expires later than any report".to_owned());
        };
        let report = self.decoded.report(symbol, json)?;
        // Redis counts whole milliseconds, so the time to live may be up to one shorter.
        let since_sent = self.clock.monotonic().saturating_duration_since(sent);
        let age = when_sent + Duration::from_millis(1) + since_sent;
        // Redis lets a key live up to a millisecond longer.
        if age >= keep {
            return Ok(Found::Nothing);
        }
        Ok(Found::Report(Stored { report, age }))
    }

    fn write_call(&self, write: &Write, json: &[u8], redis: &Connection) -> Call {
        let Write { report, generated } = write;
        let elapsed = self.clock.monotonic().saturating_duration_since(*generated);
        let entry = [&*report.symbol, &*report.base_asset, &*report.quote_asset].join("/");
        Call::on([writer_key(&report.symbol), report_key(&report.symbol), SYMBOLS.to_owned()])
            .with(&report.writer.node_id)
            .with((report.writer.writer_token, report.writer.sequence))
            .with((redis.redis_time_at(*generated), micros(elapsed)))
            .with(json)
            .with((entry, MAX_SYMBOLS))
            .with(millis(self.timing.lease))
            .with(millis(self.timing.keep_report))
            .with(millis(self.timing.keep_symbol))
    }

    fn claim_call(&self, node: &NodeId, claim: &Claim) -> Call {
        Call::on([writer_key(&claim.symbol)])
            .with((&*node.0, u8::from(claim.is_fresh), claim.floor))
            .with((millis(self.timing.lease), millis(self.timing.keep_symbol)))
    }
}

/// A report as it is stored.
fn json(write: &Write) -> Result<Vec<u8>, Unavailable> {
    let symbol = &write.report.symbol;
    let json = serde_json::to_vec(&write.report)
        .map_err(|error| Unavailable(format!("the report of {symbol} cannot be written as JSON: {error}")))?;
    match json.len() {
        length if length > MAX_REPORT_BYTES => Err(Unavailable(format!(
            "the report of {symbol} has {length} bytes, more than the limit of {MAX_REPORT_BYTES}"
        ))),
        _ => Ok(json),
    }
}

/// Sorted by symbol, without duplicates; foreign entries are skipped.
fn by_symbol(entries: Vec<(Vec<u8>, u64)>, since_sent: Duration) -> Vec<Indexed> {
    let read = |(entry, age_ms): (Vec<u8>, u64)| {
        let entry = name(&entry);
        // Names cannot contain a slash.
        let mut names = entry.split('/').map(Arc::from);
        let indexed = Indexed {
            symbol: names.next()?,
            base: names.next()?,
            quote: names.next()?,
            age: Duration::from_millis(age_ms) + since_sent,
        };
        (names.next().is_none() && may_be_a_symbol(&indexed.symbol)).then_some(indexed)
    };
    let mut indexed: Vec<Indexed> = entries.into_iter().filter_map(read).collect();
    indexed.sort_by(|one, other| (&one.symbol, one.age).cmp(&(&other.symbol, other.age)));
    indexed.dedup_by(|later, kept| later.symbol == kept.symbol);
    indexed
}

#[async_trait]
impl ReportCache for RedisCache {
    async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable> {
        let asked: Vec<&Arc<str>> = symbols.iter().filter(|symbol| may_be_a_symbol(symbol)).collect();
        let fetched = self.readers.run("read", |redis| self.fetch(redis, &asked)).await?;
        let mut found = fetched.into_iter();
        let mut answer = |symbol: &Arc<str>| may_be_a_symbol(symbol).then(|| found.next()).flatten();
        Ok(symbols.iter().map(|symbol| answer(symbol).unwrap_or(Found::Nothing)).collect())
    }

    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable> {
        let ask = |mut redis: Connection| async move {
            let keep = millis(self.timing.keep_symbol);
            let call = Call::on([SYMBOLS.to_owned()]).with((MAX_SYMBOLS, MAX_ENTRY_BYTES, keep));
            let sent = self.clock.monotonic();
            let mut answers: Vec<Vec<(Vec<u8>, u64)>> = redis.run(&INDEXED, &[call]).await?;
            let since_sent = self.clock.monotonic().saturating_duration_since(sent);
            Ok(by_symbol(answers.pop().ok_or_else(unexpected)?, since_sent))
        };
        self.readers.run("indexed", ask).await
    }

    async fn claim(&self, node: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable> {
        let ask = |mut redis: Connection| async move {
            let calls: Vec<Call> = claims.iter().map(|claim| self.claim_call(node, claim)).collect();
            let answers: Vec<(u64, String, Token)> = redis.run(&CLAIM, &calls).await?;
            let lease = |(time, outcome, token): (u64, String, Token)| {
                redis.note_time(time);
                match outcome.as_str() {
                    "taken" => Ok(Lease::Taken { token }),
                    "renewed" => Ok(Lease::Renewed { token }),
                    "other" => Ok(Lease::Other { token }),
                    _ => Err(unexpected()),
                }
            };
            answers.into_iter().map(lease).collect()
        };
        self.writers.run("claim", ask).await
    }

    async fn write(&self, writes: &[Write]) -> Result<Vec<Written>, Unavailable> {
        let reports: Vec<Vec<u8>> = writes.iter().map(json).collect::<Result<_, _>>()?;
        let reports = &reports;
        let send = |mut redis: Connection| async move {
            let both = writes.iter().zip(reports);
            let calls: Vec<Call> = both.map(|(write, json)| self.write_call(write, json, &redis)).collect();
            let answers: Vec<(u64, String, Token, u64)> = redis.run(&WRITE, &calls).await?;
            let written = |(write, (time, outcome, token, sequence)): (&Write, (u64, String, Token, u64))| {
                redis.note_time(time);
                let writer = &write.report.writer;
                // Sent twice because the connection broke: it is there already.
                let is_there = redis.is_retry && (token, sequence) == (writer.writer_token, writer.sequence);
                match outcome.as_str() {
                    "stored" => Ok(Written::Stored),
                    "refused" if is_there => Ok(Written::Stored),
                    "refused" => Ok(Written::Refused { token }),
                    _ => Err(unexpected()),
                }
            };
            writes.iter().zip(answers).map(written).collect()
        };
        self.writers.run("write", send).await
    }

    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)]) -> Result<(), Unavailable> {
        let send = |mut redis: Connection| async move {
            let release = |(symbol, token): &(Arc<str>, Token)| {
                Call::on([writer_key(symbol)]).with((&*node.0, *token, millis(self.timing.lease)))
            };
            let calls: Vec<Call> = leases.iter().map(release).collect();
            redis.run::<redis::Value>(&RELEASE, &calls).await?;
            Ok(())
        };
        self.writers.run("release", send).await
    }

    fn place(&self) -> &str {
        &self.place
    }
}
