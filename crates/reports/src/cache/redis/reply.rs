//! Answers of the scripts, read without trust.

use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, Value};

use super::super::{Indexed, Lease, NodeId, Token, Written};
use super::failure::{Failure, quoted};
use super::may_be_a_symbol;
use crate::model::Report;

/// Between symbol, base and quote in the index; names cannot contain it.
const SEPARATOR: char = '/';

/// An answer as the script gives it.
pub(super) fn read<T: FromRedisValue>(answer: Value) -> Result<T, Failure> {
    redis::from_redis_value(answer).map_err(|_| Failure::Unexpected)
}

/// Names under our keys may be foreign, so they need not be UTF-8.
pub(super) fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A lease, and Redis's time before it.
pub(super) fn lease(answer: Value) -> Result<(u64, Lease), Failure> {
    let (time, outcome, token, node): (u64, String, Token, Vec<u8>) = read(answer)?;
    let node = NodeId(name(&node).into());
    let lease = match outcome.as_str() {
        "taken" => Lease::Taken { token },
        "renewed" => Lease::Renewed {
            token,
            wanted_by: Some(node).filter(|node| !node.0.is_empty()),
        },
        "other" => Lease::Other { node, token },
        "free" => Lease::Free,
        _ => return Err(Failure::Unexpected),
    };
    Ok((time, lease))
}

/// What became of a write, and Redis's time before it. A report that was sent twice because its connection broke is not
/// refused for being there already.
pub(super) fn written(answer: Value, sent_before: Option<(Token, u64)>) -> Result<(u64, Written), Failure> {
    let (time, outcome, token, sequence): (u64, String, Token, u64) = read(answer)?;
    let written = match outcome.as_str() {
        "stored" => Written::Stored,
        "refused" if sent_before == Some((token, sequence)) => Written::Stored,
        "refused" => Written::Refused { token },
        _ => return Err(Failure::Unexpected),
    };
    Ok((time, written))
}

/// What is under a report's key.
pub(super) enum Content {
    Nothing,
    /// Of the right type and length, with its time to live.
    Value(Vec<u8>, Duration),
    /// What is stored instead.
    Garbage(String),
}

pub(super) fn content(answer: Value, keep: Duration) -> Result<Content, Failure> {
    let mut parts = read::<Vec<Value>>(answer)?.into_iter();
    let mut next = || parts.next().ok_or(Failure::Unexpected);
    let kind: String = read(next()?)?;
    Ok(match kind.as_str() {
        "none" => Content::Nothing,
        "string" => match u64::try_from(read::<i64>(next()?)?).map(Duration::from_millis) {
            Err(_) => Content::Garbage("a value that never expires, so that its age is not known".to_owned()),
            Ok(life) if life > keep => Content::Garbage("a value that expires later than any report".to_owned()),
            Ok(life) => Content::Value(read(next()?)?, life),
        },
        "long" => Content::Garbage(format!("{} bytes, too many for a report", read::<u64>(next()?)?)),
        kind => Content::Garbage(format!("a {} instead of a report", quoted(kind))),
    })
}

pub(super) fn index_entry(report: &Report) -> String {
    [
        report.symbol.as_str(),
        report.base_asset.as_str(),
        report.quote_asset.as_str(),
    ]
    .join(&SEPARATOR.to_string())
}

/// Sorted by symbol, without duplicates; foreign entries are skipped.
pub(super) fn indexed(answer: Value, since_sent: Duration) -> Result<Vec<Indexed>, Failure> {
    let entries: Vec<(Vec<u8>, u64)> = read(answer)?;
    let mut indexed = Vec::new();
    for (entry, age_ms) in entries {
        let entry = name(&entry);
        let age = Duration::from_millis(age_ms) + since_sent;
        let names: Vec<Arc<str>> = entry.split(SEPARATOR).map(Arc::from).collect();
        if let [symbol, base, quote] = names.as_slice()
            && may_be_a_symbol(symbol)
        {
            indexed.push(Indexed {
                symbol: symbol.clone(),
                base: base.clone(),
                quote: quote.clone(),
                age,
            });
        }
    }
    indexed.sort_by(|one, other| (&one.symbol, one.age).cmp(&(&other.symbol, other.age)));
    indexed.dedup_by(|later, kept| later.symbol == kept.symbol);
    Ok(indexed)
}
