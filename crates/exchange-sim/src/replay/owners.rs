//! Whose a snapshot is that does not say it: of the symbol whose update ids run through its id at that moment. Where
//! those of several do, best levels and prices of the same moment decide; where they do not, nobody's.

use std::collections::VecDeque;

use super::lines::Place;
use crate::clock::Nanos;
use crate::market::Quote;
use crate::market::levels::{Level, Levels};
use crate::number::Price;

/// Snapshots that are told apart; a recording has a few.
const MAX_UNNAMED: usize = 10_000;
/// And of each what was around it of every symbol, some 150 bytes: 150 MB at most.
const MAX_NOTED: usize = 1_000_000;
/// A snapshot's line may be so long after, or before, the updates that it holds.
const NEAR: Nanos = 5_000_000_000;
const SECOND: Nanos = 1_000_000_000;
/// Best levels kept of each symbol.
const MAX_QUOTES: usize = 512;
/// Within the first factor a snapshot's price is a symbol's own; beyond the second it is another symbol's.
const SAME_PRICE: f64 = 1.2;
const OTHER_PRICE: f64 = 2.0;

/// Symbols by their number.
pub type SymbolNumber = usize;

/// Whose a snapshot is.
#[derive(Debug, PartialEq, Eq)]
pub enum Owner {
    One(SymbolNumber),
    Nobody,
    /// It could be of any of these.
    OneOf(Vec<SymbolNumber>),
}

/// Ids that a symbol had, a second of them at a time.
#[derive(Debug, Clone, Copy)]
struct Run {
    time: Nanos,
    first: u64,
    last: u64,
}

/// What a symbol showed lately.
#[derive(Debug, Default)]
struct Recent {
    runs: VecDeque<Run>,
    quotes: VecDeque<Quote>,
    price: Option<Price>,
    /// Snapshots before these have seen enough of the symbol's ids, and its next price.
    answered: usize,
    priced: usize,
}

/// What a symbol showed around a snapshot.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    ids: Option<(u64, u64)>,
    ids_after: bool,
    /// The last best levels that are not newer than the snapshot.
    quote: Option<Quote>,
    price: Option<Price>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    Same,
    Unknown,
    Different,
}

#[derive(Debug)]
pub struct Unnamed {
    pub time: Nanos,
    pub place: Place,
    id: u64,
    top: (Option<Level>, Option<Level>),
    around: Vec<Around>,
}

#[derive(Debug, Default)]
pub struct Evidence {
    pub unnamed: Vec<Unnamed>,
    symbols: Vec<Recent>,
    /// What is noted of symbols around all snapshots together.
    noted: usize,
}

impl Evidence {
    pub fn note_snapshot(&mut self, time: Nanos, place: Place, levels: &Levels) {
        if self.unnamed.len() == MAX_UNNAMED || self.noted >= MAX_NOTED {
            return;
        }
        self.noted += self.symbols.len();
        let id = levels.last_update_id;
        let around = self.symbols.iter().map(|recent| recent.around(id)).collect();
        self.unnamed.push(Unnamed {
            time,
            place,
            id,
            top: levels.top(),
            around,
        });
    }

    fn recent(&mut self, symbol: SymbolNumber) -> &mut Recent {
        if self.symbols.len() <= symbol {
            self.symbols.resize_with(symbol + 1, Recent::default);
        }
        &mut self.symbols[symbol]
    }

    /// Updates `first..=last` of a symbol.
    pub fn note_ids(&mut self, symbol: SymbolNumber, time: Nanos, first: u64, last: u64) {
        let recent = self.recent(symbol);
        recent.note_run(Run { time, first, last });
        let mut answered = recent.answered;
        for unnamed in self.unnamed.iter_mut().skip(answered) {
            let late = time > unnamed.time.saturating_add(NEAR);
            answered += usize::from(late);
            unnamed.around(symbol).note_ids_after(first, last, late);
        }
        self.symbols[symbol].answered = answered;
    }

    pub fn note_quote(&mut self, symbol: SymbolNumber, time: Nanos, quote: Quote) {
        self.note_ids(symbol, time, quote.id, quote.id);
        let recent = self.recent(symbol);
        if recent.quotes.len() == MAX_QUOTES {
            recent.quotes.pop_front();
        }
        recent.quotes.push_back(quote);
        let answered = recent.answered;
        for unnamed in self.unnamed.iter_mut().skip(answered) {
            let id = unnamed.id;
            let around = unnamed.around(symbol);
            if quote.id <= id && around.quote.is_none_or(|known| known.id < quote.id) {
                around.quote = Some(quote);
            }
        }
        self.note_price(symbol, quote.bid.0);
    }

    pub fn note_price(&mut self, symbol: SymbolNumber, price: Price) {
        let count = self.unnamed.len();
        let recent = self.recent(symbol);
        recent.price = Some(price);
        let priced = std::mem::replace(&mut recent.priced, count);
        for unnamed in self.unnamed.iter_mut().skip(priced) {
            unnamed.around(symbol).price.get_or_insert(price);
        }
    }
}

impl Recent {
    fn note_run(&mut self, run: Run) {
        // The last one before stays, however old: a quiet symbol is still there.
        while self.runs.len() > 1 && self.runs[1].time < run.time.saturating_sub(NEAR) {
            self.runs.pop_front();
        }
        match self.runs.back_mut() {
            Some(last) if run.time < last.time.saturating_add(SECOND) => {
                last.first = last.first.min(run.first);
                last.last = last.last.max(run.last);
            }
            _ => self.runs.push_back(run),
        }
    }

