//! Reports in Redis, which several processes share.
//!
//! - `report:BTCUSDT`: the report's JSON, which expires when the report is too old
//! - `report:writer:BTCUSDT`: who may write it, as a hash
//! - `report:nodes`, `report:symbols`: the nodes that are alive and the symbols that have reports, as sorted sets
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
mod reply;
mod scripts;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use redis::Value;
use tribune_core::Clock;

use super::{
    Claim, Eagerness, Found, Indexed, Lease, NodeId, ReportCache, Stored, Timing, Token, Unavailable, Write, Written,
};
use address::Address;
use decoded::Decoded;
use failure::Failure;
use link::{Link, Session};
use reply::Content;
use scripts::Call;

pub use address::BadUrl;

const NODES: &str = "report:nodes";
const SYMBOLS: &str = "report:symbols";
/// A report has some kilobytes.
const MAX_REPORT_BYTES: usize = 1 << 20;
/// Reports per round trip, which bounds the size of an answer.
const READ_AT_ONCE: usize = 64;
const MAX_SYMBOLS: usize = 10_000;
const MAX_NODES: usize = 1_000;
/// The longest entry of the index that is ours, with room to spare.
const MAX_ENTRY_BYTES: usize = 200;

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

/// Connects on first use, and reconnects when needed.
pub struct RedisCache {
    clock: Arc<dyn Clock>,
    timing: Timing,
    place: Arc<str>,
    /// A connection of their own, so that readers do not wait behind large writes.
    readers: Link,
    writers: Link,
    decoded: Decoded,
    redis_time: Mutex<Option<RedisTime>>,
}

/// A lower bound of Redis's time when an answer arrived.
#[derive(Debug, Clone, Copy)]
struct RedisTime {
    micros: u64,
    received: Instant,
    /// Another connection may lead to another Redis.
    connection: u64,
}

impl RedisTime {
    /// A lower bound of Redis's time at a moment.
    fn at(&self, moment: Instant) -> u64 {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let later = micros(moment.saturating_duration_since(self.received));
        let earlier = micros(self.received.saturating_duration_since(moment));
        self.micros.saturating_add(later).saturating_sub(earlier)
    }
}

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCache")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// A report as it is sent to Redis.
struct Parcel<'a> {
    write: &'a Write,
    json: Vec<u8>,
}

impl RedisCache {
    /// Fails only for a malformed address: Redis may start later.
    pub fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Self, BadUrl> {
        Self::open_with_timing(url, clock, Timing::DEFAULT)
    }

    pub fn open_with_timing(url: &str, clock: Arc<dyn Clock>, timing: Timing) -> Result<Self, BadUrl> {
        let address = Address::parse(url)?;
        Ok(Self {
            timing,
            place: address.place.clone(),
            readers: Link::new(&address, "read", timing.read_within, clock.clone()),
            writers: Link::new(&address, "write", timing.write_within, clock.clone()),
            clock,
            decoded: Decoded::default(),
            redis_time: Mutex::new(None),
        })
    }

    async fn fetch(&self, mut session: Session, symbols: &[Arc<str>]) -> Result<Vec<Found>, Failure> {
        let mut found = Vec::with_capacity(symbols.len());
        for some in symbols.chunks(READ_AT_ONCE) {
            let calls: Vec<Call> = some
                .iter()
                .map(|symbol| Call::on(report_key(symbol)).with(MAX_REPORT_BYTES))
                .collect();
            let sent = self.clock.monotonic();
            let answers = session.run(&scripts::READ, &calls).await?;
            for (symbol, answer) in some.iter().zip(answers) {
                found.push(self.found(symbol, answer, sent)?);
            }
            if symbols.len() > READ_AT_ONCE {
                tokio::task::yield_now().await;
            }
        }
        Ok(found)
    }

