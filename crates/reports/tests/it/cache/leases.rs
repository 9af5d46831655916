//! One writer per symbol, however many nodes ask, and growing fencing tokens.

use std::collections::HashSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tribune_reports::cache::{Claim, Lease, NodeId, ReportCache, Timing, Token};

use super::{BRIEF, PATIENT, Shared, claims, on_redis, reads, takes, wait_for_expiry, writes};
use crate::reports::{BTC, claim, node, stored, symbol, write};

async fn late_writes_of_an_old_writer_are_refused(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    assert!(!writes(&cache, write(BTC, &a, 7, 1)).await, "nobody has a lease");
    let old = takes(&cache, &a, BTC).await;
    assert!(writes(&cache, write(BTC, &a, old, 9)).await);
    cache.release(&a, &[(symbol(BTC), old)]).await.expect("it answers");
    assert!(!writes(&cache, write(BTC, &a, old, 10)).await, "given up");
    let new = takes(&shared.open(), &b, BTC).await;
    assert!(new > old);
    assert!(writes(&cache, write(BTC, &b, new, 1)).await);
    assert!(!writes(&cache, write(BTC, &a, old, 11)).await, "the old token");
    assert!(!writes(&cache, write(BTC, &a, new, 11)).await, "the new token of another");
    assert!(!writes(&cache, write(BTC, &b, old, 11)).await, "the old token of another");
    assert!(!writes(&cache, write(BTC, &b, new + 1, 11)).await, "a token of nobody");
    let report = &stored(&reads(&cache, BTC).await).report.writer.clone();
    assert_eq!((report.writer_token, report.sequence), (new, 1));
}

async fn older_sequences_are_refused(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a) = (shared.open(), node("a"));
    let token = takes(&cache, &a, BTC).await;
    assert!(writes(&cache, write(BTC, &a, token, 5)).await);
    for sequence in [4, 0] {
        assert!(!writes(&cache, write(BTC, &a, token, sequence)).await, "{sequence}");
    }
    assert!(writes(&cache, write(BTC, &a, token, 5)).await, "the same one, sent again");
    assert!(writes(&cache, write(BTC, &a, token, 6)).await);
    assert_eq!(stored(&reads(&cache, BTC).await).report.writer.sequence, 6);
}

async fn expired_lease_cannot_write(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing { lease: BRIEF, ..PATIENT });
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    let token = takes(&cache, &a, BTC).await;
    wait_for_expiry().await;
    assert!(!writes(&cache, write(BTC, &a, token, 1)).await);
    let again = takes(&cache, &a, BTC).await;
    assert!(again > token, "not renewed: others may have written meanwhile");
    wait_for_expiry().await;
    assert!(takes(&cache, &b, BTC).await > again);
}

async fn lease_is_renewed_and_kept_from_others(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    let token = takes(&cache, &a, BTC).await;
    for _ in 0..2 {
        assert_eq!(claims(&cache, &b, claim(BTC)).await, Lease::Other);
        assert_eq!(claims(&cache, &a, claim(BTC)).await, Lease::Renewed(token));
    }
    cache.release(&a, &[(symbol(BTC), token)]).await.expect("it answers");
    assert!(takes(&cache, &b, BTC).await > token, "at once");
}

async fn fresh_node_takes_over_from_stale_one(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a, b, c) = (shared.open(), node("a"), node("b"), node("c"));
    let stale = || Claim { is_fresh: false, ..claim(BTC) };
    let token = takes(&cache, &a, BTC).await;
    assert_eq!(claims(&cache, &b, claim(BTC)).await, Lease::Other);
    assert_eq!(claims(&cache, &a, stale()).await, Lease::Renewed(token), "it goes on until somebody can");
    assert_eq!(claims(&cache, &c, stale()).await, Lease::Other, "no better");
    let next = takes(&cache, &b, BTC).await;
    assert!(next > token);
    assert_eq!(claims(&cache, &a, claim(BTC)).await, Lease::Other, "b is fresh");
}

async fn node_releases_only_its_own_lease(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    let token = takes(&cache, &a, BTC).await;
    cache.release(&b, &[(symbol(BTC), token)]).await.expect("it answers");
    cache.release(&a, &[(symbol(BTC), token - 1)]).await.expect("it answers");
    cache.release(&a, &[(symbol("ETHUSDT"), token)]).await.expect("it answers");
    assert_eq!(claims(&cache, &a, claim(BTC)).await, Lease::Renewed(token));
}

/// Several nodes at once, hundreds of changes: every token is unique and larger than those before it.
async fn tokens_grow_with_every_change(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let over = CancellationToken::new();
    let reader = tokio::spawn(never_older(shared.open(), over.clone()));
    let racers: Vec<_> =
        (0..4).map(|number| tokio::spawn(race(shared.open(), node(&format!("node-{number}"))))).collect();
    let mut all = HashSet::new();
    for racer in racers {
        for token in racer.await.expect("no assertion failed") {
            assert!(all.insert(token), "{token} twice");
        }
    }
    assert_eq!(all.len(), 240);
    over.cancel();
    reader.await.expect("no assertion failed");
}

/// Takes the symbol whenever it can, writes one report and releases it; returns its tokens.
async fn race(cache: Arc<dyn ReportCache>, me: NodeId) -> Vec<Token> {
    let mut taken: Vec<Token> = Vec::new();
    let mut seen: Token = 0;
    while taken.len() < 60 {
        match claims(&cache, &me, claim(BTC)).await {
            Lease::Taken(token) => {
                assert!(token > seen, "{token} after {seen}");
                seen = token;
                taken.push(token);
                let sequence = 100 - taken.len() as u64;
                assert!(writes(&cache, write(BTC, &me, token, sequence)).await);
                cache.release(&me, &[(symbol(BTC), token)]).await.expect("it answers");
            }
            Lease::Other => {}
            other => panic!("{other:?}"),
        }
        tokio::task::yield_now().await;
    }
    taken
}

/// Checks that no report read is older than the one before.
async fn never_older(cache: Arc<dyn ReportCache>, over: CancellationToken) {
    let mut last = (0, 0);
    loop {
        // Checked before reading: a reader that starts late still finds the last report.
        let is_over = over.is_cancelled();
        if let [Ok(Some(stored))] = &reads(&cache, BTC).await[..] {
            let writer = &stored.report.writer;
            assert!((writer.writer_token, writer.sequence) >= last);
            last = (writer.writer_token, writer.sequence);
        }
        if is_over {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(last.0 > 0, "there were reports");
}

on_redis! {
    late_writes_of_an_old_writer_are_refused
    older_sequences_are_refused
    expired_lease_cannot_write
    lease_is_renewed_and_kept_from_others
    fresh_node_takes_over_from_stale_one
    node_releases_only_its_own_lease
    tokens_grow_with_every_change
}
