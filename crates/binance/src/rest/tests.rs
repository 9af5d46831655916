//! The client against a server of the tests' own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tribune_clock::{Clock as _, SystemClock};

use super::ErrorKind;

use super::request::Request;
use super::{Endpoint, KlinesQuery, Priority, RestError, Signer, Simulation};
use crate::model::Interval;
use crate::testing::{Asked, Reply, Server, ShiftedClock, client, client_by};

fn price(_: &Asked) -> Reply {
    Reply::json(&json!({"mins": 5, "price": "97123.45000000", "closeTime": 1_700_000_000_000i64}))
}

#[tokio::test]
async fn five_hundred_callers_share_one_request() {
    let server = Server::start(|asked| price(asked).after_ms(30)).await;
    // The window passes by hand.
    let clock = Arc::new(ShiftedClock::default());
    let rest = client_by(clock.clone(), &server.url, |settings| {
        settings.window = Duration::from_secs(60);
    });
    let ask = || {
        let rest = rest.clone();
        tokio::spawn(async move { rest.avg_price("BTCUSDT").await.expect("price") })
    };
    for window in 1..=2 {
        let answers = futures::future::join_all((0..500).map(|_| ask())).await;
        for answer in answers {
            let answer = answer.expect("joined");
            assert_eq!(answer.value.price.expect("price").to_string(), "97123.45");
        }
        assert_eq!(server.asked().len(), window);
        clock.pass_ms(60_000);
    }
}

#[tokio::test]
async fn callers_do_not_wait_for_background_work() {
    let count = AtomicUsize::new(0);
    // The first is not answered before the test is over.
    let server = Server::start(move |asked| match count.fetch_add(1, Ordering::SeqCst) {
        0 => price(asked).after_ms(600_000),
        _ => price(asked),
    })
    .await;
    let rest = server.client(|_| ());
    let background = rest.with_priority(Priority::Background);
    let slow_call = tokio::spawn(async move { background.avg_price("BTCUSDT").await.map(drop) });
    while server.asked().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    rest.avg_price("BTCUSDT").await.expect("price");
    assert!(!slow_call.is_finished());
}

/// The exchange's clock jumps, and the way to it is slow: what is known to be wrong is not kept all the same.
#[tokio::test]
async fn refused_time_is_learnt_again() {
    let ahead = Arc::new(AtomicI64::new(0));
    let jumps = ahead.clone();
    let clock = Arc::new(ShiftedClock::default());
    let slow = clock.clone();
    let server = Server::start(move |asked| {
        let now = slow.now().as_millisecond() + jumps.load(Ordering::SeqCst);
        if asked.path.ends_with("time") {
            slow.pass_ms(1_200);
            return Reply::json(&json!({"serverTime": now}));
        }
        let signed = asked.parameter("timestamp").and_then(|time| time.parse().ok());
        match signed.is_some_and(|time: i64| (time - now).abs() < 30_000) {
            true => Reply::new(200, "{}"),
            false => Reply::refusal(-1021, "Timestamp for this request is outside of the recvWindow."),
        }
    })
    .await;
    let rest = client_by(clock, &server.url, |_| ());
    let signer = Signer::new("key", "secret").expect("signer");
    let account = || rest.signed(&signer, Method::GET, Request::new(Endpoint::ACCOUNT), |_| Ok(((), None)));
    account().await.expect("in time");
    ahead.store(3_600_000, Ordering::SeqCst);
    account().await.expect("learnt again");
}

#[tokio::test]
async fn requests_have_the_documented_parameters() {
    let server = Server::start(|_| Reply::new(200, "[]")).await;
    let rest = server.client(|_| ());
    let klines = KlinesQuery { interval: Interval::Mo1, limit: 3, start: Some(1), end: None };
    rest.klines("币USDT", &klines).await.expect("none");
    rest.agg_trades("BTCUSDT", 1000, Some(7)).await.expect("none");
    rest.tickers_24h(&["BTCUSDT", "ETHUSDT"]).await.expect("none");
    let written: Vec<String> = server.asked().iter().map(|a| format!("{}?{}", a.path, a.query)).collect();
    assert_eq!(
        written,
        [
            "/api/v3/klines?symbol=%E5%B8%81USDT&interval=1M&limit=3&startTime=1",
            "/api/v3/aggTrades?symbol=BTCUSDT&limit=1000&fromId=7",
            "/api/v3/ticker/24hr?symbols=%5B%22BTCUSDT%22%2C%22ETHUSDT%22%5D",
        ]
    );
    assert_eq!(rest.governor().used().0, 2 + 4 + 2);
}