    fn found(&self, symbol: &Arc<str>, answer: Value, sent: Instant) -> Result<Found, Failure> {
        let keep = self.timing.keep_report;
        let garbage = |what| Found::Garbage(format!("{} holds {what}", report_key(symbol)));
        let (json, life) = match reply::content(answer, keep)? {
            Content::Value(json, life) => (json, life),
            Content::Nothing => return Ok(Found::Nothing),
            Content::Garbage(what) => return Ok(garbage(what)),
        };
        let report = match self.decoded.report(symbol, json) {
            Ok(report) => report,
            Err(what) => return Ok(garbage(what)),
        };
        // Redis counts whole milliseconds, so the time to live may be up to one shorter.
        let when_sent = keep.saturating_sub(life) + Duration::from_millis(1);
        let age = when_sent + self.clock.monotonic().saturating_duration_since(sent);
        // Redis lets a key live up to a millisecond longer.
        if age >= keep {
            return Ok(Found::Nothing);
        }
        Ok(Found::Report(Stored { report, age }))
    }

    /// Answers of the writer's side begin with Redis's time.
    fn note_time(&self, micros: u64, connection: u64) {
        let time = RedisTime {
            micros,
            received: self.clock.monotonic(),
            connection,
        };
        *self.redis_time.lock().unwrap_or_else(PoisonError::into_inner) = Some(time);
    }

    /// Redis's time, from its last answer on this connection or asked for now.
    async fn time(&self, session: &mut Session) -> Result<RedisTime, Failure> {
        let known = *self.redis_time.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(time) = known.filter(|time| time.connection == session.number) {
            return Ok(time);
        }
        let (seconds, micros): (u64, u64) = reply::read(session.one(redis::cmd("TIME")).await?)?;
        Ok(RedisTime {
            micros: seconds.saturating_mul(1_000_000).saturating_add(micros),
            received: self.clock.monotonic(),
            connection: session.number,
        })
    }

    async fn send(&self, mut session: Session, parcels: &[Parcel<'_>]) -> Result<Vec<Written>, Failure> {
        let time = self.time(&mut session).await?;
        let calls: Vec<Call> = parcels.iter().map(|parcel| self.write_call(parcel, time)).collect();
        let answers = session.run(&scripts::WRITE, &calls).await?;
        let mut written = Vec::with_capacity(answers.len());
        for (parcel, answer) in parcels.iter().zip(answers) {
            let writer = &parcel.write.report.writer;
            let sent_before = session.again.then_some((writer.writer_token, writer.sequence));
            let (time, outcome) = reply::written(answer, sent_before)?;
            self.note_time(time, session.number);
            written.push(outcome);
        }
        Ok(written)
    }

    fn write_call(&self, parcel: &Parcel<'_>, time: RedisTime) -> Call {
        let Write { report, generated } = parcel.write;
        let elapsed = self.clock.monotonic().saturating_duration_since(*generated);
        Call::on(writer_key(&report.symbol))
            .and(report_key(&report.symbol))
            .and(SYMBOLS)
            .with(&report.writer.node_id)
            .with(report.writer.writer_token)
            .with(report.writer.sequence)
            .with(time.at(*generated))
            .with(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX))
            .with(parcel.json.as_slice())
            .with(reply::index_entry(report))
            .with(MAX_SYMBOLS)
            .with(millis(self.timing.lease))
            .with(millis(self.timing.keep_report))
            .with(millis(self.timing.keep_symbol))
    }

    fn claim_call(&self, node: &NodeId, claim: &Claim) -> Call {
        Call::on(writer_key(&claim.symbol))
            .with(&*node.0)
            .with(u8::from(claim.eagerness == Eagerness::First))
            .with(u8::from(claim.is_fresh))
            .with(claim.floor)
            .with(millis(self.timing.lease))
            .with(millis(self.timing.left_free))
            .with(millis(self.timing.node_alive))
            .with(millis(self.timing.keep_symbol))
    }

    fn nodes_call(&self, node: Option<&NodeId>, word: &str) -> Call {
        Call::on(NODES)
            .with(node.map_or("", |node| &*node.0))
            .with(word)
            .with(MAX_NODES)
            .with(millis(self.timing.node_alive))
    }

