//! What scripts answer, read without trust.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::super::{Indexed, Lease, NodeId, Token, Written};
use super::failure::{Failure, quoted};
use super::may_be_a_symbol;
use crate::report::model::Report;

/// What stands between symbol, base and quote in the index: no name has it.
const SEPARATOR: char = '/';

/// The parts of an answer, one after the other.
pub(super) struct Parts(std::vec::IntoIter<Value>);

impl Parts {
    pub(super) fn of(answer: Value) -> Result<Self, Failure> {
        match answer {
            Value::Array(parts) => Ok(Self(parts.into_iter())),
            _ => Err(Failure::Unexpected),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    pub(super) fn integer(&mut self) -> Result<i64, Failure> {
        match self.0.next() {
            Some(Value::Int(number)) => Ok(number),
            _ => Err(Failure::Unexpected),
        }
    }

    pub(super) fn whole(&mut self) -> Result<u64, Failure> {
        self.integer()?.try_into().map_err(|_| Failure::Unexpected)
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Failure> {
        match self.0.next() {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            Some(Value::SimpleString(text)) => Ok(text.into_bytes()),
            _ => Err(Failure::Unexpected),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, Failure> {
        let bytes = self.bytes()?;
        // Names under our keys may be anybody's: whatever is in them, they stay names.
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn digits(&mut self) -> Result<u64, Failure> {
        self.text()?.parse().map_err(|_| Failure::Unexpected)
    }
}

pub(super) fn lease(parts: &mut Parts) -> Result<Lease, Failure> {
    let outcome = parts.text()?;
    let token = parts.digits()?;
    let name = parts.text()?;
    let node = |name: String| NodeId(name.into());
    match outcome.as_str() {
        "taken" => Ok(Lease::Taken { token }),
        "renewed" => Ok(Lease::Renewed {
            token,
            wanted_by: Some(name).filter(|name| !name.is_empty()).map(node),
        }),
        "other" => Ok(Lease::Other {
            node: node(name),
            token,
        }),
        "free" => Ok(Lease::Free),
        _ => Err(Failure::Unexpected),
    }
}

/// A report that was sent twice because its connection broke is not refused for being there already.
pub(super) fn written(parts: &mut Parts, sent_before: Option<(Token, u64)>) -> Result<Written, Failure> {
    let outcome = parts.text()?;
    let token = parts.digits()?;
    let sequence = parts.digits()?;
    match outcome.as_str() {
        "stored" => Ok(Written::Stored),
        "refused" if sent_before == Some((token, sequence)) => Ok(Written::Stored),
        "refused" => Ok(Written::Refused { token }),
        _ => Err(Failure::Unexpected),
    }
}

/// What is under a report's key.
pub(super) enum Content {
    Nothing,
    /// Of the right type and length, and its remaining life.
    Value(Vec<u8>, Duration),
    /// What is there instead.
    Garbage(String),
}

pub(super) fn content(answer: Value, keep: Duration) -> Result<Content, Failure> {
    let mut parts = Parts::of(answer)?;
    let garbage = |what: String| Ok(Content::Garbage(what));
    match parts.text()?.as_str() {
        "none" => Ok(Content::Nothing),
        "string" => {
            let Ok(life) = u64::try_from(parts.integer()?) else {
                return garbage("a value that never expires, so that its age is not known".to_owned());
            };
            let life = Duration::from_millis(life);
            if life > keep {
                return garbage("a value that expires later than any report".to_owned());
            }
            Ok(Content::Value(parts.bytes()?, life))
        }
        "long" => garbage(format!("{} bytes, too many for a report", parts.integer()?)),
        kind => garbage(format!("a {} instead of a report", quoted(kind))),
    }
}

pub(super) fn index_entry(report: &Report) -> String {
    [
        report.symbol.as_str(),
        report.base_asset.as_str(),
        report.quote_asset.as_str(),
    ]
    .join(&SEPARATOR.to_string())
}

/// By name, each once; entries that are not ours are passed over.
pub(super) fn indexed(answer: Value, since_sent: Duration) -> Result<Vec<Indexed>, Failure> {
    let mut parts = Parts::of(answer)?;
    let mut indexed = Vec::new();
    while !parts.is_empty() {
        let entry = parts.text()?;
        let age = Duration::from_millis(parts.whole()?) + since_sent;
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
