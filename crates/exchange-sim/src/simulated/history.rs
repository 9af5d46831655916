//! Candles from before the simulation. They have the volume and the volatility of the simulated flow, and end at the
//! price at which the flow begins, so that charts show no seam.

use super::catalogue::Listing;
use super::flow::Activity;
use crate::interval::{MINUTE, Millis};
use crate::market::candles::Candle;
use crate::number::Price;

/// How far high and low lie beyond open and close, in units of the minute's noise: fitted to the simulated flow.
const WICK: f64 = 1.4;

/// Minutes that traded up to `until`, oldest first, and the id of the next trade. The last one may be partial.
pub fn generate(
    listing: &Listing,
    activity: &Activity,
    seed: u64,
    until: Millis,
    minutes: usize,
) -> (Vec<Candle>, u64) {
    let mut history =
        History { listing, activity, random: fastrand::Rng::with_seed(seed), trend: listing.price as f64 };
    let mut candles = Vec::new();
    let mut close = listing.price;
    let mut end = until;
    // Backwards in time: each minute closes where the one after it opened.
    for _ in 0..minutes {
        let open_time = (end - 1) - (end - 1).rem_euclid(MINUTE);
        let share = (end - open_time) as f64 / MINUTE as f64;
        end = open_time;
        if let Some(candle) = history.minute(open_time, close, share) {
            close = candle.open;
            candles.push(candle);
        }
    }
    candles.reverse();
    let next_trade = number_trades(&mut candles);
    (candles, next_trade)
}

struct History<'a> {
    listing: &'a Listing,
    activity: &'a Activity,
    random: fastrand::Rng,
    /// The price without the noise of single minutes.
    trend: f64,
}

impl History<'_> {
    /// The candle of a minute, or of its first `share`, that closes at `close`; `None` if nothing traded.
    fn minute(&mut self, open_time: Millis, close: Price, share: f64) -> Option<Candle> {
        let Activity { orders_per_minute, order_steps, trend, noise, fills_per_order } = *self.activity;
        self.trend *= 1.0 + trend * share.sqrt() * normal(&mut self.random);
        let orders = poisson(&mut self.random, orders_per_minute * share);
        if orders == 0 {
            return None;
        }
        let [offset, above, below] = [(); 3].map(|()| noise * normal(&mut self.random));
        let open = self.on_tick(self.trend * (1.0 + offset));
        let (top, bottom) = (open.max(close), open.min(close));
        let high = self.on_tick(top as f64 * (1.0 + WICK * above.abs())).max(top);
        let low = self.on_tick(bottom as f64 / (1.0 + WICK * below.abs())).min(bottom);
        let step = self.listing.symbol.step;
        let trades = ((orders as f64 * fills_per_order) as u64).max(orders);
        let steps = (order_steps * exponential_sum(&mut self.random, orders)) as i128;
        let steps = steps.max(i128::from(trades));
        // Each order buys or sells; orders differ in size, which doubles the variance of the share.
        let bought = 0.5 + 0.5 * (2.0 / orders as f64).sqrt() * normal(&mut self.random);
        let bought_steps = (steps as f64 * bought.clamp(0.0, 1.0)) as i128;
        // An average price on a tick keeps the money exact.
        let average = (low + (high - low) / 2) / self.listing.symbol.tick * self.listing.symbol.tick;
        let average = i128::from(average.clamp(low, high));
        Some(Candle {
            open_time,
            open,
            high,
            low,
            close,
            volume: steps * step,
            quote_volume: average * steps * step,
            trades,
            buy_volume: bought_steps * step,
            buy_quote_volume: average * bought_steps * step,
            first_trade: 0,
            last_trade: 0,
        })
    }

    /// The tick above or below, at random in proportion: always the lower one would be a drift.
    fn on_tick(&mut self, price: f64) -> Price {
        let tick = self.listing.symbol.tick;
        let ticks = price / tick as f64 + self.random.f64();
        (ticks as Price).max(1) * tick
    }
}

fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

fn poisson(random: &mut fastrand::Rng, mean: f64) -> u64 {
    if mean > 30.0 {
        return (mean + mean.sqrt() * normal(random)).round().max(0.0) as u64;
    }
    let limit = (-mean).exp();
    let mut product = random.f64();
    let mut count = 0;
    while product > limit {
        product *= random.f64();
        count += 1;
    }
    count
}

/// The sum of `count` exponential variables of mean one.
fn exponential_sum(random: &mut fastrand::Rng, count: u64) -> f64 {
    if count > 30 {
        let count = count as f64;
        return (count + count.sqrt() * normal(random)).max(0.0);
    }
    (0..count).map(|_| -(1.0 - random.f64()).ln()).sum()
}

fn number_trades(candles: &mut [Candle]) -> u64 {
    let mut next = 1;
    for candle in candles {
        candle.first_trade = next;
        candle.last_trade = next + candle.trades - 1;
        next = candle.last_trade + 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::catalogue;

    fn history(listing: &Listing, seed: u64, until: Millis, minutes: usize) -> (Vec<Candle>, u64) {
        generate(listing, &Activity::new(listing, 20.0), seed, until, minutes)
    }

    #[test]
    fn history_is_plausible_and_ends_at_the_price() {
        for listing in catalogue::well_known() {
            let (candles, next_trade) = history(&listing, 5, 1_700_000_012_345, 1_000);
            let last = candles.last().expect("candles");
            assert_eq!(last.close, listing.price, "{}", listing.symbol.name);
            assert_eq!(next_trade, last.last_trade + 1);
            for (candle, next) in candles.iter().zip(&candles[1..]) {
                assert_eq!(candle.close, next.open);
                assert!(candle.low <= candle.open.min(candle.close) && candle.high >= candle.open.max(candle.close));
                assert!(candle.low > 0 && candle.volume >= candle.buy_volume && candle.buy_volume > 0);
                assert!(candle.low as i128 * candle.volume <= candle.quote_volume);
                assert!(candle.quote_volume <= candle.high as i128 * candle.volume);
            }
        }
    }

    #[test]
    fn no_symbol_drifts_far_in_a_day() {
        for listing in catalogue::well_known() {
            let (candles, _) = history(&listing, 5, 1_700_000_000_000, 1_440);
            let ratio = candles[0].open as f64 / listing.price as f64;
            assert!((0.8..1.25).contains(&ratio), "{} {ratio}", listing.symbol.name);
        }
    }

    #[test]
    fn same_seed_gives_same_history() {
        let listing = &catalogue::well_known()[0];
        let of_seed = |seed| history(listing, seed, 1_700_000_000_000, 50);
        assert_eq!(of_seed(5), of_seed(5));
        assert_ne!(of_seed(5), of_seed(6));
    }
}
