//! Fetches snapshots, which cost the most weight: in the order of trading volume, a few at a time, within the budget.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::observer::Observer;
use super::shard::Command;
use crate::book::Snapshot;
use crate::rest::Rest;

/// Fetched at the same time.
const PARALLEL: usize = 4;
/// Levels a side of a snapshot that is not deep.
const SHALLOW: u32 = 1_000;

/// Levels of a snapshot of which only the update id is wanted: the cheapest there is.
const FEWEST: u32 = 5;

/// What is wanted of a book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Book {
        limit: u32,
    },
    /// Only the update id it is at.
    UpdateId,
    /// So many levels or none: there is a book already, so it comes last.
    MoreLevels {
        limit: u32,
    },
}

/// A snapshot that a shard waits for.
pub(super) struct Wanted<O> {
    pub(super) rank: usize,
    pub(super) symbol: Arc<str>,
    pub(super) kind: Kind,
    /// Returned with the answer, so that an answer that comes too late is recognised.
    pub(super) generation: u64,
    pub(super) reply: mpsc::UnboundedSender<Command<O>>,
}

/// Why there is no snapshot, and how long to wait for one if that is known.
pub(super) struct Unanswered {
    pub(super) reason: String,
    pub(super) wait: Option<Duration>,
}

/// Fetches what is wanted until `stop`. A symbol that asks again before its fetch is fetched once.
pub(super) async fn run<O: Observer>(
    rest: Rest,
    mut wanted: mpsc::UnboundedReceiver<Wanted<O>>,
    stop: CancellationToken,
) {
    let mut queue: BinaryHeap<(Reverse<usize>, Reverse<u64>, Arc<str>)> = BinaryHeap::new();
    let mut waiting: HashMap<Arc<str>, Wanted<O>> = HashMap::new();
    let mut number = 0;
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < PARALLEL
            && let Some((.., next)) = queue.pop()
        {
            if let Some(wanted) = waiting.remove(&next) {
                under_way.spawn(fetch(rest.clone(), wanted));
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            more = wanted.recv() => {
                let Some(first) = more else { return };
                // All that is wanted by now, so that the most traded of it goes first.
                for more in std::iter::once(first).chain(std::iter::from_fn(|| wanted.try_recv().ok())) {
                    number += 1;
                    let rank = match more.kind {
                        Kind::MoreLevels { .. } => usize::MAX,
                        Kind::Book { .. } | Kind::UpdateId => more.rank,
                    };
                    let place = (Reverse(rank), Reverse(number), more.symbol.clone());
                    let before = waiting.insert(more.symbol.clone(), more);
                    // A request for more levels has its place at the end; any other gets a new place.
                    if before.is_none_or(|before| matches!(before.kind, Kind::MoreLevels { .. })) {
                        queue.push(place);
                    }
                }
            }
            Some(_) = under_way.join_next() => {}
        }
    }
}

async fn fetch<O: Observer>(rest: Rest, wanted: Wanted<O>) {
    let used = rest.governor().used();
    let snapshot = match wanted.kind {
        Kind::Book { limit } => depth(&rest, &wanted.symbol, affordable(limit, used)).await,
        Kind::UpdateId => depth(&rest, &wanted.symbol, FEWEST).await,
        Kind::MoreLevels { limit } if affordable(limit, used) == limit => depth(&rest, &wanted.symbol, limit).await,
        Kind::MoreLevels { .. } => Err(Unanswered {
            reason: "not enough weight is left in this minute".to_owned(),
            wait: None,
        }),
    };
    // The shard may have ended.
    let _ = wanted.reply.send(Command::Snapshot {
        symbol: wanted.symbol,
        generation: wanted.generation,
        snapshot,
    });
}

async fn depth(rest: &Rest, symbol: &str, limit: u32) -> Result<Snapshot, Unanswered> {
    match rest.fresh_depth(symbol, limit).await {
        Ok(stamped) => Ok(stamped.value),
        Err(error) => Err(Unanswered {
            reason: error.to_string(),
            wait: error.wait(),
        }),
    }
}

/// A deep snapshot weighs as much as five others: once a quarter of the minute's weight is used, books
/// come back sooner with fewer levels.
fn affordable(limit: u32, (used, budget): (u32, u32)) -> u32 {
    if used > budget / 4 { limit.min(SHALLOW) } else { limit }
}