#[tokio::test]
async fn exchange_count_holds_requests_back() {
    let server = Server::start(|asked| price(asked).header("X-MBX-USED-WEIGHT-1M", "4199")).await;
    let rest = server.client(|_| ());
    rest.avg_price("BTCUSDT").await.expect("the first");
    let error = rest.avg_price("ETHUSDT").await.expect_err("held back");
    let RestError::HeldBack { wait, used: 4199, budget: 6000, .. } = error else {
        panic!("{error}");
    };
    assert!(wait <= Duration::from_millis(60_050));
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("try again in"), "{error}");
    assert_eq!(server.asked().len(), 1, "nothing was sent");
}

#[tokio::test]
async fn retry_after_pauses_every_call() {
    let server = Server::start(|asked| {
        if asked.path.ends_with("avgPrice") {
            Reply::new(429, "{}").header("Retry-After", "60")
        } else {
            Reply::json(&json!({"serverTime": 1_700_000_000_000i64}))
        }
    })
    .await;
    let clock = Arc::new(ShiftedClock::default());
    let rest = client_by(clock.clone(), &server.url, |_| ());
    let error = rest.avg_price("BTCUSDT").await.expect_err("429").to_string();
    assert_eq!(
        error,
        "the exchange asked for a pause (too many requests); no requests are sent until it ends: try again in 60 s"
    );
    for _ in 0..5 {
        assert!(matches!(rest.server_time().await, Err(RestError::Paused { banned: false, .. })));
    }
    assert_eq!(server.asked().len(), 1);
    clock.pass_ms(60_000);
    rest.server_time().await.expect("after the pause");
}

#[tokio::test]
async fn ban_is_named() {
    let server = Server::start(|_| Reply::new(418, "").header("Retry-After", "7200")).await;
    let error = server.client(|_| ()).avg_price("BTCUSDT").await.expect_err("418");
    assert!(error.to_string().contains("banned") && error.to_string().ends_with("7200 s"), "{error}");
}

#[tokio::test]
async fn broken_answers_are_explained() {
    let server = Server::start(|asked| match asked.parameter("symbol") {
        Some("HALF") => Reply::new(200, r#"{"symbol":"#).half_sent(),
        Some("PAGE") => Reply::new(200, "<html>hello</html>"),
        Some("LIST") => Reply::new(200, "[]"),
        Some("NUMBER") => Reply::json(&json!({"mins": 5, "price": 7})),
        Some("WALL") => Reply::new(403, "<html>"),
        Some("FAULT") => Reply::new(503, "oops"),
        Some("MOVED") => Reply::new(302, "").header("Location", "http://127.0.0.1:1/"),
        Some("ODD") => Reply::new(404, "<html>not found</html>"),
        Some("HUGE") => Reply::new(200, vec![b' '; 5 << 20]),
        _ => Reply::refusal(-1121, "Invalid symbol."),
    })
    .await;
    let rest = server.client(|_| ());
    let cases = [
        ("HALF", "broke off"),
        ("PAGE", "the exchange's answer to avgPrice is not as documented: it is not JSON"),
        ("LIST", "not as documented: it is not an object"),
        ("NUMBER", "`price` is not a string"),
        ("WALL", "firewall refused the request (403)"),
        ("FAULT", "an internal error (503)"),
        ("MOVED", "avgPrice: the server answered 302"),
        ("ODD", "the server answered 404"),
        ("HUGE", "more than 4194304 bytes"),
    ];
    for (symbol, part) in cases {
        let error = rest.avg_price(symbol).await.expect_err(symbol);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{symbol}");
        assert!(error.to_string().contains(part), "{symbol}: {error}");
        assert!(!error.to_string().contains("symbol="), "no address with its query: {error}");
    }
    let unknown = rest.avg_price("NOPE").await.expect_err("unknown");
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert!(unknown.to_string().contains("no symbol `NOPE`"), "{unknown}");
}

#[tokio::test]
async fn missing_answer_is_a_timeout() {
    let server = Server::start(|asked| price(asked).after_ms(600_000)).await;
    let rest = server.client(|settings| settings.timeout = Duration::from_millis(100));
    let error = rest.avg_price("BTCUSDT").await.expect_err("nothing comes");
    assert!(error.to_string().contains("did not answer in time"), "{error}");
}

#[tokio::test]
async fn errors_are_retried_on_the_next_request() {
    let count = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |asked| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::new(500, ""),
        _ => price(asked),
    })
    .await;
    let rest = server.client(|_| ());
    assert!(rest.avg_price("BTCUSDT").await.is_err());
    let deadline = Instant::now() + Duration::from_secs(120);
    while rest.avg_price("BTCUSDT").await.is_err() {
        assert!(Instant::now() < deadline, "the same failure for ever");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.asked().len(), 2, "the same failure meanwhile");
}

