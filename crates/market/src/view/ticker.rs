//! The price of a market and its last day.

use std::str::FromStr;

use jiff::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::Value;
use tribune_core::view::{Amount, Figure, Headline};

use super::parts::{signed, tone_of};
use super::record::{Told, padded, places};
use super::words::{age, ratio};
use crate::analytics::quotes::{Quote, Touch, quotes};
use crate::book::Depth;

/// Places of percentages on a page.
pub(crate) const RATIO_PLACES: u32 = 3;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// What a ticker says, exact, and in the words of the source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Day {
    pub(crate) last: Option<Decimal>,
    pub(crate) open: Option<Decimal>,
    pub(crate) high: Option<Decimal>,
    pub(crate) low: Option<Decimal>,
    pub(crate) change_pct: Option<Decimal>,
    pub(crate) volume: Option<String>,
    pub(crate) worth: Option<String>,
    pub(crate) as_of: Option<Timestamp>,
    pub(crate) age_ms: Option<u64>,
}

/// A best price and what rests there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Best {
    pub(crate) price: String,
    pub(crate) quantity: String,
}

/// The best prices of both sides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bests {
    pub(crate) bid: Option<Best>,
    pub(crate) ask: Option<Best>,
    pub(crate) spread_bps: Option<Decimal>,
}

impl Day {
    /// `None` if no price is told of.
    pub(crate) fn of(told: &Told) -> Option<Self> {
        let decimal = |name: &str| decimal(told.text(name)?);
        let text = |name: &str| told.text(name).map(str::to_owned);
        told.fields.get("last_price")?;
        Some(Self {
            last: decimal("last_price"),
            open: decimal("open_price"),
            high: decimal("high_price"),
            low: decimal("low_price"),
            change_pct: decimal("price_change_pct"),
            volume: text("volume_base"),
            worth: text("quote_volume"),
            as_of: told.as_of,
            age_ms: told.age_ms(),
        })
    }

    /// A newer trade than the ticker knows of: the change and the range follow it.
    pub(crate) fn trade(&mut self, price: Decimal, as_of: Option<Timestamp>, age_ms: u64) {
        self.last = Some(price);
        self.high = self.high.map(|high| high.max(price));
        self.low = self.low.map(|low| low.min(price));
        let share = self.open.and_then(|open| (price - open).checked_div(open));
        let change = share.and_then(|share| share.checked_mul(Decimal::ONE_HUNDRED));
        self.change_pct = change.or(self.change_pct);
        (self.as_of, self.age_ms) = (as_of.or(self.as_of), Some(age_ms));
    }

    /// With the figures that the answer is about: one that says nothing of volume has no word on it.
    pub(crate) fn headline(&self, bests: Option<&Bests>, told: &Told) -> Headline {
        let (base, quote) = (&told.base, &told.quote);
        let places = self.places(bests);
        let price = |value: Option<Decimal>| value.map(|value| Amount::new(written(value, places), quote));
        let sum = |value: &Option<String>, unit: &str| value.as_ref().map(|value| Amount::new(value, unit));
        let window = window(told);
        let named = [
            ("high_price", "high", price(self.high)),
            ("low_price", "low", price(self.low)),
            ("volume_base", "volume", sum(&self.volume, base)),
            ("quote_volume", "worth", sum(&self.worth, quote)),
        ];
        let told_of = named.into_iter().filter(|(name, ..)| told.fields.contains_key(*name));
        let mut figures: Vec<Figure> = told_of
            .map(|(_, label, value)| (format!("{window} {label}"), value))
            .map(|(label, value)| match value {
                Some(value) => Figure::new(label, value),
                None => Figure::unknown(
                    label,
                    told.text("ticker_note").unwrap_or("nothing was traded in that time"),
                ),
            })
            .collect();
        figures.extend(bests.into_iter().flat_map(|bests| bests.figures(base, quote, places)));
        let change = self.change_pct.map(|change| {
            let shown = change.round_dp(RATIO_PLACES).normalize();
            (
                Amount::new(signed(&shown.to_string()), format!("% in {window}")),
                tone_of(shown.to_f64()),
            )
        });
        Headline {
            label: "Last price".to_owned(),
            value: self.last.map_or_else(
                || {
                    Amount::plain(if told.text("ticker_note").is_some() {
                        "unknown"
                    } else {
                        "not traded"
                    })
                },
                |last| Amount::new(written(last, places), quote),
            ),
            change,
            as_of: self.as_of,
            age_ms: self.age_ms,
            figures,
        }
    }
}

impl Day {
    /// Digits after the point that the prices of the page have: a live one does not jump when a zero ends it.
    fn places(&self, bests: Option<&Bests>) -> usize {
        let prices = [self.last, self.open, self.high, self.low].into_iter().flatten();
        let prices = prices.map(|price| price.normalize().scale() as usize);
        prices.chain(bests.map(Bests::places)).max().unwrap_or(0)
    }
}

/// Of how long a time the figures are: `24 h`, unless the answer says that it is of less.
fn window(told: &Told) -> String {
    let time = |name: &str| told.text(name)?.parse::<Timestamp>().ok();
    let span = time("window_start").zip(time("window_end"));
    let millis = span.map(|(start, end)| end.as_millisecond().abs_diff(start.as_millisecond()));
    match millis {
        Some(millis) if millis.abs_diff(DAY_MS) > MINUTE_MS => age(millis),
        _ => "24 h".to_owned(),
    }
}

