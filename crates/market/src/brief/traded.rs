//! What is said of the prices at which was traded.

use super::{AtHand, Told, of_day, short};
use crate::model::Symbol;
use crate::number::Price;

impl AtHand<'_> {
    /// Where prices were, and where volume was on average.
    pub(super) fn traded_range(&self) -> Option<Told> {
        let day = self.day.as_ref()?;
        let average = day.quote_volume.decimal().checked_div(day.volume.decimal())?;
        let Symbol { name, base, quote, .. } = self.symbol;
        Some(Told {
            text: format!(
                "{name}: in 24 hours {} {base} traded from {} to {} {quote}, on average at {}. Fetch it for the profile.",
                short(day.volume.decimal()),
                day.low,
                day.high,
                average.round_dp(places(self.symbol.tick_size, &[day.last, day.open, day.high, day.low])),
            ),
            as_of: of_day(day),
        })
    }

    pub(super) fn range(&self) -> Option<Told> {
        let day = self.day.as_ref()?;
        Some(Told {
            text: format!(
                "{}: in 24 hours from {} to {}, last {} {}. Fetch it for the prices between with little volume.",
                self.symbol.name, day.low, day.high, day.last, self.symbol.quote
            ),
            as_of: of_day(day),
        })
    }
}

/// Decimal places of a market's prices: of their step, or of the finest one seen. One price alone has too few where it
/// ends in zeros.
fn places(step: Option<Price>, seen: &[Price]) -> u32 {
    let scale = |price: Price| price.decimal().scale();
    let finest = || seen.iter().copied().map(scale).max();
    step.map(scale).or_else(finest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_the_places_of_their_step() {
        let price = |text: &str| Price::parse(text).expect("a price");
        let seen = [price("0.00001000"), price("0.00000991")];
        assert_eq!(places(Some(price("0.00000001")), &seen[..1]), 8);
        assert_eq!(places(None, &seen), 8);
        assert_eq!(places(Some(price("0.10")), &seen), 1);
        assert_eq!(places(Some(price("1.00")), &[]), 0);
        assert_eq!(places(None, &[]), 0);
    }
}
