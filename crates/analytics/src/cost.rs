//! The cost of trading now: walks the levels of the book.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{Standing, Unavailable, bps, derived_price, quotient, rounded_bps};
use super::quotes::Touch;
use tribune_binance::{Depth, Level, Notional, Order, PLACES, Price, Quantity, Side};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Buy,
    Sell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Quote(Notional),
    Base(Quantity),
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cost {
    pub side: Action,
    /// Whether the known levels suffice. If not, and `complete` is false, there may be more: it is not known.
    pub filled: bool,
    /// What would be traded, rounded to eight places; at least this much where `complete` is false.
    pub filled_base: Decimal,
    pub filled_quote: Notional,
    /// Unfilled part of a size in the base asset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub unfilled_base: Option<Quantity>,
    /// Unfilled part of a size in the quote asset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub unfilled_quote: Option<Notional>,
    /// Null where the other side of the book is empty.
    pub mid: Option<Decimal>,
    pub vwap: Decimal,
    pub worst_price: Price,
    /// (vwap − mid)/mid: above zero when buying, below when selling.
    pub slippage_bps: Option<f64>,
    /// The same as a cost: above zero is worse than the mid, for both sides.
    pub cost_bps: Option<f64>,
    /// The cost in money: how much worse than the same quantity at mid.
    pub cost_quote: Option<Decimal>,
    /// Why slippage and cost are null, or else why it is not filled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unavailable>,
    pub levels_used: usize,
    /// False if better levels than the ones used may be missing, or further ones that would fill it.
    pub complete: bool,
    #[schemars(skip)]
    pub fees_included: bool,
    pub standing: Standing,
    pub note: &'static str,
}

/// Walks the side that the trade would take from, best level first.
pub fn cost(depth: &Depth, side: Action, size: Size) -> Result<Cost, Unavailable> {
    let mid = match (Touch::of(depth), side) {
        (Ok(touch), _) => Ok(touch.mid()),
        // The side to take from exists, so the average price is known.
        (Err(reason @ Unavailable::NoBids), Action::Buy) if depth.asks.best().is_some() => Err(reason),
        (Err(reason @ Unavailable::NoAsks), Action::Sell) => Err(reason),
        (Err(reason), _) => return Err(reason),
    };
    let asked = match size {
        Size::Quote(money) => money.units(),
        Size::Base(quantity) => quantity.units(),
    };
    if asked <= 0 {
        return Err(Unavailable::NothingAsked);
    }
    let (walk, complete) = match side {
        Action::Buy => Walk::over(&depth.asks, size)?,
        Action::Sell => Walk::over(&depth.bids, size)?,
    };
    walk.result(mid, side, complete)
}

struct Walk {
    left: Size,
    /// From whole levels, or from a part in the base asset: exact.
    base: Quantity,
    /// Spent on a part of the last level, whose quantity is a rounded quotient.
    partial_quote: Notional,
    quote: Notional,
    worst: Price,
    levels: usize,
}

impl Walk {
    /// The walk, and whether all levels that it needs are known.
    fn over<O: Order>(side: &Side<O>, size: Size) -> Result<(Self, bool), Unavailable> {
        let mut walk = Self {
            left: size,
            base: Quantity::ZERO,
            partial_quote: Notional::ZERO,
            quote: Notional::ZERO,
            worst: Price::default(),
            levels: 0,
        };
        for level in side.iter().take_while(|level| level.price.units() > 0) {
            if walk.is_filled() {
                break;
            }
            walk.take(level).ok_or(Unavailable::TooLarge)?;
        }
        let complete = side.reach.is_none_or(|reach| walk.is_filled() && O::better(walk.worst, reach).is_ge());
        Ok((walk, complete))
    }

    fn is_filled(&self) -> bool {
        matches!(self.left, Size::Quote(Notional::ZERO) | Size::Base(Quantity::ZERO))
    }