fn written(price: Decimal, places: usize) -> String {
    padded(&price.normalize().to_string(), places)
}

impl Bests {
    fn places(&self) -> usize {
        places(self.bid.iter().chain(&self.ask).map(|best| &*best.price))
    }

    /// `None` if the answer says nothing of them.
    pub(crate) fn of(told: &Told) -> Option<Self> {
        told.fields.get("best_bid")?;
        let best = |name: &str| {
            let parts = told.parts(name)?;
            let text = |name: &str| parts.get(name).and_then(Value::as_str).map(str::to_owned);
            Some(Best {
                price: text("price")?,
                quantity: text("quantity_base")?,
            })
        };
        Some(Self {
            bid: best("best_bid"),
            ask: best("best_ask"),
            spread_bps: told.text("spread_bps").and_then(decimal),
        })
    }

    /// `None` if the book is wrong.
    pub(crate) fn of_depth(depth: &Depth) -> Option<Self> {
        let quotes = quotes(depth).ok()?;
        let best = |quote: Quote| Best {
            price: quote.price.to_string(),
            quantity: quote.quantity_base.to_string(),
        };
        Some(Self {
            bid: quotes.best_bid.map(best),
            ask: quotes.best_ask.map(best),
            spread_bps: Touch::of(depth).ok().and_then(|touch| touch.spread_bps()),
        })
    }

    pub(crate) fn figures(&self, base: &str, quote: &str, places: usize) -> [Figure; 3] {
        let best = |label: &str, best: &Option<Best>, nobody: &str| match best {
            Some(best) => Figure {
                note: Some(format!("for {} {base}", best.quantity)),
                ..Figure::new(label, Amount::new(padded(&best.price, places), quote))
            },
            None => Figure::unknown(label, nobody),
        };
        let spread = match self.spread_bps {
            Some(bps) => Figure::new("Spread", Amount::new(ratio(bps), "bps")),
            None => Figure::unknown("Spread", "it takes a bid and an ask"),
        };
        [
            best("Best bid", &self.bid, "nobody bids"),
            best("Best ask", &self.ask, "nobody offers"),
            spread,
        ]
    }
}

/// Also as JSON writes small numbers: `1e-6`.
fn decimal(text: &str) -> Option<Decimal> {
    Decimal::from_str(text).or_else(|_| Decimal::from_scientific(text)).ok()
}

/// What a book alone says: the middle of its best prices.
pub(crate) fn mid_headline(told: &Told) -> Option<Headline> {
    let bests = Bests::of(told)?;
    let value = match told.text("mid") {
        Some(mid) => Amount::new(mid, &told.quote),
        None => Amount::plain("one side is empty"),
    };
    Some(Headline {
        label: "Mid price".to_owned(),
        value,
        change: None,
        as_of: told.as_of,
        age_ms: told.age_ms(),
        figures: bests.figures(&told.base, &told.quote, bests.places()).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day() -> Day {
        let number = |text: &str| Decimal::from_str(text).ok();
        Day {
            last: number("100"),
            open: number("80"),
            high: number("105"),
            low: number("79"),
            change_pct: number("25"),
            volume: Some("7.00000001".to_owned()),
            worth: Some("700".to_owned()),
            as_of: None,
            age_ms: Some(4_000),
        }
    }

    #[test]
    fn a_newer_trade_moves_the_change_and_the_range() {
        let mut moved = day();
        moved.trade(Decimal::from(110), None, 3);
        // (110 − 80)/80 = 37.5 %.
        assert_eq!(moved.change_pct, Some(Decimal::new(375, 1)));
        assert_eq!((moved.high, moved.low), (Some(Decimal::from(110)), day().low));
        assert_eq!((moved.last, moved.age_ms), (Some(Decimal::from(110)), Some(3)));
        let mut fallen = day();
        fallen.trade(Decimal::from(60), None, 0);
        assert_eq!(
            (fallen.change_pct, fallen.low),
            (Some(Decimal::from(-25)), Some(Decimal::from(60)))
        );
        // An open of nothing has no change; what was known stays.
        let mut odd = day();
        odd.open = Some(Decimal::ZERO);
        odd.trade(Decimal::from(60), None, 0);
        assert_eq!(odd.change_pct, day().change_pct);
    }

    #[test]
    fn best_prices_that_are_missing_say_so() {
        let bests = Bests {
            bid: Some(Best {
                price: "99.5".to_owned(),
                quantity: "2".to_owned(),
            }),
            ask: None,
            spread_bps: None,
        };
        let [bid, ask, spread] = bests.figures("BTC", "USDT", 2);
        assert_eq!(bid.value, Some(Amount::new("99.50", "USDT")));
        assert_eq!(bid.note.as_deref(), Some("for 2 BTC"));
        assert_eq!((ask.value, ask.note.as_deref()), (None, Some("nobody offers")));
        assert!(spread.value.is_none() && spread.note.is_some());
        let tight = Bests {
            spread_bps: decimal("0.0015625"),
            ..bests
        };
        let [.., spread] = tight.figures("BTC", "USDT", 2);
        assert_eq!(spread.value, Some(Amount::new("0.00156", "bps")));
    }

    #[test]
    fn small_numbers_of_json_are_read() {
        assert_eq!(decimal("1e-6"), Some(Decimal::new(1, 6)));
        assert_eq!((decimal("NaN"), decimal("")), (None, None));
    }
}
