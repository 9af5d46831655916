//! Activity of one symbol by the second: counts and pressure on the best prices.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::Mutex;

use crate::book::BestQuote;
use crate::number::Quantity;

/// The longest window of order flow, and the running second.
const SECONDS: usize = 300 + 1;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Second {
    number: u64,
    updates: u32,
    quotes: u32,
    trades: u32,
    /// Order-flow imbalance of the best levels in 10⁻⁸ of the base asset.
    ofi: i128,
}

/// Sums over the last seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beats {
    /// Whole seconds that were observed.
    pub seconds: u64,
    pub updates: u64,
    pub trades: u64,
    /// Of those, the seconds in which every change of the best prices is known: from the first that were announced,
    /// which say what the next change is from.
    pub quoted_seconds: u64,
    /// Changes of the best prices in them.
    pub quotes: u64,
    /// Order-flow imbalance of them in 10⁻⁸ of the base asset.
    pub ofi_units: i128,
}

#[derive(Debug)]
pub struct Pulse {
    start: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    seconds: VecDeque<Second>,
    quote: Option<BestQuote>,
    /// The first second that was observed whole.
    since: u64,
    /// The first whole second before which best prices were announced.
    quoted_since: Option<u64>,
    /// When its last message arrived.
    heard: Option<Instant>,
}

impl Pulse {
    pub fn new(start: Instant) -> Self {
        Self { start, inner: Mutex::default() }
    }

    fn second(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_secs()
    }

    /// The stream was interrupted: counting starts over.
    pub fn interrupted(&self, now: Instant) {
        *self.inner.lock() = Inner { since: self.second(now) + 1, ..Inner::default() };
    }

    pub fn update(&self, now: Instant) {
        self.inner.lock().at(self.second(now), now).updates += 1;
    }

    pub fn trade(&self, now: Instant) {
        self.inner.lock().at(self.second(now), now).trades += 1;
    }

    pub fn quote(&self, now: Instant, quote: BestQuote) {
        let number = self.second(now);
        let mut inner = self.inner.lock();
        let before = inner.quote;
        if before.is_some_and(|before| before.update_id >= quote.update_id) {
            return;
        }
        inner.quote = Some(quote);
        inner.quoted_since.get_or_insert(number + 1);
        let pressure = before.and_then(|before| step(&before, &quote));
        let second = inner.at(number, now);
        second.quotes += 1;
        second.ofi = second.ofi.saturating_add(pressure.map_or(0, Quantity::units));
    }

    /// The `window` whole seconds before `end`, without the one that is running then, as far as they were observed.
    /// `heard` is when the symbol's connection last delivered a message: the time after it is not observed.
    pub fn beats(&self, end: Instant, heard: Instant, window: u64) -> Beats {
        let inner = self.inner.lock();
        let heard = inner.heard.map_or(heard, |own| own.max(heard));
        let until = self.second(heard.min(end));
        let from = self.second(end).saturating_sub(window).max(inner.since);
        let quoted = inner.quoted_since.map_or(until, |since| from.max(since));
        let mut beats = Beats {
            seconds: until.saturating_sub(from),
            quoted_seconds: until.saturating_sub(quoted),
            ..Beats::default()
        };
        for second in inner.seconds.iter().filter(|second| (from..until).contains(&second.number)) {
            beats.updates += u64::from(second.updates);
            beats.trades += u64::from(second.trades);
            if second.number >= quoted {
                beats.quotes += u64::from(second.quotes);
                beats.ofi_units = beats.ofi_units.saturating_add(second.ofi);
            }
        }
        beats
    }
}

impl Inner {
    fn at(&mut self, number: u64, now: Instant) -> &mut Second {
        self.heard = Some(now);
        if self.seconds.back().is_none_or(|second| second.number < number) {
            if self.seconds.len() == SECONDS {
                self.seconds.pop_front();
            }
            self.seconds.push_back(Second { number, ..Second::default() });
        }
        let last = self.seconds.len() - 1;
        &mut self.seconds[last]
    }
}

/// Order-flow imbalance of the best quotes (Cont, Kukanov, Stoikov), from one state to the next, with q and r the sizes of bid and ask, primes the state
/// before: 1[b≥b′]q − 1[b≤b′]q′ − 1[a≤a′]r + 1[a≥a′]r′. Above zero: bids were added or asks taken away.
/// `None` if either state is crossed or without a price.
fn step(before: &BestQuote, after: &BestQuote) -> Option<Quantity> {
    if !is_valid(before) || !is_valid(after) {
        return None;
    }
    let when = |counts: bool, quantity: Quantity| if counts { quantity } else { Quantity::ZERO };
    when(after.bid.price >= before.bid.price, after.bid.quantity)
        .checked_sub(when(after.bid.price <= before.bid.price, before.bid.quantity))?
        .checked_sub(when(after.ask.price <= before.ask.price, after.ask.quantity))?
        .checked_add(when(after.ask.price >= before.ask.price, before.ask.quantity))
}

