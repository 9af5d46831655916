//! Twenty minutes of one symbol that nobody recorded, line by line as the exchange would say them.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::by_hand::T0;
use crate::recording::Recording;

const SYMBOL: &str = "AAAUSDT";
const TENTHS: i64 = 20 * 60 * 10;
/// Levels a side; a number at which the exchange does not cut.
const LEVELS: i64 = 43;
/// Prices in hundredths.
const FIRST: i64 = 10_000;

/// Hundredths, and thousandths of the base asset.
type Side = BTreeMap<i64, u64>;

struct Market {
    random: Rng,
    /// Bids are below it, asks at or above.
    middle: i64,
    bids: Side,
    asks: Side,
    update: u64,
    trade: u64,
    last: i64,
    lines: Vec<(i64, String)>,
}

pub fn recording() -> Recording {
    let mut market = Market {
        random: Rng::with_seed(11),
        middle: FIRST,
        bids: Side::new(),
        asks: Side::new(),
        update: 1_000,
        trade: 1,
        last: FIRST,
        lines: Vec::new(),
    };
    market.change(0);
    let levels = |levels: Vec<(&i64, &u64)>| json!(levels.into_iter().map(level).collect::<Vec<_>>());
    let snapshot = format!(
        r#"{{"lastUpdateId":{},"bids":{},"asks":{}}}"#,
        market.update,
        levels(market.bids.iter().rev().collect()),
        levels(market.asks.iter().collect())
    );
    market.lines = vec![(T0 * 1_000_000, snapshot)];
    for tenth in 1..TENTHS {
        market.step(tenth);
    }
    Recording { lines: market.lines }
}

fn level((price, quantity): (&i64, &u64)) -> Value {
    json!([hundredths(*price), format!("{}.{:03}", quantity / 1000, quantity % 1000)])
}

fn hundredths(price: i64) -> String {
    format!("{}.{:02}000000", price / 100, price % 100)
}

impl Market {
    fn say(&mut self, time: i64, stream: &str, data: &Value) {
        let text = format!(r#"{{"stream":"{stream}","data":{data}}}"#);
        self.lines.push((time * 1_000_000, text));
    }

    fn step(&mut self, tenth: i64) {
        let time = T0 + tenth * 100;
        self.middle += self.random.i64(-1..=1);
        // Every five minutes the price jumps: nothing is traded between.
        if tenth % 3_000 == 0 {
            self.middle += if tenth % 6_000 == 0 { -70 } else { 70 };
        }
        let (bids, asks) = self.change(tenth);
        let first = self.update + 1;
        self.update += 1 + self.random.u64(0..9);
        let diff =
            json!({"e": "depthUpdate", "E": time, "s": SYMBOL, "U": first, "u": self.update, "b": bids, "a": asks});
        self.say(time, "aaausdt@depth@100ms", &diff);
        // Fewer in some minutes than in others.
        let lively = (tenth / 600) % 3;
        for _ in 0..self.random.i64(0..=lively) {
            let after = self.random.i64(0..100);
            self.trade(time + after);
        }
        if tenth % 10 == 0 {
            self.ticker(time);
        }
    }

    /// What changes, so that both sides have levels all the way from the middle.
    fn change(&mut self, tenth: i64) -> (Vec<Value>, Vec<Value>) {
        let (bids, asks) = (self.bids.clone(), self.asks.clone());
        self.bids.retain(|price, _| *price < self.middle && *price >= self.middle - LEVELS);
        self.asks.retain(|price, _| *price >= self.middle && *price < self.middle + LEVELS);
        for away in 0..LEVELS {
            let is_new = self.random.u8(0..10) == 0;
            let size = self.random.u64(500..2_500);
            let bid = self.bids.entry(self.middle - 1 - away).or_insert(size);
            *bid = if is_new { size } else { *bid };
            let ask = self.asks.entry(self.middle + away).or_insert(size + 7);
            *ask = if is_new { size + 7 } else { *ask };
        }
        // A wall for twenty seconds of every forty; some are pulled, some pass by.
        if (tenth / 200) % 2 == 1 {
            let price = self.middle / 20 * 20 - 20;
            self.bids.insert(price, 40_000 + 500 * (tenth.unsigned_abs() / 2_000));
        } else {
            self.bids.values_mut().filter(|size| **size > 10_000).for_each(|size| *size = 1_000);
        }
        (changes(&bids, &self.bids), changes(&asks, &self.asks))
    }

    fn trade(&mut self, time: i64) {
        let time = self.not_before_the_last(time);
        let bought = self.random.u8(0..5) < 3;
        let away = self.random.i64(0..4);
        self.last = if bought { self.middle + away } else { self.middle - 1 - away };
        let size = self.random.u64(1..9_999);
        let data = json!({"e": "trade", "E": time, "s": SYMBOL, "t": self.trade, "p": hundredths(self.last),
            "q": format!("{}.{:03}", size / 1000, size % 1000), "T": time, "m": !bought, "M": true});
        self.trade += 1;
        self.say(time, "aaausdt@trade", &data);
    }

    fn not_before_the_last(&self, time: i64) -> i64 {
        time.max(self.lines.last().map_or(0, |(nanos, _)| nanos / 1_000_000))
    }

    fn ticker(&mut self, time: i64) {
        let time = self.not_before_the_last(time);
        let other = json!({"e": "24hrMiniTicker", "E": time, "s": "BBBUSDT", "c": "1", "o": "2", "h": "3", "l": "1",
            "v": "5", "q": "6"});
        let own = json!({"e": "24hrMiniTicker", "E": time, "s": SYMBOL, "c": hundredths(self.last), "o": "97.03000000",
            "h": "104.20000000", "l": "96.11000000", "v": format!("{}.125", 40_000 + self.trade),
            "q": format!("{}.00000001", 4_000_000 + self.trade * 100)});
        self.say(time, "!miniTicker@arr", &json!([other, own]));
    }
}

/// Levels that are different now; those that are gone have a quantity of zero.
fn changes(before: &Side, now: &Side) -> Vec<Value> {
    let gone = before.keys().filter(|price| !now.contains_key(*price)).map(|price| level((price, &0)));
    let changed = now.iter().filter(|(price, size)| before.get(*price) != Some(*size)).map(level);
    gone.chain(changed).collect()
}
