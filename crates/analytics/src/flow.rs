//! Order flow: what buyers and sellers traded in a window.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{self, Standing, Unavailable, Window, derived_price};
use tribune_binance::{Aggressor, Millis, Notional, Price, Quantity, Trade};

/// The window of `orders_per_sec`.
pub const RATE_SECS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LargestTrade {
    pub price: Price,
    pub quantity_base: Quantity,
    pub notional_quote: Notional,
    pub aggressor: Aggressor,
    pub time_ms: Millis,
}

/// The number of single trades in this aggregate; `None` if its ids are impossible.
pub(crate) fn trade_count(trade: &Trade) -> Option<u64> {
    trade.last_id.checked_sub(trade.first_id)?.checked_add(1)
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TradeFlow {
    #[serde(flatten)]
    pub window: Window,
    pub window_secs: f64,
    /// Single trades, counted by their ids.
    pub trades: u64,
    pub buy_trades: u64,
    pub sell_trades: u64,
    /// What buyers took from asks.
    pub buy_volume_base: Quantity,
    /// What sellers gave to bids.
    pub sell_volume_base: Quantity,
    pub buy_quote_volume: Notional,
    pub sell_quote_volume: Notional,
    /// Σ bought − Σ sold.
    pub net_flow_base: Quantity,
    pub net_flow_quote: Notional,
    /// The running sum of bought − sold from the start of the window: where it ended, and how far it went.
    pub cvd_base: Quantity,
    #[schemars(skip)]
    pub cvd_high_base: Quantity,
    #[schemars(skip)]
    pub cvd_low_base: Quantity,
    /// (bought − sold)/(bought + sold), in the base asset.
    pub aggressor_imbalance: Option<f64>,
    pub vwap: Option<Decimal>,
    pub largest_trade: Option<LargestTrade>,
    /// Single trades in the ten seconds up to the window's end, divided by ten. They are counted by their ids, so that
    /// it is the same whether they came singly or in the exchange's aggregates.
    pub orders_per_sec: Option<f64>,
    /// Trades that are missing between those seen, by their ids.
    #[schemars(skip)]
    pub missing_trades: u64,
    /// Whether every trade of the window was seen.
    pub complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unavailable>,
    pub standing: Standing,
    pub note: &'static str,
}

/// Takes trades in order of time. Trades outside the window only reveal missing ids and count for the rate of the last ten
/// seconds. Assumes all trades since `seen_from`, unless their ids have gaps.
pub fn trade_flow<'a>(
    trades: impl IntoIterator<Item = &'a Trade>,
    window: Window,
    seen_from: Millis,
) -> Result<TradeFlow, Unavailable> {
    let rate = Window::last(RATE_SECS, window.end_ms);
    let mut flow = TradeFlow {
        window,
        window_secs: window.seconds(),
        standing: Standing::Exact,
        note: "buy and sell are who crossed the spread; every trade has both a buyer and a seller",
        ..TradeFlow::default()
    };
    let (mut recent, mut last) = (0u64, None);
    for trade in trades {
        // Ids that are missing where some of them may lie in the window.
        if let Some((time, id)) = last.replace((trade.time, trade.last_id))
            && trade.time > window.start_ms
            && time <= window.end_ms
        {
            let missing = trade.first_id.saturating_sub(id).saturating_sub(1);
            flow.missing_trades = flow.missing_trades.saturating_add(missing);
        }
        if rate.contains(trade.time) {
            recent = recent.saturating_add(trade_count(trade).ok_or(Unavailable::TooLarge)?);
        }
        if window.contains(trade.time) {
            flow.add(trade).ok_or(Unavailable::TooLarge)?;
        }
    }
    flow.orders_per_sec = all_seen(seen_from, rate.start_ms).then(|| recent as f64 / f64::from(RATE_SECS));
    flow.complete = flow.missing_trades == 0 && all_seen(seen_from, window.start_ms);
    flow.finish().ok_or(Unavailable::TooLarge)
}

