//! What a book should be, by means so simple that they can be trusted: maps of texts read by hand, in the order of the
//! messages. It shares no code with what it judges but the type of the book that it is shown.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;
use tribune_binance::{BookView, Depth, Order, Side};

type Levels = BTreeMap<i128, i128>;

/// Decimal text as an integer of 10⁻⁸.
pub fn units(value: &Value) -> i128 {
    let text = value.as_str().unwrap_or_else(|| panic!("not a text: {value}"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<8}").parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Book {
    pub id: u64,
    pub bids: Levels,
    pub asks: Levels,
}

impl Book {
    pub fn of(snapshot: &Value) -> Self {
        let mut book = Self { id: snapshot["lastUpdateId"].as_u64().expect("an id"), ..Self::default() };
        set(&mut book.bids, &snapshot["bids"]);
        set(&mut book.asks, &snapshot["asks"]);
        book
    }

    /// Takes the next diff; panics at a gap, because the truth has none.
    pub fn apply(&mut self, diff: &Value) {
        let (first, last) = ids(diff);
        if last <= self.id {
            return;
        }
        assert!(first <= self.id + 1, "the truth has a gap: {} then {first}", self.id);
        set(&mut self.bids, &diff["b"]);
        set(&mut self.asks, &diff["a"]);
        self.id = last;
    }

    /// Best bid and ask: price and quantity.
    pub fn top(&self) -> [(i128, i128); 2] {
        let bid = self.bids.last_key_value().expect("bids");
        let ask = self.asks.first_key_value().expect("asks");
        [(*bid.0, *bid.1), (*ask.0, *ask.1)]
    }

    /// What is wrong with a depth that claims to be this book, as far as it says it reaches. Prices in `except` are not
    /// looked at.
    pub fn difference(&self, depth: &Depth, except: &BTreeSet<i128>) -> Option<String> {
        let reach = |price: Option<tribune_binance::Price>| price.map(|price| i128::from(price.units()));
        let (low, high) = (reach(depth.bids.reach), reach(depth.asks.reach));
        let bids = side_difference(&self.bids, &depth.bids, except, |price| low.is_none_or(|low| price >= low));
        let asks = side_difference(&self.asks, &depth.asks, except, |price| high.is_none_or(|high| price <= high));
        bids.map(|what| format!("bid {what}")).or_else(|| asks.map(|what| format!("ask {what}")))
    }
}

/// `U` and `u`.
pub fn ids(diff: &Value) -> (u64, u64) {
    (diff["U"].as_u64().expect("U"), diff["u"].as_u64().expect("u"))
}

fn set(side: &mut Levels, levels: &Value) {
    for level in levels.as_array().expect("levels") {
        let (price, quantity) = (units(&level[0]), units(&level[1]));
        if quantity == 0 {
            side.remove(&price);
        } else {
            side.insert(price, quantity);
        }
    }
}

fn side_difference<O: Order>(
    truth: &Levels,
    side: &Side<O>,
    except: &BTreeSet<i128>,
    known: impl Fn(i128) -> bool,
) -> Option<String> {
    let claimed: Levels = side.iter().map(|level| (i128::from(level.price.units()), level.quantity.units())).collect();
    for (price, quantity) in &claimed {
        if !except.contains(price) && truth.get(price) != Some(quantity) {
            return Some(format!("{price}: claims {quantity}, is {:?}", truth.get(price)));
        }
    }
    let missing =
        truth.iter().find(|(price, _)| known(**price) && !except.contains(price) && !claimed.contains_key(price));
    missing.map(|(price, quantity)| format!("{price}: lacks {quantity}"))
}

/// Best bid and ask of a view in the same form as [`Book::top`].
pub fn top(view: &BookView) -> [(i128, i128); 2] {
    let of = |level: Option<tribune_binance::Level>| {
        let level = level.expect("a level");
        (i128::from(level.price.units()), level.quantity.units())
    };
    [of(view.depth.bids.best()), of(view.depth.asks.best())]
}

/// What became of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same at an id at which the truth is wholly known.
    Exact,
    /// Between two diffs: everything is the same but what the second of them changes, and best prices are right.
    Between,
    /// The truth is not there yet, or began later.
    Unknown,
    Wrong(String),
}

/// The true book of one symbol, which follows the true diffs as far as views have come.
#[derive(Debug)]
pub struct Truth {
    book: Book,
    ahead: VecDeque<Value>,
    /// True best prices by the id from which they hold.
    tops: BTreeMap<u64, [(i128, i128); 2]>,
    /// The id of the last view that was judged.
    judged: u64,
}

impl Truth {
    pub fn new(snapshot: &Value) -> Self {
        Self { book: Book::of(snapshot), ahead: VecDeque::new(), tops: BTreeMap::new(), judged: 0 }
    }

    pub fn diff(&mut self, diff: Value) {
        self.ahead.push_back(diff);
    }

    pub fn book_ticker(&mut self, quote: &Value) {
        let level = |price: &str, quantity: &str| (units(&quote[price]), units(&quote[quantity]));
        let id = quote["u"].as_u64().expect("u");
        self.tops.insert(id, [level("b", "B"), level("a", "A")]);
    }

    pub fn judge(&mut self, view: &BookView) -> Verdict {
        let id = view.last_update_id;
        while let Some(diff) = self.ahead.front()
            && ids(diff).1 <= id
        {
            self.book.apply(diff);
            self.ahead.pop_front();
        }
        if id < self.judged {
            return Verdict::Wrong(format!("it stepped back from {} to {id}", self.judged));
        }
        self.judged = id;
        if id < self.book.id {
            return Verdict::Unknown;
        }
        if id == self.book.id {
            return self.exact(view);
        }
        let Some(next) = self.ahead.front() else {
            return Verdict::Unknown;
        };
        let (first, last) = ids(next);
        if !(first..last).contains(&id) {
            return Verdict::Unknown;
        }
        let changing = changed(next);
        if let Some(wrong) = self.book.difference(&view.depth, &changing) {
            return Verdict::Wrong(format!("between diffs, at {id}: {wrong}"));
        }
        match self.tops.range(..=id).next_back() {
            Some((_, best)) if *best != top(view) => {
                Verdict::Wrong(format!("best prices at {id} are {best:?}, not {:?}", top(view)))
            }
            _ => Verdict::Between,
        }
    }

    fn exact(&self, view: &BookView) -> Verdict {
        match self.book.difference(&view.depth, &BTreeSet::new()) {
            Some(wrong) => Verdict::Wrong(format!("at {}: {wrong}", self.book.id)),
            None => Verdict::Exact,
        }
    }
}

fn changed(diff: &Value) -> BTreeSet<i128> {
    let sides = [&diff["b"], &diff["a"]];
    let levels = sides.iter().flat_map(|side| side.as_array().expect("levels"));
    levels.map(|level| units(&level[0])).collect()
}