#[tokio::test]
async fn unreachable_exchange_is_explained() {
    // Bound but not listening.
    let closed = tokio::net::TcpSocket::new_v4().expect("a socket");
    closed.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let address = closed.local_addr().expect("address");
    let refused = client(&format!("http://{address}"), |_| ()).avg_price("BTCUSDT").await;
    assert!(matches!(&refused, Err(RestError::Unreachable(why)) if why.contains("refused")), "{refused:?}");
    // No resolver looks this name up: its first part is too long.
    let nameless = format!("http://{}.invalid", "a".repeat(64));
    let error = client(&nameless, |_| ()).avg_price("BTCUSDT").await.expect_err("no such host");
    assert!(matches!(error, RestError::Unreachable(_)) && !error.leaves_outcome_unknown(), "{error:?}");
    // A server that does not speak TLS.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let secure = format!("https://{}", listener.local_addr().expect("address"));
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a caller");
        let _ = stream.write_all(b"HTTP/1.1 400 Plain\r\n\r\n").await;
        std::future::pending::<()>().await;
    });
    let error = client(&secure, |_| ()).avg_price("BTCUSDT").await.expect_err("no TLS");
    assert!(matches!(error, RestError::Unreachable(_)) && !error.leaves_outcome_unknown(), "{error:?}");
}

#[tokio::test]
async fn clock_offset_is_learnt() {
    let server = Server::start(|_| {
        let ahead = jiff::Timestamp::now().as_millisecond() + 5_000;
        Reply::json(&json!({"serverTime": ahead})).header("X-Tribune-Simulated", "replay")
    })
    .await;
    let rest = server.client(|_| ());
    assert_eq!((rest.clock_offset_ms(), rest.simulation()), (None, None));
    let time = rest.server_time().await.expect("time");
    assert!(time.simulated);
    assert_eq!(rest.simulation(), Some(Simulation::Replay));
    let offset = rest.clock_offset_ms().expect("learnt");
    let round_trip = time.received.wall.as_millisecond() - time.sent.wall.as_millisecond();
    assert!((offset - 5_000).abs() <= round_trip + 1, "{offset} after {round_trip} ms");
    let skew = rest.clock_skew().expect("five seconds");
    assert!(skew.starts_with("this machine's clock is ") && skew.ends_with(" s behind the exchange's"), "{skew}");
}

#[tokio::test]
async fn exchange_info_sets_the_budget() {
    let server = Server::start(|_| {
        Reply::json(&json!({
            "serverTime": 1, "symbols": [],
            "rateLimits": [{"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": 1200}],
        }))
    })
    .await;
    let rest = server.client(|_| ());
    rest.exchange_info().await.expect("info");
    assert_eq!(rest.governor().used(), (20, 1200));
}

#[test]
fn base_urls_are_checked() {
    for url in ["", "data-api.binance.vision", "ftp://x", "https://user:pw@x", "https://x/?a=b", "https://x/#y"] {
        let settings = super::Settings { base_url: url.to_owned(), ..super::Settings::default() };
        let error = super::Rest::new(settings, Arc::new(SystemClock)).err().expect(url);
        assert!(!error.to_string().contains("pw"), "{error}");
    }
}

#[tokio::test]
async fn proxy_errors_keep_the_simulated_label() {
    let time = || Reply::json(&json!({"serverTime": 1_700_000_000_000_i64}));
    let server = Server::start(move |asked| match asked.parameter("symbol") {
        Some("SIM") => time().header("x-tribune-simulated", "simulated"),
        Some("GATEWAY") => Reply::new(502, "<html>bad gateway</html>"),
        Some("WALL") => Reply::new(403, ""),
        Some("PAUSE") => Reply::new(429, "{}").header("Retry-After", "1"),
        Some("PAGE") => Reply::new(200, "<html>log in</html>"),
        _ => time(),
    })
    .await;
    let rest = server.client(|_| ());
    let is_simulated = async |symbol| {
        let _ = rest.avg_price(symbol).await;
        rest.simulation().is_some()
    };
    assert!(is_simulated("SIM").await);
    for symbol in ["GATEWAY", "WALL", "PAGE", "PAUSE"] {
        assert!(is_simulated(symbol).await, "{symbol}");
    }
    let other = server.client(|_| ());
    assert!(other.avg_price("REAL").await.is_err(), "it is a time");
    assert!(other.simulation().is_none());
}
