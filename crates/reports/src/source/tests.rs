//! Search, fetch and citations, with a cache in memory.

use std::time::{Duration, Instant};

use super::*;
use crate::cache::{Claim, Generated, Lease, MemoryCache, NodeId, ReportCache, Timing};
use crate::tests::fixture;
use tribune_citations::records::Records;
use tribune_citations::{Citations, Limits};
use tribune_core::{Clock, Links, Principal, SystemClock};

const KEEP: Duration = Duration::from_secs(86_400);

async fn write_report(cache: &dyn ReportCache, symbol: &str) {
    let node = NodeId::from("node");
    let claim = Claim { symbol: symbol.into(), is_fresh: true };
    let leases = cache.claim(&node, &[claim]).await.expect("leases");
    let [Lease::Taken(token)] = leases[..] else { panic!("{leases:?}") };
    let mut report = fixture::full();
    symbol.clone_into(&mut report.symbol);
    (report.writer.writer_token, report.writer.node_id) = (token, node.to_string());
    let write = Generated { report: Arc::new(report), at: Instant::now() };
    cache.write(&[write]).await.expect("it is written");
}

/// A source with one report, of `BTCUSDT`, whose records are in `folder`. It does not run yet.
async fn stopped_source(folder: &std::path::Path) -> Arc<ReportsSource> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let cache = MemoryCache::new(clock.clone(), Timing::DEFAULT);
    write_report(&cache, "BTCUSDT").await;
    let limits = Limits { keep: KEEP, most: 100 };
    let citations = Citations::open(folder.to_owned(), limits, clock.clone()).expect("a folder");
    let records = Records::new(Some(Arc::new(citations)), Links::new("http://tribune.test"));
    Arc::new(ReportsSource::new(Arc::new(cache), records, None, None, clock))
}

/// The same, running.
async fn with_one_report(folder: &std::path::Path) -> Arc<ReportsSource> {
    let source = stopped_source(folder).await;
    tokio::spawn(source.clone().run(CancellationToken::new()));
    source
}

#[tokio::test]
async fn uncited_calls_leave_no_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = with_one_report(folder.path()).await;
    let kept = || -> u64 {
        let files = std::fs::read_dir(folder.path()).expect("the folder").flatten();
        files.map(|file| file.metadata().expect("a file").len()).sum()
    };
    let empty = kept();
    let cites = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(20));
    let looks = cites.clone().uncited();
    let id = DocumentId::parse("report:BTCUSDT").expect("an id");
    let query = Query { text: "bitcoin".to_owned(), limit: 5 };

    let seen = source.fetch(&id, &looks).await.expect("an answer").expect("a report");
    let found = source.search(&query, &looks).await.expect("hits");
    assert_eq!((seen.url, found.len(), found[0].url.clone()), (None, 1, None));
    assert_eq!(kept(), empty);

    let result = source.fetch(&id, &cites).await.expect("an answer").expect("a report");
    let found = source.search(&query, &cites).await.expect("hits");
    assert!(result.url.as_deref().and_then(Links::cited_record).is_some(), "{result:?}");
    assert_eq!(found[0].url, result.url, "the same report is kept once");
    assert!(kept() > empty);
    assert_eq!(seen.title, result.title);
}

#[tokio::test]
async fn search_and_fetch_cite_the_same_page() {
    let cx = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(20));
    let id = DocumentId::parse("report:BTCUSDT").expect("an id");
    let query = Query { text: "bitcoin".to_owned(), limit: 5 };
    let mut boards = Vec::new();
    for searches in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let source = with_one_report(folder.path()).await;
        let url = match searches {
            true => source.search(&query, &cx).await.expect("hits")[0].url.clone(),
            false => source.fetch(&id, &cx).await.expect("an answer").expect("a report").url,
        };
        let record = url.as_deref().and_then(Links::cited_record).expect("a record").to_owned();
        let Ok(Some(Cited::Kept { document, at })) = source.cited(&id, &record).await else { panic!("no record") };
        let view = source.view(&document, Some(at), &cx).await.expect("a view");
        let Some(View::Board(board)) = view else { panic!("{view:?}") };
        let keys: Vec<&str> = board.panels.iter().map(|panel| panel.key).collect();
        assert!(keys.starts_with(&["depth", "ladder", "flow", "profile"]), "{keys:?}");
        boards.push((board.title, board.panels[..6].to_vec()));
    }
    assert_eq!(boards[0], boards[1]);
}

#[tokio::test]
async fn hit_says_what_the_query_matched() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = with_one_report(folder.path()).await;
    let cx = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(20));
    for (text, coverage) in [("btc report", 1.0), ("bitcoin", 0.95), ("btc candles", 0.5)] {
        let query = Query { text: text.to_owned(), limit: 5 };
        let found = source.search(&query, &cx).await.expect("hits");
        let metadata = found[0].metadata.as_ref().expect("metadata");
        assert_eq!(metadata["resolved_symbol"], "BTCUSDT", "{text}");
        assert_eq!(metadata["alternatives"], serde_json::json!([]), "{text}");
        assert!((found[0].coverage - coverage).abs() < 1e-6, "{text}: {}", found[0].coverage);
    }
}

#[tokio::test]
async fn restarted_task_follows_new_symbols() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = stopped_source(folder.path()).await;
    let crashed = tokio::spawn(source.clone().run(CancellationToken::new()));
    let listing = source.listing(None).await.expect("a listing");
    assert_eq!(listing.len(), 1);
    crashed.abort();
    assert!(crashed.await.expect_err("aborted").is_cancelled());
    write_report(&*source.cache, "ETHUSDT").await;
    let stop = CancellationToken::new();
    let restarted = tokio::spawn(source.clone().run(stop.clone()));
    let both_are_listed = async {
        while source.directory().listing.is_none_or(|listing| listing.len() < 2) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), both_are_listed).await.expect("the restarted task asks the cache");
    stop.cancel();
    restarted.await.expect("no panic").expect("it ends with a stop");
}