    fn take(&mut self, level: Level) -> Option<()> {
        match self.left {
            Size::Base(left) => {
                let taken = left.min(level.quantity);
                self.left = Size::Base(left.checked_sub(taken)?);
                self.base = self.base.checked_add(taken)?;
                self.quote = self.quote.checked_add(level.price.times(taken)?)?;
            }
            Size::Quote(left) => {
                let there = level.price.times(level.quantity)?;
                if there <= left {
                    self.base = self.base.checked_add(level.quantity)?;
                } else {
                    self.partial_quote = left;
                }
                let taken = left.min(there);
                self.left = Size::Quote(left.checked_sub(taken)?);
                self.quote = self.quote.checked_add(taken)?;
            }
        }
        self.worst = level.price;
        self.levels += 1;
        Some(())
    }

    fn result(self, mid: Result<Decimal, Unavailable>, side: Action, complete: bool) -> Result<Cost, Unavailable> {
        let (base, vwap) = self.average().ok_or(Unavailable::TooLarge)?;
        let (mid, no_mid) = (mid.as_ref().ok().copied(), mid.err());
        let above_mid = mid.map(|mid| vwap - mid);
        let worse = above_mid.map(|above| match side {
            Action::Buy => above,
            Action::Sell => -above,
        });
        let of_mid = |part: Option<Decimal>| bps(part?, mid?);
        let filled = self.is_filled();
        let unfilled =
            (!filled).then_some(if complete { Unavailable::TooSmallBook } else { Unavailable::BeyondKnownLevels });
        let (unfilled_base, unfilled_quote) = match self.left {
            Size::Base(left) if !filled => (Some(left), None),
            Size::Quote(left) if !filled => (None, Some(left)),
            _ => (None, None),
        };
        Ok(Cost {
            side,
            filled,
            filled_base: base.round_dp(PLACES).normalize(),
            filled_quote: self.quote,
            unfilled_base,
            unfilled_quote,
            mid,
            reason: no_mid.or(unfilled),
            vwap: derived_price(vwap),
            worst_price: self.worst,
            slippage_bps: of_mid(above_mid).and_then(rounded_bps),
            cost_bps: of_mid(worse).and_then(rounded_bps),
            cost_quote: worse.and_then(|worse| Some(worse.checked_mul(base)?.round_dp(PLACES).normalize())),
            levels_used: self.levels,
            complete,
            fees_included: false,
            standing: Standing::Sound,
            note: match (filled, complete) {
                (true, true) => {
                    "slippage is vwap against mid, without fees, hidden orders and changes of the book meanwhile"
                }
                (true, false) => {
                    "the book is not known this far: levels may be missing, the true cost may be lower; no fees"
                }
                (false, true) => "the whole book does not fill it: figures are of what is there; no fees",
                (false, false) => {
                    "the book is not known this far: at least this much is there, and whether the rest would be \
                     filled is not known; the cost is of the known part, and of all of it would be higher; no fees"
                }
            },
        })
    }

    /// Quantity and average price. With P the worst price the average is P·quote/(P·base + partial quote): both operands are
    /// exact, so that it is rounded once.
    fn average(&self) -> Option<(Decimal, Decimal)> {
        let worst = self.worst.decimal();
        let all_at_worst = self.worst.times(self.base)?.checked_add(self.partial_quote)?;
        let vwap = quotient(self.quote.units(), all_at_worst.units())?.checked_mul(worst)?;
        let partial_base = self.partial_quote.decimal().checked_div(worst)?;
        Some((self.base.decimal().checked_add(partial_base)?, vwap))
    }
}

/// Sizes that a cost estimate has by default, each ten times the one before.
const SIZES: u32 = 4;
/// The largest of them is about this part of a day's turnover, which few orders reach.
const PART_OF_DAY: i128 = 1_000;
/// Dollar-like assets, whose sizes do not depend on the turnover.
const USUAL_MONEY: &[&str] = &["USDT", "USDC", "FDUSD", "TUSD", "USDP", "BUSD", "DAI", "USD1", "USD", "EUR", "EURI"];