    fn around(&self, id: u64) -> Around {
        let first = self.runs.iter().map(|run| run.first).min();
        let last = self.runs.iter().map(|run| run.last).max();
        Around {
            ids: first.zip(last),
            ids_after: false,
            quote: self.quotes.iter().rfind(|quote| quote.id <= id).copied(),
            price: self.price,
        }
    }
}

impl Around {
    /// Of what comes late only the first counts, and only if there was nothing in time.
    fn note_ids_after(&mut self, first: u64, last: u64, late: bool) {
        if late && self.ids_after {
            return;
        }
        self.ids_after = true;
        let (low, high) = self.ids.unwrap_or((first, last));
        self.ids = Some((low.min(first), high.max(last)));
    }

    /// A book that stands right before the first known update is continued by it.
    fn holds(&self, id: u64) -> bool {
        self.ids
            .is_some_and(|(low, high)| (low.saturating_sub(1)..=high).contains(&id))
    }
}

impl Unnamed {
    fn around(&mut self, symbol: SymbolNumber) -> &mut Around {
        if self.around.len() <= symbol {
            self.around.resize(symbol + 1, Around::default());
        }
        &mut self.around[symbol]
    }

    pub fn owner(&self, candidates: &[SymbolNumber]) -> Owner {
        let mut left: Vec<SymbolNumber> = candidates.to_vec();
        let of = |symbol: &SymbolNumber| self.around.get(*symbol).copied().unwrap_or_default();
        left.retain(|symbol| self.likeness(&of(symbol)) != Likeness::Different);
        if candidates.len() > 1 {
            left.retain(|symbol| of(symbol).holds(self.id));
        }
        let narrowings: [&dyn Fn(&Around) -> bool; 2] = [&|around| self.agrees(around), &|around| {
            self.likeness(around) == Likeness::Same
        }];
        for fits in narrowings {
            let fitting: Vec<SymbolNumber> = left.iter().copied().filter(|symbol| fits(&of(symbol))).collect();
            if left.len() > 1 && !fitting.is_empty() {
                left = fitting;
            }
        }
        match left.as_slice() {
            [] => Owner::Nobody,
            [only] => Owner::One(*only),
            _ => Owner::OneOf(left),
        }
    }

    /// Its best levels are those that the symbol had.
    fn agrees(&self, around: &Around) -> bool {
        around
            .quote
            .is_some_and(|quote| self.top == (Some(quote.bid), Some(quote.ask)))
    }

    fn likeness(&self, around: &Around) -> Likeness {
        let (Some((one, _)), Some(other)) = (self.top.0, around.price) else {
            return Likeness::Unknown;
        };
        let (one, other) = ((one as f64).max(1.0), (other as f64).max(1.0));
        match (one / other).max(other / one) {
            ..SAME_PRICE => Likeness::Same,
            ..OTHER_PRICE => Likeness::Unknown,
            _ => Likeness::Different,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::levels::Side;

    const PLACE: Place = Place { file: 0, line: 0 };

    fn book(id: u64, bid: Price) -> Levels {
        let mut levels = Levels::standing_at(id);
        levels.set(Side::Bid, bid, 5);
        levels.set(Side::Ask, bid + 10, 5);
        levels
    }

    fn quote(id: u64, bid: Price) -> Quote {
        Quote {
            id,
            bid: (bid, 5),
            ask: (bid + 10, 5),
        }
    }

    fn owner(evidence: &Evidence) -> Owner {
        evidence.unnamed[0].owner(&[0, 1])
    }

    #[test]
    fn ids_come_before_prices_and_prices_are_of_the_moment() {
        let mut evidence = Evidence::default();
        evidence.note_ids(0, 0, 2_000, 2_100);
        evidence.note_price(0, 1_000);
        evidence.note_ids(1, 0, 1_000, 1_100);
        evidence.note_price(1, 1_050);
        evidence.note_snapshot(SECOND, PLACE, &book(2_150, 1_040));
        evidence.note_ids(0, 2 * SECOND, 2_101, 2_200);
        evidence.note_ids(1, 2 * SECOND, 1_101, 1_200);
        // Where the price goes later says nothing.
        evidence.note_price(0, 9_000);
        assert_eq!(owner(&evidence), Owner::One(0));
    }

    #[test]
    fn of_the_same_ids_best_levels_and_prices_decide() {
        let mut evidence = Evidence::default();
        for symbol in [0, 1] {
            evidence.note_ids(symbol, 0, 1_000, 1_100);
        }
        evidence.note_snapshot(SECOND, PLACE, &book(1_050, 1_000));
        assert_eq!(owner(&evidence), Owner::OneOf(vec![0, 1]));
        evidence.note_price(0, 1_001);
        evidence.note_price(1, 1_500);
        assert_eq!(owner(&evidence), Owner::One(0));
        evidence.note_quote(1, SECOND, quote(1_049, 1_000));
        assert_eq!(owner(&evidence), Owner::One(1));
        evidence.note_quote(1, SECOND, quote(1_051, 900));
        assert_eq!(owner(&evidence), Owner::One(1), "newer than the snapshot");
    }

    #[test]
    fn an_id_that_nobody_had_then_is_nobodys() {
        let mut evidence = Evidence::default();
        evidence.note_ids(0, 0, 10, 20);
        evidence.note_ids(1, 0, 110, 120);
        evidence.note_snapshot(SECOND, PLACE, &book(50, 1_000));
        assert_eq!(owner(&evidence), Owner::Nobody);
        evidence.note_ids(0, 9 * SECOND, 21, 60);
        assert_eq!(owner(&evidence), Owner::One(0), "the next, however late");
        evidence.note_ids(1, 9 * SECOND, 121, 160);
        evidence.note_ids(1, 10 * SECOND, 1, 160);
        assert_eq!(owner(&evidence), Owner::One(0));
    }
}
