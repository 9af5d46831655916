//! All markets of one quote asset by turnover, gain, loss and range of 24 hours.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use rust_decimal::Decimal;

use super::figure::{quotient, rounded};
use tribune_binance::{Day, Notional, Price};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// What their trades of 24 hours are worth.
    Volume,
    /// Those that rose, the most first.
    Gain,
    /// Those that fell, the most first.
    Loss,
    /// The distance between highest and lowest price.
    Range,
}

impl Order {
    pub const ALL: [Self; 4] = [Self::Volume, Self::Gain, Self::Loss, Self::Range];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Gain => "gain",
            Self::Loss => "loss",
            Self::Range => "range",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub symbol: Arc<str>,
    pub last: Price,
    pub quote_volume: Notional,
    /// Share of the turnover of all markets.
    pub share: Option<Decimal>,
    /// Against the price of 24 hours ago.
    pub change: Option<Decimal>,
    /// Highest less lowest price, of the lowest.
    pub range: Option<Decimal>,
}

/// Every market, the most traded first.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    pub places: Vec<Place>,
    /// `None` if it is more than can be counted.
    pub quote_volume: Option<Notional>,
}

impl Ranking {
    pub fn of(days: impl IntoIterator<Item = (Arc<str>, Day)>) -> Self {
        let days: Vec<(Arc<str>, Day)> = days.into_iter().collect();
        let quote_volume = days.iter().try_fold(Notional::default(), |sum, (_, day)| sum.checked_add(day.quote_volume));
        let share = |day: &Day| quotient(day.quote_volume.units(), quote_volume?.units());
        let place = |(symbol, day): (Arc<str>, Day)| Place {
            share: share(&day),
            change: part(day.last, day.open),
            range: part(day.high, day.low),
            symbol,
            last: day.last,
            quote_volume: day.quote_volume,
        };
        let mut places: Vec<Place> = days.into_iter().map(place).collect();
        places.sort_by(|a, b| b.quote_volume.cmp(&a.quote_volume).then_with(|| a.symbol.cmp(&b.symbol)));
        Self { places, quote_volume }
    }

    /// The first markets in this order; ties go to the larger turnover.
    pub fn first(&self, order: Order, most: usize) -> Vec<&Place> {
        let mut places: Vec<&Place> = self.places.iter().collect();
        match order {
            Order::Volume => {}
            Order::Gain => {
                places.retain(|place| place.direction() == Some(Ordering::Greater));
                places.sort_by_key(|place| Reverse(place.change));
            }
            Order::Loss => {
                places.retain(|place| place.direction() == Some(Ordering::Less));
                places.sort_by_key(|place| place.change);
            }
            Order::Range => {
                places.retain(|place| place.range.is_some());
                places.sort_by_key(|place| Reverse(place.range));
            }
        }
        places.truncate(most);
        places
    }

    pub fn count(&self, direction: Ordering) -> usize {
        let went = |place: &&Place| place.direction() == Some(direction);
        self.places.iter().filter(went).count()
    }

    /// Share of the most traded markets in the turnover of all.
    pub fn share_of_first(&self, most: usize) -> Option<f64> {
        let mut shares = self.places.iter().take(most).map(|place| place.share);
        let sum = shares.try_fold(Decimal::ZERO, |sum, share| sum.checked_add(share?));
        percent(sum?)
    }
}

impl Place {
    fn direction(&self) -> Option<Ordering> {
        self.change.map(|change| change.cmp(&Decimal::ZERO))
    }
}

/// (a − b)/b of two prices.
fn part(price: Price, of: Price) -> Option<Decimal> {
    (price.decimal() - of.decimal()).checked_div(of.decimal())
}

pub fn percent(part: Decimal) -> Option<f64> {
    rounded(part.checked_mul(Decimal::ONE_HUNDRED)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::ManualClock;
    use tribune_binance::{Moment, Quantity};

    /// Symbol, open, last, high, low, money traded.
    type Told = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

    fn ranking(markets: &[Told]) -> Ranking {
        let received = Moment::now(&ManualClock::at(0));
        let price = |text: &str| text.parse::<Price>().expect("a price");
        Ranking::of(markets.iter().map(|(symbol, open, last, high, low, money)| {
            let day = Day {
                last: price(last),
                open: price(open),
                high: price(high),
                low: price(low),
                volume: Quantity::ZERO,
                quote_volume: money.parse::<Notional>().expect("money"),
                exchange_time: None,
                received,
            };
            (Arc::from(*symbol), day)
        }))
    }

    fn symbols(places: &[&Place]) -> Vec<String> {
        places.iter().map(|place| place.symbol.to_string()).collect()
    }

    #[test]
    fn matches_hand_computation() {
        let all = ranking(&[
            ("AUSDT", "100", "110", "120", "100", "600"),
            ("BUSDT", "10", "9", "10", "8", "300"),
            ("CUSDT", "1", "1.05", "1.06", "1", "90"),
            ("DUSDT", "5", "5", "5", "5", "10"),
        ]);
        assert_eq!(all.quote_volume.map(|sum| sum.to_string()).as_deref(), Some("1000"));
        assert_eq!(symbols(&all.first(Order::Volume, 2)), ["AUSDT", "BUSDT"]);
        assert_eq!(symbols(&all.first(Order::Gain, 9)), ["AUSDT", "CUSDT"]);
        assert_eq!(symbols(&all.first(Order::Loss, 9)), ["BUSDT"]);
        assert_eq!(symbols(&all.first(Order::Range, 3)), ["BUSDT", "AUSDT", "CUSDT"]);
        let percents = |place: &Place| [place.share, place.change, place.range].map(|part| part.and_then(percent));
        assert_eq!(percents(&all.places[0]), [Some(60.0), Some(10.0), Some(20.0)]);
        assert_eq!(percents(&all.places[1]), [Some(30.0), Some(-10.0), Some(25.0)]);
        assert_eq!(
            (all.share_of_first(1), all.share_of_first(2), all.share_of_first(9)),
            (Some(60.0), Some(90.0), Some(100.0))
        );
        let counts = [Ordering::Greater, Ordering::Less, Ordering::Equal].map(|way| all.count(way));
        assert_eq!(counts, [2, 1, 1]);
    }

    #[test]
    fn division_by_zero_is_unknown() {
        let nothing = ranking(&[]);
        assert_eq!((nothing.share_of_first(3), nothing.first(Order::Gain, 3).len()), (Some(0.0), 0));
        // An exchange that says 0 of everything says nothing.
        let zeros = ranking(&[("AUSDT", "0", "0", "0", "0", "0")]);
        let place = &zeros.places[0];
        assert_eq!((place.share, place.change, place.range), (None, None, None));
        assert_eq!((zeros.share_of_first(1), zeros.first(Order::Range, 3).len()), (None, 0));
        let huge = "9999999999999999999999";
        let huge = ranking(&[("AUSDT", "1", "2", "2", "1", huge), ("BUSDT", "1", "1", "1", "1", huge)]);
        assert_eq!(huge.places.len(), 2);
        assert_eq!(huge.quote_volume.is_none(), huge.places[0].share.is_none());
    }
}
