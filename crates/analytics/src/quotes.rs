//! The best bid and ask, and the figures that follow from them.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{self, Standing, Unavailable, bps, derived_price, quotient, rounded_bps};
use tribune_binance::{Depth, Level, Price, Quantity};

/// Best bid below best ask, both above zero: every figure of a book starts from these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    bid: Level,
    ask: Level,
}

impl Touch {
    pub fn new(bid: Level, ask: Level) -> Result<Self, Unavailable> {
        if bid.price >= ask.price {
            return Err(Unavailable::Crossed { bid: bid.price, ask: ask.price });
        }
        if bid.price.units() <= 0 {
            return Err(Unavailable::BadPrice);
        }
        Ok(Self { bid, ask })
    }

    pub fn of(depth: &Depth) -> Result<Self, Unavailable> {
        let bid = depth.bids.best().ok_or(Unavailable::NoBids)?;
        let ask = depth.asks.best().ok_or(Unavailable::NoAsks)?;
        Self::new(bid, ask)
    }

    pub const fn bid(&self) -> Level {
        self.bid
    }

    pub const fn ask(&self) -> Level {
        self.ask
    }

    /// Bid plus ask in 10⁻⁸: twice the mid, as an integer.
    pub(super) fn twice_mid(&self) -> i128 {
        i128::from(self.bid.price.units()) + i128::from(self.ask.price.units())
    }

    /// Exact: at most nine places.
    pub fn mid(&self) -> Decimal {
        // A half in 10⁻⁸ is five in 10⁻⁹.
        Decimal::from_i128_with_scale(self.twice_mid() * 5, 9).normalize()
    }

    pub fn spread(&self) -> Price {
        Price::from_units(self.ask.price.units() - self.bid.price.units())
    }

    /// The spread in basis points of the mid, not rounded.
    pub fn spread_bps(&self) -> Option<Decimal> {
        bps(self.spread().decimal(), self.mid())
    }

    /// (a·qb + b·qa)/(qb + qa), as b + (a − b)·qb/(qb + qa): so it cannot leave [b, a].
    pub fn microprice(&self) -> Option<Decimal> {
        let both = self.bid.quantity.checked_add(self.ask.quantity)?;
        let share = quotient(self.bid.quantity.units(), both.units())?;
        let above_bid = self.spread().decimal().checked_mul(share)?;
        self.bid.price.decimal().checked_add(above_bid)
    }

    pub fn imbalance(&self) -> Option<f64> {
        figure::imbalance(self.bid.quantity.units(), self.ask.quantity.units())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Quote {
    pub price: Price,
    pub quantity_base: Quantity,
}

impl From<Level> for Quote {
    fn from(level: Level) -> Self {
        Self { price: level.price, quantity_base: level.quantity }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Quotes {
    pub best_bid: Option<Quote>,
    pub best_ask: Option<Quote>,
    pub mid: Option<Decimal>,
    pub spread: Option<Price>,
    pub spread_bps: Option<f64>,
    pub microprice: Option<Decimal>,
    /// (bid − ask)/(bid + ask) of the best sizes.
    pub imbalance_l1: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unavailable>,
    /// Of mid and spread.
    pub standing: Standing,
    pub microprice_standing: Standing,
    pub imbalance_standing: Standing,
    pub note: &'static str,
}

/// With one empty side the other is still reported; a crossed or locked book has no figures.
pub fn quotes(depth: &Depth) -> Result<Quotes, Unavailable> {
    let touch = Touch::of(depth);
    if let Err(invalid @ (Unavailable::Crossed { .. } | Unavailable::BadPrice)) = touch {
        return Err(invalid);
    }
    let known = touch.as_ref().ok();
    Ok(Quotes {
        best_bid: depth.bids.best().map(Quote::from),
        best_ask: depth.asks.best().map(Quote::from),
        mid: known.map(Touch::mid),
        spread: known.map(Touch::spread),
        spread_bps: known.and_then(Touch::spread_bps).and_then(rounded_bps),
        microprice: known.and_then(Touch::microprice).map(derived_price),
        imbalance_l1: known.and_then(Touch::imbalance),
        reason: touch.err(),
        standing: Standing::Exact,
        microprice_standing: Standing::Sound,
        imbalance_standing: Standing::Sound,
        note: "best-level sizes change many times a second; imbalance is short-lived",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tribune_binance::testing::{books, depth};

    #[test]
    fn matches_hand_computation() {
        let book = depth(&[("100", "3")], &[("101", "1")]);
        let quotes = quotes(&book).expect("quotes");
        // mid (100 + 101)/2 = 100.5; spread 1/100.5 · 10⁴ = 99.50248…;
        // microprice (101·3 + 100·1)/4 = 403/4 = 100.75; imbalance (3 − 1)/4 = 0.5.
        assert_eq!(quotes.mid, Some(Decimal::new(1005, 1)));
        assert_eq!(quotes.spread_bps, Some(99.5025));
        assert_eq!(quotes.microprice, Some(Decimal::new(10075, 2)));
        assert_eq!(quotes.imbalance_l1, Some(0.5));
        let json = serde_json::to_value(&quotes).expect("json");
        assert_eq!(json["mid"], "100.5");
        assert_eq!(json["best_bid"]["quantity_base"], "3");
        assert_eq!(json["spread_bps"], 99.5025);
        assert_eq!(json["standing"], "exact");
        assert!(json.get("reason").is_none());
    }

    #[test]
    fn smallest_prices_keep_half_ticks() {
        let book = depth(&[("0.00000001", "5")], &[("0.00000002", "5")]);
        assert_eq!(Touch::of(&book).map(|touch| touch.mid().to_string()), Ok("0.000000015".to_owned()));
    }

    #[test]
    fn empty_side_is_null_crossed_book_is_an_error() {
        let one_sided = quotes(&depth(&[("100", "3")], &[])).expect("quotes");
        assert_eq!(one_sided.reason, Some(Unavailable::NoAsks));
        assert!(one_sided.best_bid.is_some() && one_sided.mid.is_none() && one_sided.spread_bps.is_none());
        for ask in ["100", "99"] {
            let crossed = quotes(&depth(&[("100", "3")], &[(ask, "1")]));
            assert!(matches!(crossed, Err(Unavailable::Crossed { .. })));
        }
        let free = quotes(&depth(&[("0", "3")], &[("1", "1")]));
        assert_eq!(free, Err(Unavailable::BadPrice));
    }

    proptest! {
        #[test]
        fn microprice_lies_between_the_quotes(book in books()) {
            let quotes = quotes(&book).expect("quotes");
            let micro = quotes.microprice.expect("microprice");
            prop_assert!(quotes.best_bid.expect("bid").price.decimal() <= micro);
            prop_assert!(micro <= quotes.best_ask.expect("ask").price.decimal());
            let imbalance = quotes.imbalance_l1.expect("imbalance");
            prop_assert!((-1.0..=1.0).contains(&imbalance));
        }

        #[test]
        fn hostile_inputs_never_panic(prices in any::<(i64, i64)>(), sizes in any::<(i128, i128)>()) {
            let level = |price, quantity| Level {
                price: Price::from_units(price), quantity: Quantity::from_units(quantity),
            };
            let book = Depth {
                bids: [level(prices.0, sizes.0)].into_iter().collect(),
                asks: [level(prices.1, sizes.1)].into_iter().collect(),
            };
            let _ = quotes(&book);
        }
    }
}
