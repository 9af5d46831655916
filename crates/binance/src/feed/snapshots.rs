//! Fetches snapshots, which cost the most weight: in the order of trading volume, a few at a time, within the budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::published::Observer;
use super::shard::Command;
use crate::rest::Rest;

/// Fetched at the same time.
const PARALLEL: usize = 4;
/// Levels of a snapshot that is fetched only for its update id: the cheapest request.
pub(super) const FEWEST: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// A snapshot to start from.
    Book,
    /// Only the update id of its book.
    UpdateId,
}

pub(super) struct Wanted<O> {
    pub(super) rank: usize,
    pub(super) symbol: Arc<str>,
    /// Levels a side.
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
    let mut waiting = BTreeMap::new();
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < PARALLEL
            && let Some((_, next)) = waiting.pop_first()
        {
            under_way.spawn(fetch(rest.clone(), next));
        }
        tokio::select! {
            () = stop.cancelled() => return,
            more = wanted.recv() => {
                let Some(first) = more else { return };
                // All that is wanted by now, so that the most traded of it goes first.
                for more in std::iter::once(first).chain(std::iter::from_fn(|| wanted.try_recv().ok())) {
                    waiting.insert((more.rank, more.symbol.clone()), more);
                }
            }
            Some(_) = under_way.join_next() => {}
        }
    }
}

async fn fetch<O: Observer>(rest: Rest, wanted: Wanted<O>) {
    let snapshot = rest.fresh_depth(&wanted.symbol, wanted.limit).await.map(|stamped| stamped.value);
    // The shard may have ended.
    let _ = wanted.reply.send(Command::Snapshot { symbol: wanted.symbol, generation: wanted.generation, snapshot });
}
