//! Reports are read back as they were written, with their age, until they expire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tribune_reports::cache::{Claim, Generated, Lease, Timing};

use super::{BRIEF, PATIENT, Shared, on_both, reads, takes, wait_for_expiry, writes};
use crate::reports::{BTC, claim, node, report, stored, symbol, write};

async fn written_report_is_read_back(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, other, a) = (shared.open(), shared.open(), node("a"));
    assert!(matches!(reads(&cache, BTC).await[..], [Ok(None)]));
    let token = takes(&cache, &a, BTC).await;
    assert!(writes(&cache, write(BTC, &a, token, 1)).await);
    assert_eq!(*stored(&reads(&other, BTC).await).report, report(BTC, &a, token, 1));
    assert!(writes(&cache, write(BTC, &a, token, 2)).await);
    assert_eq!(stored(&reads(&other, BTC).await).report.writer.sequence, 2);
}

async fn writes_need_the_token_in_force(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a) = (shared.open(), node("a"));
    assert!(!writes(&cache, write(BTC, &a, 7, 1)).await, "nobody has a lease");
    let old = takes(&cache, &a, BTC).await;
    assert!(writes(&cache, write(BTC, &a, old, 1)).await);
    assert!(writes(&cache, write(BTC, &a, old, 1)).await, "sent twice");
    cache.release(&a, &[(symbol(BTC), old - 1)]).await.expect("it answers");
    assert!(writes(&cache, write(BTC, &a, old, 2)).await, "the lease of another token was released");
    cache.release(&a, &[(symbol(BTC), old)]).await.expect("it answers");
    assert!(!writes(&cache, write(BTC, &a, old, 3)).await, "given up");
    let new = takes(&cache, &a, BTC).await;
    assert!(new > old);
    assert!(!writes(&cache, write(BTC, &a, old, 4)).await, "the old token");
    assert!(writes(&cache, write(BTC, &a, new, 1)).await);
}

async fn answers_keep_the_order_of_the_request(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a) = (shared.open(), node("a"));
    let names: Vec<Arc<str>> = (0..200).map(|number| symbol(&format!("S{number}USDT"))).collect();
    let asked: Vec<Claim> = names.iter().map(|name| claim(name)).collect();
    let leases = cache.claim(&a, &asked).await.expect("it answers");
    let parcels: Vec<Generated> = (names.iter().zip(&leases).step_by(2))
        .map(|(name, lease)| match lease {
            Lease::Taken(token) => write(name, &a, *token, 1),
            other => panic!("not taken: {other:?}"),
        })
        .collect();
    let written = cache.write(&parcels).await.expect("it answers");
    assert_eq!(written, vec![true; 100]);
    // Every second one is there.
    let found = cache.read(&names).await.expect("it answers");
    for (at, (name, found)) in names.iter().zip(found).enumerate() {
        match found {
            Ok(Some(stored)) if at % 2 == 0 => assert_eq!(stored.report.symbol, **name),
            Ok(None) if at % 2 == 1 => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(cache.read(&[]).await.expect("it answers").is_empty());
    assert!(cache.claim(&a, &[]).await.expect("it answers").is_empty());
    assert!(cache.write(&[]).await.expect("it answers").is_empty());
}

async fn ages_grow_and_are_never_too_small(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, other, a) = (shared.open(), shared.open(), node("a"));
    let token = takes(&cache, &a, BTC).await;
    let generated = Instant::now();
    // It takes a while from the report to its writing.
    wait_for_expiry().await;
    let parcel = Generated { at: generated, ..write(BTC, &a, token, 1) };
    assert!(writes(&cache, parcel).await);
    let (mut last, mut last_took) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..20 {
        let (begun, least) = (Instant::now(), generated.elapsed());
        let age = stored(&reads(&other, BTC).await).since;
        // What a question takes on its way counts twice.
        let took = begun.elapsed();
        let most = generated.elapsed() + took + Duration::from_secs(1);
        assert!((least..most).contains(&age), "{least:?} <= {age:?} < {most:?}");
        assert!(age + last_took > last, "{last:?} then {age:?}");
        (last, last_took) = (age, took);
        sleep(Duration::from_millis(3)).await;
    }
}

async fn report_expires(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing { keep_report: 2 * BRIEF, ..PATIENT });
    let (cache, a) = (shared.open(), node("a"));
    let token = takes(&cache, &a, BTC).await;
    let generated = Instant::now();
    let parcel = Generated { at: generated, ..write(BTC, &a, token, 1) };
    assert!(writes(&cache, parcel).await);
    loop {
        let before = generated.elapsed();
        match &reads(&cache, BTC).await[..] {
            [Ok(Some(stored))] => assert!(before < 2 * BRIEF && stored.since >= before, "{before:?}"),
            [Ok(None)] => break,
            other => panic!("{other:?}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
    // A slow answer makes the age an upper bound: by the cache's own clock it may have a moment left.
    wait_for_expiry().await;
    // One that is too old when it comes takes the place of the one before, which is older still.
    assert!(writes(&cache, write(BTC, &a, token, 2)).await);
    let parcel = Generated { at: generated, ..write(BTC, &a, token, 3) };
    assert!(writes(&cache, parcel).await);
    assert!(matches!(reads(&cache, BTC).await[..], [Ok(None)]));
    assert_eq!(cache.indexed().await.expect("it answers").len(), 1, "its name is kept");
}

/// Longer than a busy machine takes between two steps of a test.
const KEEP_SYMBOL: Duration = Duration::from_secs(4);

async fn symbols_stay_indexed_until_they_expire(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing { keep_report: BRIEF, keep_symbol: KEEP_SYMBOL, ..PATIENT });
    let (cache, a) = (shared.open(), node("a"));
    for name in ["ETHUSDT", BTC] {
        let token = takes(&cache, &a, name).await;
        assert!(writes(&cache, write(name, &a, token, 1)).await);
    }
    let begun = Instant::now();
    let indexed = cache.indexed().await.expect("it answers");
    let [btc, eth] = &indexed[..] else {
        panic!("{indexed:?}");
    };
    assert_eq!([&*btc.symbol, &*btc.base, &*btc.quote], [BTC, "BTC", "USDT"]);
    assert_eq!(&*eth.symbol, "ETHUSDT");
    assert!(btc.age < KEEP_SYMBOL, "{:?}", btc.age);
    loop {
        let before = begun.elapsed();
        if cache.indexed().await.expect("it answers").is_empty() {
            break;
        }
        assert!(before < KEEP_SYMBOL + BRIEF, "{before:?}");
        sleep(Duration::from_millis(20)).await;
    }
    assert!(begun.elapsed() > 5 * BRIEF, "longer than its report");
}

on_both! {
    written_report_is_read_back
    writes_need_the_token_in_force
    answers_keep_the_order_of_the_request
    ages_grow_and_are_never_too_small
    report_expires
    symbols_stay_indexed_until_they_expire
}