impl TradeFlow {
    fn add(&mut self, trade: &Trade) -> Option<()> {
        let (count, quantity, money) = (trade_count(trade)?, trade.quantity, trade.price.times(trade.quantity)?);
        let (trades, base, quote) = match trade.aggressor {
            Aggressor::Buyer => (&mut self.buy_trades, &mut self.buy_volume_base, &mut self.buy_quote_volume),
            Aggressor::Seller => (&mut self.sell_trades, &mut self.sell_volume_base, &mut self.sell_quote_volume),
        };
        *trades = trades.checked_add(count)?;
        *base = base.checked_add(quantity)?;
        *quote = quote.checked_add(money)?;
        self.cvd_base = self.buy_volume_base.checked_sub(self.sell_volume_base)?;
        self.cvd_high_base = self.cvd_high_base.max(self.cvd_base);
        self.cvd_low_base = self.cvd_low_base.min(self.cvd_base);
        if self.largest_trade.is_none_or(|largest| largest.notional_quote < money) {
            self.largest_trade = Some(LargestTrade {
                price: trade.price,
                quantity_base: quantity,
                notional_quote: money,
                aggressor: trade.aggressor,
                time_ms: trade.time,
            });
        }
        Some(())
    }

    fn finish(mut self) -> Option<Self> {
        let base = self.buy_volume_base.checked_add(self.sell_volume_base)?;
        let quote = self.buy_quote_volume.checked_add(self.sell_quote_volume)?;
        self.trades = self.buy_trades.checked_add(self.sell_trades)?;
        self.net_flow_base = self.cvd_base;
        self.net_flow_quote = self.buy_quote_volume.checked_sub(self.sell_quote_volume)?;
        self.aggressor_imbalance = figure::imbalance(self.buy_volume_base.units(), self.sell_volume_base.units());
        self.vwap = vwap(quote, base);
        let too_short = self.orders_per_sec.is_none().then_some(Unavailable::TooShort { need_secs: RATE_SECS });
        self.reason = base.is_zero().then_some(Unavailable::NoTrades).or(too_short);
        Some(self)
    }
}

/// Whether the watch began at or before `start`.
const fn all_seen(seen_from: Millis, start: Millis) -> bool {
    seen_from <= start.saturating_add(1)
}

/// Σpq/Σq as a derived price; `None` without volume.
pub fn vwap(quote: Notional, base: Quantity) -> Option<Decimal> {
    quote.decimal().checked_div(base.decimal()).map(derived_price)
}

