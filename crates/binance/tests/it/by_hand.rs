//! Hand-written recordings.

use serde_json::{Value, json};
use tribune_binance::Millis;

use crate::recording::Recording;

/// The first millisecond of a minute.
pub const T0: Millis = 1_750_000_020_000;

fn diff(symbol: &str, first: u64, last: u64, bids: &Value, asks: &Value) -> Value {
    json!({"stream": format!("{}@depth@100ms", symbol.to_lowercase()),
        "data": {"e": "depthUpdate", "E": T0, "s": symbol, "U": first, "u": last, "b": bids, "a": asks}})
}

fn quote(symbol: &str, id: u64, bid: (&str, &str), ask: (&str, &str)) -> Value {
    json!({"stream": format!("{}@bookTicker", symbol.to_lowercase()),
        "data": {"u": id, "s": symbol, "b": bid.0, "B": bid.1, "a": ask.0, "A": ask.1}})
}

pub fn trade(symbol: &str, number: u64, after: Millis, price: &str, quantity: &str, seller: bool) -> Value {
    json!({"stream": format!("{}@trade", symbol.to_lowercase()),
        "data": {"e": "trade", "E": T0 + after, "s": symbol, "t": number, "p": price, "q": quantity,
            "T": T0 + after, "m": seller, "M": true}})
}

/// Best quotes before and after the diffs that have them, a first diff around the snapshot's id, one that begins right
/// behind it, levels removed that were never there, a diff twice.
pub fn tricky(symbol: &str) -> Vec<Value> {
    let none = json!([]);
    vec![
        json!({"result": null, "id": 1}),
        diff(symbol, 95, 99, &json!([["9.90", "7"]]), &none),
        quote(symbol, 103, ("10.00", "2"), ("10.10", "4")),
        json!({"lastUpdateId": 102, "bids": [["10.00", "1"], ["9.90", "3"], ["9.50", "8"]],
            "asks": [["10.10", "4"], ["10.20", "5"]]}),
        diff(symbol, 100, 104, &json!([["10.00", "2.5"], ["9.40", "0.00000000"]]), &json!([["10.20", "6"]])),
        quote(symbol, 104, ("10.00", "2.5"), ("10.10", "4")),
        quote(symbol, 106, ("9.95", "0.5"), ("10.10", "4")),
        quote(symbol, 107, ("9.95", "0.5"), ("10.05", "0.00000001")),
        diff(
            symbol,
            105,
            107,
            &json!([["10.00", "0"], ["9.95", "0.5"]]),
            &json!([["10.05", "0.00000001"], ["77", "0"]]),
        ),
        diff(
            symbol,
            105,
            107,
            &json!([["10.00", "0"], ["9.95", "0.5"]]),
            &json!([["10.05", "0.00000001"], ["77", "0"]]),
        ),
        diff(symbol, 108, 108, &json!([["9.50", "0"]]), &none),
        quote(symbol, 109, ("9.95", "0.5"), ("10.10", "4")),
        diff(symbol, 109, 115, &none, &json!([["10.05", "0"], ["10.05000000", "0"]])),
        quote(symbol, 115, ("9.95", "0.5"), ("10.10", "4")),
    ]
}

pub fn laid_out(values: Vec<Value>) -> Recording {
    let at = |index: usize| (T0 + 100 * i64::try_from(index).expect("few")) * 1_000_000;
    let lines = values.into_iter().enumerate().map(|(index, value)| (at(index), value.to_string()));
    Recording { lines: lines.collect() }
}
