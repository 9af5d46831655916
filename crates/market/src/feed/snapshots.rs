//! Snapshots are the scarce thing: they are fetched in the order of trading volume, a few at a time,
//! as the weight budget allows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::shard::Order;
use crate::book::Snapshot;
use crate::rest::Rest;

/// Fetched at the same time.
const PARALLEL: usize = 4;
/// Levels a side of a snapshot that is not deep.
const SHALLOW: u32 = 1_000;

/// Levels of a snapshot of which only the update id is wanted: as cheap as there is.
const FEWEST: u32 = 5;

/// What is wanted of a book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Book {
        limit: u32,
    },
    /// Only which update it is at.
    Place,
    /// So many levels or none: there is a book already, so it comes behind all others.
    Deeper {
        limit: u32,
    },
}

/// A snapshot that a shard waits for.
pub(super) struct Wanted {
    pub(super) rank: usize,
    pub(super) symbol: Arc<str>,
    pub(super) kind: Kind,
    /// Given back with the answer, so that one that comes too late is known.
    pub(super) generation: u64,
    pub(super) reply: mpsc::UnboundedSender<Order>,
}

/// Why there is no snapshot, and when it can be had, where that is known.
pub(super) struct Unanswered {
    pub(super) reason: String,
    pub(super) wait: Option<Duration>,
}

/// Fetches what is wanted until told to stop. Who asks again before it was fetched asks once.
pub(super) async fn run(rest: Rest, mut wanted: mpsc::UnboundedReceiver<Wanted>, stop: CancellationToken) {
    let mut queue: BinaryHeap<(Reverse<usize>, Reverse<u64>, Arc<str>)> = BinaryHeap::new();
    let mut waiting: HashMap<Arc<str>, Wanted> = HashMap::new();
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
                        Kind::Deeper { .. } => usize::MAX,
                        Kind::Book { .. } | Kind::Place => more.rank,
                    };
                    let place = (Reverse(rank), Reverse(number), more.symbol.clone());
                    let before = waiting.insert(more.symbol.clone(), more);
                    // What had time has its place at the end, where nothing else is to wait.
                    if before.is_none_or(|before| matches!(before.kind, Kind::Deeper { .. })) {
                        queue.push(place);
                    }
                }
            }
            Some(_) = under_way.join_next() => {}
        }
    }
}

async fn fetch(rest: Rest, wanted: Wanted) {
    let used = rest.governor().used();
    let snapshot = match wanted.kind {
        Kind::Book { limit } => depth(&rest, &wanted.symbol, affordable(limit, used)).await,
        Kind::Place => depth(&rest, &wanted.symbol, FEWEST).await,
        Kind::Deeper { limit } if affordable(limit, used) == limit => depth(&rest, &wanted.symbol, limit).await,
        Kind::Deeper { .. } => Err(Unanswered {
            reason: "there is no weight for it now".to_owned(),
            wait: None,
        }),
    };
    // A shard that has ended wants nothing any more.
    let _ = wanted.reply.send(Order::Snapshot {
        symbol: wanted.symbol,
        generation: wanted.generation,
        snapshot,
    });
}

async fn depth(rest: &Rest, symbol: &str, limit: u32) -> Result<Snapshot, Unanswered> {
    match rest.fresh_depth(symbol, limit).await {
        Ok(stamped) => Ok(Snapshot {
            last_update_id: stamped.value.last_update_id,
            bids: stamped.value.bids,
            asks: stamped.value.asks,
            limit: limit as usize,
        }),
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