/// The share of `part` in `whole`; `None` if the whole is zero.
pub(super) fn share(part: Quantity, whole: Quantity) -> Option<f64> {
    figure::ratio(part.units(), whole.units())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Aggressor::{Buyer, Seller};
    use proptest::prelude::*;
    use tribune_binance::testing::{money, quantity, trade, trades};

    #[test]
    fn matches_hand_computation() {
        let trades = [
            trade(1, 0, "100", "50", Buyer), // before the window
            trade(2, 5_000, "100", "2", Buyer),
            trade(3, 15_000, "101", "4", Seller),
            trade(6, 30_000, "102", "1", Buyer), // 4 and 5 are missing
        ];
        let flow = trade_flow(&trades, Window::last(30, 30_000), 0).expect("flow");
        assert_eq!((flow.trades, flow.buy_trades, flow.sell_trades), (3, 2, 1));
        // Bought 2 + 1, sold 4: net −1. Running: 2, −2, −1.
        assert_eq!(flow.net_flow_base.to_string(), "-1");
        assert_eq!(flow.cvd_base, flow.net_flow_base);
        assert_eq!((flow.cvd_high_base.to_string(), flow.cvd_low_base.to_string()), ("2".into(), "-2".into()));
        // Money: bought 200 + 102 = 302, sold 404: −102. (3 − 4)/7 = −0.142857…
        assert_eq!(flow.net_flow_quote.to_string(), "-102");
        assert_eq!(flow.aggressor_imbalance, Some(-0.1429));
        // 706/7 = 100.857142857142…
        assert_eq!(flow.vwap.map(|vwap| vwap.to_string()).as_deref(), Some("100.8571428571"));
        assert_eq!(flow.largest_trade.map(|largest| largest.notional_quote), Some(money("404")));
        // One order after 20,000.
        assert_eq!(flow.orders_per_sec, Some(0.1));
        assert_eq!((flow.missing_trades, flow.complete), (2, false));
    }

    #[test]
    fn empty_window_has_no_average() {
        let flow = trade_flow(&[], Window::last(30, 30_000), 0).expect("flow");
        assert_eq!((flow.vwap, flow.aggressor_imbalance), (None, None));
        assert_eq!(flow.reason, Some(Unavailable::NoTrades));
        assert!(flow.complete && flow.trades == 0);
        assert!(!trade_flow(&[], Window::last(30, 30_000), 10).expect("flow").complete);
    }

    #[test]
    fn rate_covers_ten_seconds() {
        let trades: Vec<_> = (1..=20).map(|at| trade(at, at as i64 * 1_000, "1", "1", Buyer)).collect();
        let of = |seen_from| trade_flow(&trades, Window::last(2, 20_000), seen_from).expect("flow");
        assert_eq!((of(0).trades, of(0).orders_per_sec), (2, Some(1.0)));
        assert_eq!((of(15_000).complete, of(15_000).orders_per_sec), (true, None));
        assert_eq!(of(15_000).reason, Some(Unavailable::TooShort { need_secs: 10 }));
    }

    /// One order buys from three makers at 100 and one at 101: four trades, and two aggregates.
    #[test]
    fn rate_is_the_same_for_aggregates() {
        let singles = [
            trade(1, 15_000, "100", "1", Buyer),
            trade(2, 15_000, "100", "2", Buyer),
            trade(3, 15_000, "100", "3", Buyer),
            trade(4, 15_000, "101", "1", Buyer),
        ];
        let three = Trade { first_id: 1, ..trade(3, 15_000, "100", "6", Buyer) };
        for trades in [&singles[..], &[three, singles[3]]] {
            let flow = trade_flow(trades, Window::last(20, 20_000), 0).expect("flow");
            assert_eq!((flow.orders_per_sec, flow.trades), (Some(0.4), 4));
        }
    }

    #[test]
    fn gap_at_window_edge_counts() {
        let trades = [trade(1, 1_000, "1", "1", Buyer), trade(3, 9_000, "1", "1", Buyer)];
        let missing =
            |start_ms, end_ms| trade_flow(&trades, Window { start_ms, end_ms }, 0).expect("flow").missing_trades;
        assert_eq!(
            (missing(5_000, 9_000), missing(2_000, 3_000), missing(0, 500), missing(9_000, 9_500)),
            (1, 1, 0, 0)
        );
    }

    #[test]
    fn impossible_ids_are_refused() {
        let mut backwards = trade(5, 1, "1", "1", Buyer);
        backwards.last_id = 4;
        let mut endless = trade(0, 1, "1", "1", Buyer);
        endless.last_id = u64::MAX;
        for trade in [backwards, endless] {
            assert_eq!(trade_flow(&[trade], Window::last(1, 1), 0), Err(Unavailable::TooLarge));
        }
    }

    proptest! {
        #[test]
        fn windows_add_up(trades in trades(), cut in 0..5_000_000i64) {
            let end = i64::MAX;
            let whole = trade_flow(&trades, Window { start_ms: -1, end_ms: end }, -1).expect("flow");
            let first = trade_flow(&trades, Window { start_ms: -1, end_ms: cut }, -1).expect("flow");
            let second = trade_flow(&trades, Window { start_ms: cut, end_ms: end }, -1).expect("flow");
            prop_assert_eq!(whole.trades, first.trades + second.trades);
            prop_assert_eq!(Some(whole.cvd_base), first.cvd_base.checked_add(second.cvd_base));
            prop_assert!(whole.complete && whole.cvd_low_base <= whole.cvd_base && whole.cvd_base <= whole.cvd_high_base);
            prop_assert_eq!(whole.trades, trades.iter().filter_map(trade_count).sum::<u64>());
            prop_assert!(whole.buy_volume_base >= quantity("0"));
        }
    }
}
