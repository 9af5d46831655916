//! What a report cache promises: one suite, on memory and on a real Redis.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tribune_core::SystemClock;
use tribune_market::report::cache::{
    Claim, Eagerness, Found, Lease, MAX_TOKEN, MemoryCache, NodeId, RedisCache, ReportCache, Timing, Token, Write,
    Written,
};

use crate::redis_server::RedisServer;
use crate::reports::{BTC, claim, node, report, stored, symbol, write};
use Eagerness::{First, IfLeft};

/// Nothing runs out while a test runs, however busy the machine is.
pub const PATIENT: Timing = Timing {
    keep_report: Duration::from_secs(300),
    lease: Duration::from_secs(60),
    left_free: Duration::from_secs(60),
    node_alive: Duration::from_secs(60),
    keep_symbol: Duration::from_secs(3600),
    read_within: Duration::from_secs(10),
    write_within: Duration::from_secs(10),
};

const BRIEF: Duration = Duration::from_millis(60);

async fn a_while() {
    sleep(BRIEF + Duration::from_millis(40)).await;
}

/// A cache that several nodes share, each by its own door.
struct Shared {
    open: Box<dyn Fn() -> Arc<dyn ReportCache> + Send + Sync>,
    _server: Option<RedisServer>,
}

impl Shared {
    fn memory(timing: Timing) -> Self {
        let cache = Arc::new(MemoryCache::with_timing(Arc::new(SystemClock), timing));
        Self {
            open: Box::new(move || cache.clone()),
            _server: None,
        }
    }

    fn redis(timing: Timing) -> Self {
        let server = RedisServer::start();
        let url = server.url();
        let open = move || -> Arc<dyn ReportCache> {
            Arc::new(RedisCache::open_with_timing(&url, Arc::new(SystemClock), timing).expect("an address"))
        };
        Self {
            open: Box::new(open),
            _server: Some(server),
        }
    }

    fn open(&self) -> Arc<dyn ReportCache> {
        (self.open)()
    }
}

pub async fn claims(cache: &Arc<dyn ReportCache>, node: &NodeId, claim: Claim) -> Lease {
    let mut leases = cache.claim(node, &[claim]).await.expect("it answers");
    assert_eq!(leases.len(), 1);
    leases.remove(0)
}

pub async fn takes(cache: &Arc<dyn ReportCache>, node: &NodeId, name: &str) -> Token {
    match claims(cache, node, claim(name, First)).await {
        Lease::Taken { token } => token,
        other => panic!("not taken: {other:?}"),
    }
}

pub async fn writes(cache: &Arc<dyn ReportCache>, write: Write) -> Written {
    let mut written = cache.write(&[write]).await.expect("it answers");
    assert_eq!(written.len(), 1);
    written.remove(0)
}

pub async fn reads(cache: &Arc<dyn ReportCache>, name: &str) -> Vec<Found> {
    cache.read(&[symbol(name)]).await.expect("it answers")
}

async fn what_is_written_is_read(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, other, a) = (shared.open(), shared.open(), node("a"));
    assert!(matches!(reads(&cache, BTC).await[..], [Found::Nothing]));
    let token = takes(&cache, &a, BTC).await;
    assert_eq!(writes(&cache, write(BTC, &a, token, 1)).await, Written::Stored);
    assert_eq!(*stored(&reads(&other, BTC).await).report, report(BTC, &a, token, 1));
    assert_eq!(writes(&cache, write(BTC, &a, token, 2)).await, Written::Stored);
    assert_eq!(stored(&reads(&other, BTC).await).report.writer.sequence, 2);
}

