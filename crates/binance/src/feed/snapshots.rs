//! Fetches snapshots, which cost the most weight: in the order of trading volume, a few at a time, within the budget.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::observer::Observer;
use super::shard::Command;
use crate::rest::Rest;

/// Fetched at the same time.
const PARALLEL: usize = 4;
/// Levels a side of a snapshot that is not deep.
const SHALLOW: u32 = 1_000;

/// Levels of a snapshot that is fetched only for its update id: the cheapest request.
const FEWEST: u32 = 5;

/// What to request from the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// A snapshot to start from.
    Book,
    /// Only the update id of its book, when ours was at this one.
    UpdateId(u64),
    /// A snapshot with more levels than the one that the book started from: there is a book already, so it comes last.
    MoreLevels,
}

/// A snapshot that a shard waits for.
pub(super) struct Wanted<O> {
    pub(super) rank: usize,
    pub(super) symbol: Arc<str>,
    pub(super) want: Want,
    /// How many levels the book should have.
    pub(super) limit: u32,
    /// Returned with the answer, so that an answer that comes too late is recognised.
    pub(super) generation: u64,
    pub(super) reply: mpsc::UnboundedSender<Command<O>>,
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
                    let rank = if more.want == Want::MoreLevels { usize::MAX } else { more.rank };
                    let place = (Reverse(rank), Reverse(number), more.symbol.clone());
                    let before = waiting.insert(more.symbol.clone(), more);
                    // A request for more levels has its place at the end; any other gets a new place.
                    if before.is_none_or(|before| before.want == Want::MoreLevels) {
                        queue.push(place);
                    }
                }
            }
            Some(_) = under_way.join_next() => {}
        }
    }
}

async fn fetch<O: Observer>(rest: Rest, wanted: Wanted<O>) {
    let limit = match wanted.want {
        Want::UpdateId(_) => FEWEST,
        Want::Book | Want::MoreLevels => affordable(wanted.limit, rest.governor().used()),
    };
    // A book that has fewer levels than it should have stays as it is until there is weight for all of them.
    let is_in_vain = wanted.want == Want::MoreLevels && limit < wanted.limit;
    let snapshot = match is_in_vain {
        true => Ok(None),
        false => rest.fresh_depth(&wanted.symbol, limit).await.map(|stamped| Some(stamped.value)),
    };
    // The shard may have ended.
    let _ = wanted.reply.send(Command::Snapshot { symbol: wanted.symbol, generation: wanted.generation, snapshot });
}

/// A deep snapshot weighs as much as five others: once a quarter of the minute's weight is used, books
/// come back sooner with fewer levels.
fn affordable(limit: u32, (used, budget): (u32, u32)) -> u32 {
    if used > budget / 4 { limit.min(SHALLOW) } else { limit }
}
