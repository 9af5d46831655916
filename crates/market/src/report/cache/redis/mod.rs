//! Reports in Redis, which several processes share.
//!
//! - `report:BTCUSDT`: the report's JSON, which expires when the report is too old
//! - `report:writer:BTCUSDT`: who may write it, as a hash
//! - `report:nodes`, `report:symbols`: who is alive, and of what there are reports, as sorted sets
//!
//! One Redis of version 6.2 or later (`SET … PXAT`), not a cluster: the scripts use several keys. Whatever else is
//! found under these keys is said to readers and replaced by writers.
//!
//! **Ages.** Nodes' clocks may differ, so the only clock is Redis's. A report's key expires [`KEEP_REPORT`] after the
//! report was *generated*; a reader gets the age from the remaining life, and adds what passed since it asked. The
//! writer knows Redis's time from its last answer: when that arrived, Redis's clock showed what is in the answer or
//! later, so that what is reckoned from it is never ahead of Redis's clock. Ages can so be a little too large, by
//! what an answer takes, but not too small, even if a write lingers on its way.
//!
//! [`KEEP_REPORT`]: super::KEEP_REPORT

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
use reply::{Content, Parts};
use scripts::Call;

pub use address::BadUrl;

const NODES: &str = "report:nodes";
const SYMBOLS: &str = "report:symbols";
/// A report has some kilobytes.
const MAX_REPORT_BYTES: usize = 1 << 20;
/// Reports that are fetched with one exchange: a bound on what can come back at once.
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

/// Our other keys begin with lower-case words, and symbols have no lower case: what is asked for by a caller must
/// not lead to them.
fn may_be_a_symbol(text: &str) -> bool {
    (1..=64).contains(&text.len()) && !text.contains(|c: char| c.is_ascii_lowercase() || c == ':' || c.is_control())
}

/// Connects when it is first used, and again whenever it must.
pub struct RedisCache {
    clock: Arc<dyn Clock>,
    timing: Timing,
    place: Arc<str>,
    /// Of their own, so that readers do not wait behind large writes.
    readers: Link,
    writers: Link,
    decoded: Decoded,
    redis_time: Mutex<Option<RedisTime>>,
}

/// What Redis's clock showed when an answer arrived, or a little earlier.
#[derive(Debug, Clone, Copy)]
struct RedisTime {
    micros: u64,
    received: Instant,
    /// The connection: behind another there may be another Redis.
    connection: u64,
}

impl RedisTime {
    /// When something happened by Redis's clock, or a little earlier.
    fn of(&self, moment: Instant) -> u64 {
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

/// A report as it is sent.
struct Parcel<'a> {
    write: &'a Write,
    json: Vec<u8>,
}

impl RedisCache {
    /// Only an address that cannot be one is an error: Redis may come later.
    pub fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Self, BadUrl> {
        Self::open_with_timing(url, clock, Timing::default())
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
        // Redis counts whole milliseconds: the life was up to one shorter.
        let when_sent = keep.saturating_sub(life) + Duration::from_millis(1);
        let age = when_sent + self.clock.monotonic().saturating_duration_since(sent);
        // Redis lets a key live up to a millisecond longer.
        if age >= keep {
            return Ok(Found::Nothing);
        }
        Ok(Found::Report(Stored { report, age }))
    }

    /// Answers of the writer's side begin with Redis's time.
    fn note_time(&self, parts: &mut Parts, connection: u64) -> Result<RedisTime, Failure> {
        let time = RedisTime {
            micros: parts.whole()?,
            received: self.clock.monotonic(),
            connection,
        };
        *self.redis_time.lock().unwrap_or_else(PoisonError::into_inner) = Some(time);
        Ok(time)
    }

    /// Redis's time, from its last answer on this connection or asked for now.
    async fn time(&self, session: &mut Session) -> Result<RedisTime, Failure> {
        let known = *self.redis_time.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(time) = known.filter(|time| time.connection == session.number) {
            return Ok(time);
        }
        let mut parts = Parts::of(session.one(redis::cmd("TIME")).await?)?;
        let mut digits = || parts.text()?.parse::<u64>().map_err(|_| Failure::Unexpected);
        let (seconds, micros) = (digits()?, digits()?);
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
            let mut parts = Parts::of(answer)?;
            self.note_time(&mut parts, session.number)?;
            let writer = &parcel.write.report.writer;
            let sent_before = session.again.then_some((writer.writer_token, writer.sequence));
            written.push(reply::written(&mut parts, sent_before)?);
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
            .with(time.of(*generated))
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
            "the report of {symbol} has {length} bytes, more than the {MAX_REPORT_BYTES} that are kept"
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
            let mut parts = Parts::of(answers.pop().ok_or(Failure::Unexpected)?)?;
            self.note_time(&mut parts, session.number)?;
            let mut nodes = Vec::new();
            while !parts.is_empty() {
                nodes.push(NodeId(parts.text()?.into()));
            }
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
                let mut parts = Parts::of(answer)?;
                self.note_time(&mut parts, session.number)?;
                leases.push(reply::lease(&mut parts)?);
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