async fn answers_come_in_the_order_of_questions(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a) = (shared.open(), node("a"));
    let names: Vec<Arc<str>> = (0..200).map(|number| symbol(&format!("S{number}USDT"))).collect();
    let asked: Vec<Claim> = names.iter().map(|name| claim(name, First)).collect();
    let leases = cache.claim(&a, &asked).await.expect("it answers");
    let parcels: Vec<Write> = (names.iter().zip(&leases).step_by(2))
        .map(|(name, lease)| match lease {
            Lease::Taken { token } => write(name, &a, *token, 1),
            other => panic!("not taken: {other:?}"),
        })
        .collect();
    let written = cache.write(&parcels).await.expect("it answers");
    assert_eq!(written, vec![Written::Stored; 100]);
    // Every second one is there; what cannot be a symbol is nowhere.
    let mut asked = names.clone();
    asked.insert(7, symbol("writer:S0USDT"));
    let mut found = cache.read(&asked).await.expect("it answers");
    assert!(matches!(found.remove(7), Found::Nothing));
    for (at, (name, found)) in names.iter().zip(found).enumerate() {
        match found {
            Found::Report(stored) if at % 2 == 0 => assert_eq!(stored.report.symbol, **name),
            Found::Nothing if at % 2 == 1 => {}
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
    a_while().await;
    let parcel = Write {
        generated,
        ..write(BTC, &a, token, 1)
    };
    assert_eq!(writes(&cache, parcel).await, Written::Stored);
    let (mut last, mut last_took) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..20 {
        let (begun, least) = (Instant::now(), generated.elapsed());
        let age = stored(&reads(&other, BTC).await).age;
        // What a question takes on its way counts twice.
        let took = begun.elapsed();
        let most = generated.elapsed() + took + Duration::from_secs(1);
        assert!((least..most).contains(&age), "{least:?} <= {age:?} < {most:?}");
        assert!(age + last_took > last, "{last:?} then {age:?}");
        (last, last_took) = (age, took);
        sleep(Duration::from_millis(3)).await;
    }
}

async fn a_report_is_gone_in_time(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing {
        keep_report: 2 * BRIEF,
        ..PATIENT
    });
    let (cache, a) = (shared.open(), node("a"));
    let token = takes(&cache, &a, BTC).await;
    let generated = Instant::now();
    let parcel = Write {
        generated,
        ..write(BTC, &a, token, 1)
    };
    assert_eq!(writes(&cache, parcel).await, Written::Stored);
    loop {
        let before = generated.elapsed();
        match &reads(&cache, BTC).await[..] {
            [Found::Report(stored)] => assert!(before < 2 * BRIEF && stored.age >= before, "{before:?}"),
            [Found::Nothing] => break,
            other => panic!("{other:?}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
    // One that is too old when it comes takes the place of the one before, which is older still.
    assert_eq!(writes(&cache, write(BTC, &a, token, 2)).await, Written::Stored);
    let parcel = Write {
        generated,
        ..write(BTC, &a, token, 3)
    };
    assert_eq!(writes(&cache, parcel).await, Written::Stored);
    assert!(matches!(reads(&cache, BTC).await[..], [Found::Nothing]));
    assert_eq!(cache.indexed().await.expect("it answers").len(), 1, "its name is kept");
}

async fn late_writes_of_an_old_writer_are_refused(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    assert_eq!(
        writes(&cache, write(BTC, &a, 7, 1)).await,
        Written::Refused { token: 0 },
        "nobody has a lease"
    );
    let old = takes(&cache, &a, BTC).await;
    assert_eq!(writes(&cache, write(BTC, &a, old, 9)).await, Written::Stored);
    cache
        .release(&a, &[(symbol(BTC), old)], false)
        .await
        .expect("it answers");
    assert_eq!(
        writes(&cache, write(BTC, &a, old, 10)).await,
        Written::Refused { token: 0 },
        "given up"
    );
    let new = takes(&shared.open(), &b, BTC).await;
    assert!(new > old);
    assert_eq!(writes(&cache, write(BTC, &b, new, 1)).await, Written::Stored);
    let refused = Written::Refused { token: new };
    assert_eq!(writes(&cache, write(BTC, &a, old, 11)).await, refused, "the old token");
    assert_eq!(
        writes(&cache, write(BTC, &a, new, 11)).await,
        refused,
        "the new token of another"
    );
    assert_eq!(
        writes(&cache, write(BTC, &b, old, 11)).await,
        refused,
        "the old token of another"
    );
    assert_eq!(
        writes(&cache, write(BTC, &b, new + 1, 11)).await,
        refused,
        "a token of nobody"
    );
    let report = &stored(&reads(&cache, BTC).await).report.writer.clone();
    assert_eq!((report.writer_token, report.sequence), (new, 1));
}

async fn older_sequences_are_refused(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a) = (shared.open(), node("a"));
    let token = takes(&cache, &a, BTC).await;
    assert_eq!(writes(&cache, write(BTC, &a, token, 5)).await, Written::Stored);
    for sequence in [5, 4, 0] {
        let refused = Written::Refused { token };
        assert_eq!(
            writes(&cache, write(BTC, &a, token, sequence)).await,
            refused,
            "{sequence}"
        );
    }
    assert_eq!(writes(&cache, write(BTC, &a, token, 6)).await, Written::Stored);
    assert_eq!(stored(&reads(&cache, BTC).await).report.writer.sequence, 6);
}

async fn a_lease_that_ran_out_writes_no_more(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing {
        lease: BRIEF,
        ..PATIENT
    });
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    let token = takes(&cache, &a, BTC).await;
    a_while().await;
    assert_eq!(
        writes(&cache, write(BTC, &a, token, 1)).await,
        Written::Refused { token: 0 }
    );
    let again = takes(&cache, &a, BTC).await;
    assert!(again > token, "not renewed: others may have written meanwhile");
    a_while().await;
    assert!(takes(&cache, &b, BTC).await > again);
}

async fn a_lease_is_renewed_and_others_see_it(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    let token = takes(&cache, &a, BTC).await;
    for eagerness in [First, IfLeft] {
        let renewed = Lease::Renewed { token, wanted_by: None };
        assert_eq!(claims(&cache, &a, claim(BTC, eagerness)).await, renewed);
    }
    let other = Lease::Other { node: a.clone(), token };
    assert_eq!(claims(&cache, &b, claim(BTC, IfLeft)).await, other);
    let renewed = Lease::Renewed { token, wanted_by: None };
    assert_eq!(claims(&cache, &a, claim(BTC, First)).await, renewed, "not much wanted");
    assert_eq!(claims(&cache, &b, claim(BTC, First)).await, other);
    let renewed = Lease::Renewed {
        token,
        wanted_by: Some(b.clone()),
    };
    assert_eq!(claims(&cache, &a, claim(BTC, IfLeft)).await, renewed);
    cache
        .release(&a, &[(symbol(BTC), token)], false)
        .await
        .expect("it answers");
    let next = takes(&cache, &b, BTC).await;
    assert!(next > token);
    let renewed = Lease::Renewed {
        token: next,
        wanted_by: None,
    };
    assert_eq!(claims(&cache, &b, claim(BTC, First)).await, renewed, "wanted by itself");
}

async fn a_wish_is_forgotten(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing {
        node_alive: BRIEF,
        ..PATIENT
    });
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    let token = takes(&cache, &a, BTC).await;
    claims(&cache, &b, claim(BTC, First)).await;
    a_while().await;
    let renewed = Lease::Renewed { token, wanted_by: None };
    assert_eq!(claims(&cache, &a, claim(BTC, First)).await, renewed);
}

