//! Reports from a cache in memory, and whether looking at them leaves records.

use super::*;
use crate::citations::{Citations, Limits};
use crate::report::cache::{Claim, Eagerness, Lease, MemoryCache, NodeId, Write};
use crate::report::fixture;
use tribune_core::{Links, Principal, SystemClock};

const KEEP: Duration = Duration::from_secs(86_400);

/// A source with one report, of `BTCUSDT`, whose records are in `folder`.
async fn with_one_report(folder: &std::path::Path) -> ReportsSource {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let cache = MemoryCache::new(clock.clone());
    let node = NodeId("node".into());
    let claim = Claim {
        symbol: "BTCUSDT".into(),
        eagerness: Eagerness::First,
        is_fresh: true,
        floor: 0,
    };
    let leases = cache.claim(&node, &[claim]).await.expect("leases");
    let [Lease::Taken { token }] = leases[..] else {
        panic!("{leases:?}")
    };
    let mut report = fixture::full();
    (report.writer.writer_token, report.writer.node_id) = (token, node.to_string());
    let write = Write {
        report: Arc::new(report),
        generated: Instant::now(),
    };
    cache.write(&[write]).await.expect("it is written");
    let limits = Limits { keep: KEEP, most: 100 };
    let citations = Citations::open(folder.to_owned(), limits, clock.clone()).expect("a folder");
    let records = Records::new(Some(Arc::new(citations)), KEEP, Links::new("http://tribune.test"));
    let source = ReportsSource::new(Arc::new(cache), records, clock);
    source.begin(None);
    source
}

#[tokio::test]
async fn who_only_looks_leaves_no_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = with_one_report(folder.path()).await;
    let kept = || std::fs::read_dir(folder.path()).expect("the folder").count();
    let cites = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(20));
    let looks = cites.clone().uncited();
    let id = DocumentId::parse("report:BTCUSDT").expect("an id");
    let query = Query {
        text: "bitcoin".to_owned(),
        limit: 5,
    };

    let seen = source.fetch(&id, &looks).await.expect("an answer").expect("a report");
    let found = source.search(&query, &looks).await.expect("hits");
    assert_eq!((seen.url, found.len(), found[0].url.clone()), (None, 1, None));
    assert_eq!(kept(), 0);

    let told = source.fetch(&id, &cites).await.expect("an answer").expect("a report");
    let found = source.search(&query, &cites).await.expect("hits");
    assert!(told.url.as_deref().and_then(Links::cited_record).is_some(), "{told:?}");
    assert_eq!(found[0].url, told.url, "the same report is kept once");
    assert!(kept() > 0);
    assert_eq!(seen.title, told.title);
}

#[tokio::test]
async fn a_hit_says_how_the_question_was_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = with_one_report(folder.path()).await;
    let cx = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(20));
    for (text, coverage) in [("btc report", 1.0), ("bitcoin", 0.95), ("btc candles", 0.5)] {
        let query = Query {
            text: text.to_owned(),
            limit: 5,
        };
        let found = source.search(&query, &cx).await.expect("hits");
        let metadata = found[0].metadata.as_ref().expect("metadata");
        assert_eq!(metadata["resolved_symbol"], "BTCUSDT", "{text}");
        assert_eq!(metadata["alternatives"], serde_json::json!([]), "{text}");
        assert!(
            (found[0].coverage - coverage).abs() < 1e-6,
            "{text}: {}",
            found[0].coverage
        );
    }
}

/// By the clock that it was given, and not by the machine's.
#[tokio::test]
async fn a_process_is_young_by_its_own_clock() {
    struct Held(std::sync::Mutex<Instant>);
    impl Clock for Held {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
        fn monotonic(&self) -> Instant {
            *self.0.lock().expect("the time")
        }
    }
    let clock = Arc::new(Held(std::sync::Mutex::new(Instant::now())));
    let records = Records::new(None, KEEP, Links::new("http://tribune.test"));
    let cache = Arc::new(MemoryCache::new(clock.clone()));
    let source = ReportsSource::new(cache, records, clock.clone());
    assert!(!source.has_just_begun(), "it has not begun");
    source.begin(None);
    assert!(source.has_just_begun());
    *clock.0.lock().expect("the time") += BEGINNING;
    assert!(!source.has_just_begun());
    source.end();
}
