//! Messages as the exchange sends them, and as it should not.

use super::*;
use crate::model::Aggressor;
use proptest::prelude::*;

#[test]
fn messages_of_every_stream_are_read() {
    let depth = r#"{"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1700000000123,"s":"BTCUSDT","U":5,"u":9,"b":[["100.10000000","0.50000000"]],"a":[["100.20","0"]]}}"#;
    let Ok(Event::Depth { symbol, diff }) = decode(depth) else { panic!("depth") };
    assert_eq!((&*symbol, diff.first_id, diff.last_id), ("BTCUSDT", 5, 9));
    assert!(matches!(symbol, Cow::Borrowed(_)), "nothing is copied that need not be");
    assert_eq!(diff.bids[0].price.to_string(), "100.1");
    assert!(diff.asks[0].quantity.is_zero());

    let trade = r#"{"stream":"btcusdt@trade","data":{"e":"trade","E":1,"s":"BTCUSDT","t":12345,"p":"0.001","q":"100","T":1672515782136,"m":true,"M":true}}"#;
    let Ok(Event::Trade { trade, aggregate, .. }) = decode(trade) else { panic!("trade") };
    assert_eq!((trade.aggressor, trade.last_id - trade.first_id, aggregate), (Aggressor::Seller, 0, false));

    let several = r#"{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1,"s":"BTCUSDT","a":9,"p":"0.001","q":"100","f":100,"l":105,"T":1,"m":false,"M":true}}"#;
    let Ok(Event::Trade { trade, aggregate, .. }) = decode(several) else { panic!("aggregate") };
    assert_eq!((trade.aggressor, trade.last_id - trade.first_id, aggregate), (Aggressor::Buyer, 5, true));

    let quote = r#"{"stream":"bnbusdt@bookTicker","data":{"u":400900217,"s":"BNBUSDT","b":"25.35","B":"31.21","a":"25.36","A":"40.66"}}"#;
    let Ok(Event::BestQuote { symbol, quote }) = decode(quote) else { panic!("quote") };
    assert_eq!((&*symbol, quote.ask.price.to_string()), ("BNBUSDT", "25.36".to_owned()));

    let tickers = r#"{"stream":"!miniTicker@arr","data":[{"e":"24hrMiniTicker","E":1,"s":"BNBBTC","c":"1","o":"2","h":"3","l":"1","v":"5","q":"6"}]}"#;
    assert!(matches!(decode(tickers), Ok(Event::MiniTickers { tickers, .. }) if tickers[0].symbol == "BNBBTC"));

    assert!(matches!(decode(r#"{"result":null,"id":7}"#), Ok(Event::Answered { id: 7, error: None })));
    assert!(matches!(
        decode(r#"{"error":{"code":2,"msg":"Invalid request"},"id":7}"#),
        Ok(Event::Answered { id: 7, error: Some(_) })
    ));
    for shutdown in [r#"{"e":"serverShutdown","E":1}"#, r#"{"stream":"","data":{"e":"serverShutdown","E":1}}"#] {
        assert!(matches!(decode(shutdown), Ok(Event::ServerShutdown)));
    }
    // With unknown fields.
    let new = r#"{"new":[{}],"stream":"btcusdt@depth@100ms","data":{"s":"BTCUSDT","U":5,"u":9,"b":[],"a":[]}}"#;
    assert!(matches!(decode(new), Ok(Event::Depth { symbol, .. }) if symbol == "BTCUSDT"));
    assert!(decode(r#"{"id":7} and more"#).is_err());
    let partial = r#"{"stream":"btcusdt@depth20@100ms","data":{"lastUpdateId":1,"bids":[],"asks":[]}}"#;
    assert!(matches!(decode(partial), Ok(Event::Other)));
}

#[test]
fn escaped_text_is_the_same_text() {
    let names = r"\u5e01\u5b89\u4eba\u751fUSDT";
    let lower = names.replace("USDT", "usdt");
    let depth = format!(
        r#"{{"stream":"{lower}@depth@100ms","data":{{"e":"depthUpdate","E":1,"s":"{names}","U":5,"u":9,"b":[],"a":[]}}}}"#
    );
    assert!(matches!(decode(&depth), Ok(Event::Depth { symbol, .. }) if symbol == "币安人生USDT"));
    let trade = format!(
        r#"{{"stream":"{lower}@\u0074rade","data":{{"E":1,"s":"{names}","t":1,"p":"1","q":"1","T":1,"m":true}}}}"#
    );
    assert!(matches!(decode(&trade), Ok(Event::Trade { symbol, .. }) if symbol == "币安人生USDT"));
    let shutdown = r#"{"e":"server\u0053hutdown","E":1}"#;
    assert!(matches!(decode(shutdown), Ok(Event::ServerShutdown)));
}

#[test]
fn one_unreadable_ticker_leaves_the_others() {
    let ticker = |symbol: &str, volume: &str| {
        format!(r#"{{"E":1,"s":"{symbol}","c":"1","o":"2","h":"3","l":"1","v":"{volume}","q":"6"}}"#)
    };
    let all = [ticker("BNBBTC", "5"), ticker("ODDUSDT", "0.123456789"), "7".to_owned(), ticker(r"\u5e01USDT", "1")];
    let text = format!(r#"{{"stream":"!miniTicker@arr","data":[{}]}}"#, all.join(","));
    let Ok(Event::MiniTickers { tickers, unreadable }) = decode(&text) else { panic!("tickers") };
    let read: Vec<&str> = tickers.iter().map(|ticker| &*ticker.symbol).collect();
    assert_eq!((read, unreadable), (vec!["BNBBTC", "币USDT"], 2));
}

#[test]
fn unreadable_message_names_its_stream() {
    for data in ["{}", "[]", r#"{"s":"BTCUSDT","U":"5"}"#, "{\"s\":", "<<<"] {
        let text = format!(r#"{{"stream":"btcusdt@depth@100ms","data":{data}}}"#);
        let unreadable = decode(&text).expect_err(data);
        assert_eq!(unreadable.as_deref(), Some("btcusdt@depth@100ms"), "{data}");
    }
    for text in ["", "<<<", "[]", "{\"stream\":7}", "{\"stream\":\"btc"] {
        assert!(decode(text).expect_err(text).is_none(), "{text}");
    }
}

proptest! {
    #[test]
    fn garbage_is_refused(text in "\\PC{0,200}", stream in "[a-z@!_0-9]{0,20}", data in "\\PC{0,60}") {
        let _ = decode(&text);
        let _ = decode(&format!("{{\"stream\":\"{stream}\",\"data\":{data}}}"));
    }
}