async fn what_is_left_free_is_anybodys(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing {
        left_free: BRIEF,
        ..PATIENT
    });
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    // One that nobody ever had is left free from the first claim on.
    assert_eq!(claims(&cache, &b, claim(BTC, IfLeft)).await, Lease::Free);
    a_while().await;
    let Lease::Taken { token } = claims(&cache, &b, claim(BTC, IfLeft)).await else {
        panic!("it was left free");
    };
    // And one that was given up, from then on.
    cache
        .release(&b, &[(symbol(BTC), token)], false)
        .await
        .expect("it answers");
    a_while().await;
    assert!(matches!(
        claims(&cache, &a, claim(BTC, IfLeft)).await,
        Lease::Taken { token: next } if next > token
    ));
}

async fn what_is_not_left_long_is_for_the_first(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing {
        lease: BRIEF,
        ..PATIENT
    });
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    assert_eq!(claims(&cache, &b, claim(BTC, IfLeft)).await, Lease::Free);
    let token = takes(&cache, &a, BTC).await;
    a_while().await;
    assert_eq!(claims(&cache, &b, claim(BTC, IfLeft)).await, Lease::Free, "run out");
    assert!(takes(&cache, &a, BTC).await > token);
}

async fn only_ones_own_lease_is_given_up(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    let token = takes(&cache, &a, BTC).await;
    cache
        .release(&b, &[(symbol(BTC), token)], false)
        .await
        .expect("it answers");
    cache
        .release(&a, &[(symbol(BTC), token - 1)], false)
        .await
        .expect("it answers");
    cache
        .release(&a, &[(symbol("ETHUSDT"), token)], false)
        .await
        .expect("it answers");
    let renewed = Lease::Renewed { token, wanted_by: None };
    assert_eq!(claims(&cache, &a, claim(BTC, First)).await, renewed);
}

async fn nodes_are_alive_while_they_say_so(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a, b) = (shared.open(), node("a"), node("b"));
    let alive = async |who: Option<&NodeId>| cache.nodes(who).await.expect("it answers");
    assert!(alive(None).await.is_empty());
    assert_eq!(alive(Some(&b)).await, [b.clone()]);
    assert_eq!(alive(Some(&a)).await, [a.clone(), b.clone()]);
    assert_eq!(alive(None).await, [a.clone(), b.clone()]);
    cache.release(&b, &[], false).await.expect("it answers");
    assert_eq!(alive(None).await.len(), 2, "it does not leave");
    cache.release(&b, &[], true).await.expect("it answers");
    assert_eq!(alive(None).await, [a.clone()]);
}

async fn nodes_that_say_nothing_are_gone(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing {
        node_alive: BRIEF,
        ..PATIENT
    });
    let cache = shared.open();
    cache.nodes(Some(&node("a"))).await.expect("it answers");
    a_while().await;
    assert!(cache.nodes(None).await.expect("it answers").is_empty());
    let b = node("b");
    assert_eq!(cache.nodes(Some(&b)).await.expect("it answers"), [b.clone()]);
}

