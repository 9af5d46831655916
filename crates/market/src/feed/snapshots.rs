//! Snapshots are the scarce thing: they are fetched in the order of trading volume, a few at a time,
//! as the weight budget allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::shard::Order;
use crate::book::Snapshot;
use crate::rest::Rest;

/// Fetched at the same time.
const PARALLEL: usize = 4;

/// A snapshot that a shard waits for.
pub(super) struct Wanted {
    pub(super) rank: usize,
    pub(super) symbol: Arc<str>,
    pub(super) limit: u32,
    /// Given back with the answer, so that one that comes too late is known.
    pub(super) generation: u64,
    pub(super) reply: mpsc::UnboundedSender<Order>,
}

/// Fetches what is wanted until told to stop.
pub(super) async fn run(rest: Rest, mut wanted: mpsc::UnboundedReceiver<Wanted>, stop: CancellationToken) {
    let mut queue: BinaryHeap<(Reverse<usize>, Reverse<u64>)> = BinaryHeap::new();
    let mut waiting: std::collections::HashMap<u64, Wanted> = std::collections::HashMap::new();
    let mut number = 0;
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < PARALLEL
            && let Some((_, Reverse(next))) = queue.pop()
        {
            if let Some(wanted) = waiting.remove(&next) {
                under_way.spawn(fetch(rest.clone(), wanted));
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            more = wanted.recv() => match more {
                Some(more) => {
                    number += 1;
                    queue.push((Reverse(more.rank), Reverse(number)));
                    waiting.insert(number, more);
                }
                None => return,
            },
            Some(_) = under_way.join_next() => {}
        }
    }
}

async fn fetch(rest: Rest, wanted: Wanted) {
    let answer = rest.fresh_depth(&wanted.symbol, wanted.limit).await;
    let snapshot = answer.map(|stamped| Snapshot {
        last_update_id: stamped.value.last_update_id,
        bids: stamped.value.bids,
        asks: stamped.value.asks,
        limit: wanted.limit as usize,
    });
    // A shard that has ended wants nothing any more.
    let _ = wanted.reply.send(Order::Snapshot {
        symbol: wanted.symbol,
        generation: wanted.generation,
        snapshot: snapshot.map_err(|error| error.to_string()),
    });
}
