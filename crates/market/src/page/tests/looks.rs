//! Looks: what they cost, what they leave behind, and what they say when something is missing.

use super::*;
use tribune_binance::Priority;
use tribune_core::Query;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_exchange_leaves_last_values() {
    let bench = Bench::start().await;
    let seen = bench.now("klines:ETHUSDT:1d").await;
    bench.exchange.faults().set(&tribune_exchange_sim::Fault::DropConnections);
    bench.market.feed.stop();
    let Bench { exchange, source, .. } = bench;
    exchange.shut_down().await;
    let cx = CallContext::new(Principal::Local, Instant::now() + PATIENCE);
    for id in ["klines:SOLUSDT:1h", "orderbook:SOLUSDT"] {
        let error = source.view(&nothing_but(id), None, &cx).await.expect_err("no board");
        assert!(!error.to_string().is_empty());
    }
    let kept = source.view(&nothing_but("klines:ETHUSDT:1d"), None, &cx).await;
    let Ok(Some(View::Board(kept))) = kept else { panic!("{kept:?}") };
    assert_eq!(keys(&kept), keys(&seen));
    let age = |board: &Board| board.headline.as_ref().and_then(|headline| headline.age_ms);
    assert!(age(&kept) > age(&seen), "it grows older");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unkept_book_says_so() {
    let bench = Bench::keeping(1, None).await;
    let board = bench.now("ticker:ETHUSDT").await;
    for key in ["spread", "imbalance"] {
        assert_eq!(
            panel(&board, key).content,
            Content::Missing("this book is not kept live: the live-book limit is reached".to_owned())
        );
    }
    for key in ["depth", "ladder", "cost_to_trade"] {
        let panel = panel(&board, key);
        assert!(!matches!(panel.content, Content::Missing(_)), "{panel:?}");
    }
    for id in ["ticker:ETHUSDT", "orderbook:ETHUSDT"] {
        let badge = &bench.now(id).await.badges[1];
        assert_eq!((&*badge.label, badge.tone), ("book is not kept", Tone::Warning), "{id}");
    }
    let flow = bench.now("analytics:order_flow:ETHUSDT").await;
    let Content::Figures(figures) = &panel(&flow, "figures").content else { panic!("{flow:?}") };
    let pressure = figures.iter().find(|figure| figure.label == "Order flow imbalance");
    let pressure = pressure.expect("it is values of");
    assert!(pressure.note.as_deref().is_some_and(|why| why.contains("not kept live")), "{pressure:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_keeps_its_panels() {
    let bench = Bench::keeping(1, None).await;
    for id in IDS {
        let kept = bench.now(id).await;
        let asked = bench.now(&id.replace("BTCUSDT", "ETHUSDT")).await;
        assert_eq!(keys(&kept), keys(&asked), "{id}");
        // Nothing that the answer has a picture of is left out.
        let document = DocumentId::parse(id).expect("an id");
        let market_id = MarketId::parse(&document).expect("ours").expect("a market's");
        if market_id.kind() == tribune_market_resolve::id::Kind::Ticker {
            continue;
        }
        let answer = kinds::load(&bench.market, &market_id).await.expect("an answer");
        let whole = then(&from_record(&answer, None)).expect("a board");
        let left_out: Vec<&str> = keys(&whole).into_iter().filter(|key| !keys(&kept).contains(key)).collect();
        assert!(left_out.iter().all(|key| ["depth", "ladder"].contains(key)), "{id}: {left_out:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_without_headline_says_its_time() {
    let bench = Bench::start().await;
    let board = bench.now("exchange_info:BTCUSDT").await;
    let note = board.panels[0].note.clone().expect("a note");
    assert!(board.headline.is_none() && note.contains("Received 20") && !note.contains("As of"), "{note}");
    let id = DocumentId::parse("exchange_info:BTCUSDT").expect("an id");
    let cx = CallContext::new(Principal::Local, Instant::now() + PATIENCE);
    let document = bench.cited(&id, &cx).await;
    let kept = bench.source.citing.kept(&document).await.expect("a look").expect("a record");
    let note = then(&kept).expect("a board").panels[0].note.clone().expect("a note");
    assert!(note.contains("Received 20") && note.ends_with(" UTC."), "{note}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_leave_the_budget_to_others() {
    let bench = Bench::start().await;
    let governor = bench.market.rest.governor().clone();
    let half = governor.used().1 / 2;
    let is_used_up = || governor.used().0 >= half;
    let age = |board: &Board| board.headline.as_ref().and_then(|headline| headline.age_ms);
    let cx = CallContext::new(Principal::Local, Instant::now() + PATIENCE);
    // The budget is of a minute: what was seen across the end of one proves nothing, and is seen again.
    for symbol in ["ETHUSDT", "SOLUSDT", "PEPEUSDT"] {
        let unseen = nothing_but(&format!("klines:{symbol}:1m"));
        let mut last = bench.now("klines:BTCUSDT:1m").await;
        // What is left for pages is used up, by whomever.
        let rest = half.saturating_sub(governor.used().0);
        let permit = governor.try_acquire(rest, Priority::Interactive).expect("half");
        let before = bench.asked("klines");
        // The headline says its age.
        while age(&last) <= Some(8_000) && is_used_up() {
            bench.clock.pass_ms(250);
            last = bench.now("klines:BTCUSDT:1m").await;
            assert!(matches!(panel(&last, "candles").content, Content::Candles(_)));
        }
        let after = bench.asked("klines");
        let seen = bench.source.view(&unseen, None, &cx).await;
        let asked = bench.source.fetch(&unseen.id, &cx).await;
        let was_used_up = is_used_up();
        drop(permit);
        if !was_used_up {
            continue;
        }
        assert_eq!(after, before, "nothing was asked");
        assert!(seen.is_err_and(|error| error.to_string().contains("pages may use 20%")));
        assert!(asked.is_ok(), "people who ask are answered");
        return;
    }
    panic!("no attempt was within one minute");
}

/// Every viewer of all markets would ask for the dearest answer there is, once a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_markets_are_fetched_once_for_all_viewers() {
    let bench = Bench::start().await;
    let silence = tribune_exchange_sim::Fault::Silence { on: true };
    bench.exchange.faults().set(&silence);
    bench.clock.pass_ms(6_000);
    let heard = || bench.market.feed.board.heard();
    let is_silent = || heard().is_none_or(|heard| heard.age_ms(&*bench.market.clock) > 5_000);
    bench.until("the stream is silent", is_silent).await;
    let first = bench.now("markets:USDT").await;
    assert_eq!(first.title, "USDT markets");
    let before = bench.asked("ticker/24hr");
    for _ in 0..60 {
        bench.now("markets:USDT").await;
    }
    // The ranks of symbols are asked for in the background, once in a while.
    assert!(bench.asked("ticker/24hr") <= before + 1);
    let age = |board: &Board| board.headline.as_ref().and_then(|headline| headline.age_ms);
    let mut last = bench.now("markets:USDT").await;
    while age(&last) <= age(&first) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        last = bench.now("markets:USDT").await;
    }
    assert_eq!((keys(&last), last.is_live), (keys(&first), true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uncited_views_leave_no_record() {
    let bench = Bench::start().await;
    let cites = CallContext::new(Principal::Local, Instant::now() + PATIENCE);
    let looks = cites.clone().uncited();
    let id = DocumentId::parse("ticker:BTCUSDT").expect("an id");
    let query = Query { text: "bitcoin price".to_owned(), limit: 3 };

    let seen = bench.source.fetch(&id, &looks).await.expect("an answer").expect("a price");
    let found = bench.source.search(&query, &looks).await.expect("hits");
    assert!(!found.is_empty() && found.iter().all(|hit| hit.url.is_none()), "{found:?}");
    assert_eq!((seen.url, bench.record_count()), (None, 0));

    let values = bench.source.fetch(&id, &cites).await.expect("an answer").expect("a price");
    let found = bench.source.search(&query, &cites).await.expect("hits");
    let is_cited = |url: &Option<String>| url.as_deref().and_then(Links::cited_record).is_some();
    assert!(is_cited(&values.url) && found.iter().all(|hit| is_cited(&hit.url)));
    assert!(bench.record_count() > 0);
}