    async fn give_up(
        &self,
        mut session: Session,
        node: &NodeId,
        leases: &[(Arc<str>, Token)],
        leaving: bool,
    ) -> Result<(), Failure> {
        let calls: Vec<Call> = leases
            .iter()
            .map(|(symbol, token)| {
                Call::on(writer_key(symbol))
                    .with(&*node.0)
                    .with(*token)
                    .with(millis(self.timing.lease))
            })
            .collect();
        if !calls.is_empty() {
            session.run(&scripts::RELEASE, &calls).await?;
        }
        if leaving {
            let call = self.nodes_call(Some(node), "leaving");
            session.run(&scripts::NODES, &[call]).await?;
        }
        Ok(())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn parcel(write: &Write) -> Result<Parcel<'_>, Unavailable> {
    let symbol = &write.report.symbol;
    let json = serde_json::to_vec(&write.report)
        .map_err(|error| Unavailable(format!("the report of {symbol} cannot be written as JSON: {error}")))?;
    if json.len() > MAX_REPORT_BYTES {
        let length = json.len();
        return Err(Unavailable(format!(
            "the report of {symbol} has {length} bytes, more than the limit of {MAX_REPORT_BYTES}"
        )));
    }
    Ok(Parcel { write, json })
}

#[async_trait]
impl ReportCache for RedisCache {
    async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable> {
        let asked: Vec<Arc<str>> = symbols
            .iter()
            .filter(|symbol| may_be_a_symbol(symbol))
            .cloned()
            .collect();
        let mut found = Vec::new().into_iter();
        if !asked.is_empty() {
            let fetched = self.readers.run("read", |session| self.fetch(session, &asked)).await?;
            found = fetched.into_iter();
        }
        let answer = |symbol: &Arc<str>| may_be_a_symbol(symbol).then(|| found.next()).flatten();
        Ok(symbols
            .iter()
            .map(answer)
            .map(|found| found.unwrap_or(Found::Nothing))
            .collect())
    }

    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable> {
        let ask = |mut session: Session| async move {
            let call = Call::on(SYMBOLS)
                .with(MAX_SYMBOLS)
                .with(MAX_ENTRY_BYTES)
                .with(millis(self.timing.keep_symbol));
            let sent = self.clock.monotonic();
            let mut answers = session.run(&scripts::INDEXED, &[call]).await?;
            let since_sent = self.clock.monotonic().saturating_duration_since(sent);
            reply::indexed(answers.pop().ok_or(Failure::Unexpected)?, since_sent)
        };
        self.readers.run("indexed", ask).await
    }

    async fn nodes(&self, alive: Option<&NodeId>) -> Result<Vec<NodeId>, Unavailable> {
        let ask = |mut session: Session| async move {
            let call = self.nodes_call(alive, "alive");
            let mut answers = session.run(&scripts::NODES, &[call]).await?;
            let answer = answers.pop().ok_or(Failure::Unexpected)?;
            let mut parts = reply::read::<Vec<Value>>(answer)?.into_iter();
            self.note_time(reply::read(parts.next().ok_or(Failure::Unexpected)?)?, session.number);
            let name = |part| Ok(NodeId(reply::name(&reply::read::<Vec<u8>>(part)?).into()));
            let mut nodes: Vec<NodeId> = parts.map(name).collect::<Result<_, Failure>>()?;
            nodes.sort();
            Ok(nodes)
        };
        self.writers.run("nodes", ask).await
    }

    async fn claim(&self, node: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let ask = |mut session: Session| async move {
            let calls: Vec<Call> = claims.iter().map(|claim| self.claim_call(node, claim)).collect();
            let answers = session.run(&scripts::CLAIM, &calls).await?;
            let mut leases = Vec::with_capacity(answers.len());
            for answer in answers {
                let (time, lease) = reply::lease(answer)?;
                self.note_time(time, session.number);
                leases.push(lease);
            }
            Ok(leases)
        };
        self.writers.run("claim", ask).await
    }

    async fn write(&self, writes: &[Write]) -> Result<Vec<Written>, Unavailable> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        let parcels: Vec<Parcel<'_>> = writes.iter().map(parcel).collect::<Result<_, _>>()?;
        self.writers.run("write", |session| self.send(session, &parcels)).await
    }

    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)], leaving: bool) -> Result<(), Unavailable> {
        self.writers
            .run("release", |session| self.give_up(session, node, leases, leaving))
            .await
    }

    fn place(&self) -> &str {
        &self.place
    }
}