/// Sizes in the quote asset, by the day's turnover: a thousand units are little of one asset and a fortune of another.
pub fn sizes(quote: &str, day: Option<Notional>) -> Vec<Notional> {
    let part = day.filter(|_| !USUAL_MONEY.contains(&quote)).map(|day| day.units() / PART_OF_DAY);
    // The powers of ten of one unit of money, and of the largest size: a million if the turnover is unknown.
    let one = 2 * PLACES;
    let top = part.filter(|part| *part > 0).map_or(one + 6, i128::ilog10).clamp(one - 3, one + 12);
    (0..SIZES).rev().map(|down| Notional::from_units(10i128.pow(top - down))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tribune_binance::testing::{books, depth, known_to, money, price, quantity};

    fn book() -> Depth {
        depth(&[("99", "1"), ("98", "2")], &[("101", "1"), ("102", "2")])
    }

    #[test]
    fn buying_a_quantity_matches_hand_computation() {
        let cost = cost(&book(), Action::Buy, Size::Base(quantity("2"))).expect("cost");
        // 1·101 + 1·102 = 203 for 2: vwap 101.5; mid 100; (101.5 − 100)/100 = 150 bps; 2·1.5 = 3 in money.
        assert_eq!(cost.vwap, Decimal::new(1015, 1));
        assert_eq!((cost.slippage_bps, cost.cost_bps), (Some(150.0), Some(150.0)));
        assert_eq!(cost.cost_quote, Some(Decimal::from(3)));
        assert_eq!(cost.filled_quote, money("203"));
        assert!(cost.filled && cost.complete && cost.levels_used == 2 && !cost.fees_included);
    }

    #[test]
    fn selling_a_notional_matches_hand_computation() {
        let cost = cost(&book(), Action::Sell, Size::Quote(money("197"))).expect("cost");
        // 99 of the first level (1), the other 98 of the second (1): 197/2 = 98.5; (98.5 − 100)/100 = −150 bps.
        assert_eq!(cost.vwap, Decimal::new(985, 1));
        assert_eq!((cost.slippage_bps, cost.cost_bps), (Some(-150.0), Some(150.0)));
        assert_eq!((cost.filled_base, cost.worst_price), (Decimal::from(2), price("98")));
    }

    #[test]
    fn unfillable_size_is_reported() {
        let cost = cost(&book(), Action::Buy, Size::Quote(money("1000"))).expect("cost");
        // All there is: 101 + 204 = 305 for 3.
        assert!(!cost.filled);
        assert_eq!((cost.filled_quote, cost.unfilled_quote), (money("305"), Some(money("695"))));
        assert_eq!(cost.levels_used, 2);
        assert!(cost.complete, "all of the book is known");
        let json = serde_json::to_value(&cost).expect("json");
        assert_eq!(json["unfilled_quote"], "695");
        assert_eq!(json["reason"], "the whole book holds less than the size asked for");
        assert!(json.get("unfilled_base").is_none());
    }

    #[test]
    fn unknown_levels_make_it_incomplete() {
        let partly = known_to(book(), None, Some("101"));
        let of = |size| cost(&partly, Action::Buy, Size::Base(quantity(size))).expect("cost").complete;
        assert!(of("1") && !of("1.00000001"));
    }

    #[test]
    fn fill_beyond_known_levels_is_unknown() {
        // All levels that came are within the reach, and there may be more beyond it.
        let cut = known_to(book(), Some("98"), Some("102"));
        for (side, held) in [(Action::Buy, "305"), (Action::Sell, "295")] {
            let of = |size| cost(&cut, side, Size::Quote(money(size))).expect("cost");
            assert!(of(held).filled && of(held).complete && of(held).reason.is_none());
            let beyond = of("305.00000001");
            assert!(!beyond.filled && !beyond.complete);
            // 101 + 2·102 = 305 of the asks; 99 + 2·98 = 295 of the bids.
            assert_eq!(beyond.filled_quote, money(held));
            assert_eq!(beyond.reason, Some(Unavailable::BeyondKnownLevels));
            assert!(beyond.note.contains("at least"), "{}", beyond.note);
        }
        // Of the other side all is known, which says nothing of this one.
        let one = known_to(cut, Some("98"), None);
        assert!(cost(&one, Action::Buy, Size::Quote(money("400"))).expect("cost").complete);
        assert!(!cost(&one, Action::Sell, Size::Quote(money("400"))).expect("cost").complete);
    }

    #[test]
    fn nothing_is_invented() {
        let nothing = cost(&book(), Action::Buy, Size::Quote(Notional::ZERO));
        assert_eq!(nothing, Err(Unavailable::NothingAsked));
        let no_asks = cost(&depth(&[("1", "1")], &[]), Action::Buy, Size::Base(quantity("1")));
        assert_eq!(no_asks, Err(Unavailable::NoAsks));
        // Who sells needs no asks: only what it costs against mid is not known.
        let sold = cost(&depth(&[("1", "1")], &[]), Action::Sell, Size::Base(quantity("1"))).expect("cost");
        assert_eq!((sold.vwap, sold.mid, sold.slippage_bps), (Decimal::ONE, None, None));
        assert_eq!(sold.reason, Some(Unavailable::NoAsks));
        let bought = cost(&depth(&[], &[("2", "1")]), Action::Buy, Size::Base(quantity("1"))).expect("cost");
        assert_eq!((bought.vwap, bought.reason), (Decimal::TWO, Some(Unavailable::NoBids)));
        let empty = cost(&depth(&[], &[]), Action::Sell, Size::Base(quantity("1")));
        assert_eq!(empty, Err(Unavailable::NoBids));
    }

    proptest! {
        #[test]
        fn cost_grows_with_size(book in books(), sizes in (1..i64::MAX, 1..i64::MAX), buy in any::<bool>()) {
            let side = if buy { Action::Buy } else { Action::Sell };
            let (small, large) = (i128::from(sizes.0.min(sizes.1)), i128::from(sizes.0.max(sizes.1)));
            let in_base = |units| cost(&book, side, Size::Base(Quantity::from_units(units))).expect("cost");
            let in_quote = |units| cost(&book, side, Size::Quote(Notional::from_units(units))).expect("cost");
            for (small, large) in [(in_base(small), in_base(large)), (in_quote(small), in_quote(large))] {
                prop_assert!(small.cost_bps <= large.cost_bps && small.levels_used <= large.levels_used);
                prop_assert!(small.filled_quote <= large.filled_quote && small.cost_quote <= large.cost_quote);
                prop_assert!(small.cost_bps >= Some(0.0));
            }
        }
    }

    #[test]
    fn sizes_follow_the_day() {
        let of = |day: Option<&str>| -> Vec<String> {
            sizes("BTC", day.map(money)).iter().map(ToString::to_string).collect()
        };
        assert_eq!(of(Some("1500000000")), ["1000", "10000", "100000", "1000000"]);
        assert_eq!(of(None), ["1000", "10000", "100000", "1000000"]);
        // 1,200 of a dear asset a day: its thousandth is 1.2.
        assert_eq!(of(Some("1200")), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(of(Some("0.00000001")), ["0.000001", "0.00001", "0.0001", "0.001"]);
        assert_eq!(of(Some("0")), of(None));
        assert_eq!(sizes("USDT", Some(money("1200"))), sizes("USDT", None), "of dollars always the same");
        assert_eq!(
            sizes("BTC", Some(Notional::from_units(i128::MAX))).last().map(ToString::to_string).as_deref(),
            Some("1000000000000")
        );
    }
}