async fn symbols_are_remembered_and_forgotten(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(Timing {
        keep_report: BRIEF,
        keep_symbol: 10 * BRIEF,
        ..PATIENT
    });
    let (cache, a) = (shared.open(), node("a"));
    for name in ["ETHUSDT", BTC] {
        let token = takes(&cache, &a, name).await;
        assert_eq!(writes(&cache, write(name, &a, token, 1)).await, Written::Stored);
    }
    let begun = Instant::now();
    loop {
        let before = begun.elapsed();
        let indexed = cache.indexed().await.expect("it answers");
        if indexed.is_empty() {
            break;
        }
        assert!(before < 11 * BRIEF);
        if let [btc, eth] = &indexed[..] {
            assert_eq!([&*btc.symbol, &*btc.base, &*btc.quote], [BTC, "BTC", "USDT"]);
            assert_eq!(&*eth.symbol, "ETHUSDT");
            assert!(btc.age < Duration::from_secs(5), "{:?}", btc.age);
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert!(begun.elapsed() > 5 * BRIEF);
}

async fn tokens_are_larger_than_the_floor(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let (cache, a) = (shared.open(), node("a"));
    let floor = 1 << 45;
    let high = Claim {
        floor,
        ..claim(BTC, First)
    };
    assert_eq!(claims(&cache, &a, high).await, Lease::Taken { token: floor + 1 });
    let absurd = Claim {
        floor: u64::MAX,
        ..claim("ETHUSDT", First)
    };
    match claims(&cache, &a, absurd).await {
        Lease::Taken { token } => assert!(token <= MAX_TOKEN),
        other => panic!("not taken: {other:?}"),
    }
}

/// Several nodes at once, hundreds of changes: no token twice, and each larger than those that were over before it.
async fn tokens_grow_with_every_change(shared: impl Fn(Timing) -> Shared) {
    let shared = shared(PATIENT);
    let racers = (0..4).map(|number| {
        let (cache, me) = (shared.open(), node(&format!("node-{number}")));
        tokio::spawn(async move {
            let mut taken: Vec<Token> = Vec::new();
            let mut seen: Token = 0;
            while taken.len() < 60 {
                match claims(&cache, &me, claim(BTC, First)).await {
                    Lease::Taken { token } => {
                        assert!(token > seen, "{token} after {seen}");
                        seen = token;
                        taken.push(token);
                        let sequence = taken.len() as u64;
                        assert_eq!(writes(&cache, write(BTC, &me, token, sequence)).await, Written::Stored);
                        cache
                            .release(&me, &[(symbol(BTC), token)], false)
                            .await
                            .expect("it answers");
                    }
                    Lease::Other { token, .. } => {
                        assert!(token >= seen, "{token} after {seen}");
                        seen = token;
                    }
                    other => panic!("{other:?}"),
                }
                tokio::task::yield_now().await;
            }
            taken
        })
    });
    let racers: Vec<_> = racers.collect();
    let reader = tokio::spawn(never_older(
        shared.open(),
        Arc::new(racers.iter().map(|r| r.abort_handle()).collect()),
    ));
    let mut all = HashSet::new();
    for racer in racers {
        for token in racer.await.expect("no assertion failed") {
            assert!(all.insert(token), "{token} twice");
        }
    }
    assert_eq!(all.len(), 240);
    reader.await.expect("no assertion failed");
}

/// Reads until the racers are done: no report is ever older than the one before.
async fn never_older(cache: Arc<dyn ReportCache>, racers: Arc<Vec<tokio::task::AbortHandle>>) {
    let mut last = (0, 0);
    while racers.iter().any(|racer| !racer.is_finished()) {
        if let [Found::Report(stored)] = &reads(&cache, BTC).await[..] {
            let writer = &stored.report.writer;
            assert!((writer.writer_token, writer.sequence) >= last);
            last = (writer.writer_token, writer.sequence);
        }
        tokio::task::yield_now().await;
    }
}

macro_rules! on_both {
    ($($promise:ident)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(super::Shared::memory).await;
            })*
        }

        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(super::Shared::redis).await;
            })*
        }
    };
}

on_both! {
    what_is_written_is_read
    answers_come_in_the_order_of_questions
    ages_grow_and_are_never_too_small
    a_report_is_gone_in_time
    late_writes_of_an_old_writer_are_refused
    older_sequences_are_refused
    a_lease_that_ran_out_writes_no_more
    a_lease_is_renewed_and_others_see_it
    a_wish_is_forgotten
    what_is_left_free_is_anybodys
    what_is_not_left_long_is_for_the_first
    only_ones_own_lease_is_given_up
    nodes_are_alive_while_they_say_so
    nodes_that_say_nothing_are_gone
    symbols_are_remembered_and_forgotten
    tokens_are_larger_than_the_floor
    tokens_grow_with_every_change
}