fn is_valid(quote: &BestQuote) -> bool {
    quote.bid.price.units() > 0 && quote.bid.price < quote.ask.price
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::{Depth, Level};
    use crate::number::Price;
    use crate::testing::{books, level};
    use proptest::prelude::*;
    use std::time::Duration;

    fn quote(update_id: u64, bid: (i64, i128), ask: (i64, i128)) -> BestQuote {
        let level = |(price, units)| Level { price: Price::from_units(price), quantity: Quantity::from_units(units) };
        BestQuote { update_id, bid: level(bid), ask: level(ask) }
    }

    #[test]
    fn beats_sum_the_observed_seconds() {
        let start = Instant::now();
        let pulse = Pulse::new(start);
        let at = |millis| start + Duration::from_millis(millis);
        for tenth in 0..100 {
            pulse.update(at(tenth * 100));
            match tenth {
                50 => pulse.quote(at(5_000), quote(1, (100, 5), (101, 7))),
                95 => pulse.quote(at(9_500), quote(2, (100, 8), (101, 7))),
                96 => pulse.quote(at(9_600), quote(2, (100, 9), (101, 7))),
                _ => {}
            }
        }
        let beats = pulse.beats(at(10_000), at(10_000), 5);
        assert_eq!((beats.seconds, beats.updates), (5, 50));
        // The first best prices say only what the next change is from: from the sixth second on all is known.
        assert_eq!((beats.quoted_seconds, beats.quotes, beats.ofi_units), (4, 1, 3));
        pulse.interrupted(at(10_500));
        assert_eq!(pulse.beats(at(12_500), at(12_500), 60).seconds, 1);
        assert_eq!(pulse.beats(at(12_500), at(12_500), 60).quoted_seconds, 0);
    }

    /// Best prices change by one every second for ten seconds; then nothing comes.
    #[test]
    fn silent_seconds_are_not_observed() {
        let start = Instant::now();
        let pulse = Pulse::new(start);
        let at = |millis| start + Duration::from_millis(millis);
        for second in 0..=10 {
            pulse.quote(at(second * 1_000), quote(second + 1, (100, 1 + i128::from(second)), (101, 7)));
        }
        let seen = |now, heard| {
            let beats = pulse.beats(at(now), at(heard), 10);
            (beats.quoted_seconds, beats.quotes, beats.ofi_units)
        };
        assert_eq!(seen(11_000, 11_000), (10, 10, 10), "all of it");
        // Three seconds after the last word: of seconds 3 to 12 those to the ninth are known whole.
        assert_eq!(seen(13_000, 10_400), (7, 7, 7));
        assert_eq!(seen(22_000, 10_400), (0, 0, 0), "nothing of it");
        // The connection brings others, and nothing of this one: it is quiet.
        assert_eq!(seen(22_000, 22_000), (10, 0, 0));
    }

    #[test]
    fn longest_window_is_kept() {
        let start = Instant::now();
        let pulse = Pulse::new(start);
        for second in 0..=400 {
            pulse.update(start + Duration::from_secs(second));
        }
        let now = start + Duration::from_millis(400_500);
        let beats = pulse.beats(now, now, 300);
        assert_eq!((beats.seconds, beats.updates), (300, 300));
    }

    fn quote_at(bid: (&str, &str), ask: (&str, &str)) -> BestQuote {
        BestQuote { update_id: 1, bid: level(&bid), ask: level(&ask) }
    }

    fn best(depth: &Depth) -> BestQuote {
        BestQuote { update_id: 1, bid: depth.bids.best().expect("a bid"), ask: depth.asks.best().expect("an ask") }
    }

    #[test]
    fn flow_matches_hand_computation() {
        let start = quote_at(("100", "5"), ("101", "4"));
        let to = |bid, ask| step(&start, &quote_at(bid, ask)).map(|change| change.to_string());
        // Same prices, bid 5 → 8: + 8 − 5 − 4 + 4 = 3.
        assert_eq!(to(("100", "8"), ("101", "4")).as_deref(), Some("3"));
        // Bid up to 100.5 with 2: + 2; ask as before: − 4 + 4. Sum 2.
        assert_eq!(to(("100.5", "2"), ("101", "4")).as_deref(), Some("2"));
        // Bid down to 99 with 9: − 5. Ask down to 100 with 1: − 1. Sum −6.
        assert_eq!(to(("99", "9"), ("100", "1")).as_deref(), Some("-6"));
        // Ask up to 102: + 4 (what was there is gone).
        assert_eq!(to(("100", "5"), ("102", "7")).as_deref(), Some("4"));
        assert_eq!(to(("101", "5"), ("101", "7")), None, "a locked book");
    }

    proptest! {
        #[test]
        fn reversed_change_cancels_its_flow(books in (books(), books())) {
            let (one, two) = (best(&books.0), best(&books.1));
            prop_assume!(is_valid(&one) && is_valid(&two));
            prop_assert_eq!(step(&one, &one), Some(Quantity::ZERO));
            let there_and_back = step(&one, &two).zip(step(&two, &one));
            prop_assert_eq!(there_and_back.and_then(|(there, back)| there.checked_add(back)), Some(Quantity::ZERO));
        }
    }
}
