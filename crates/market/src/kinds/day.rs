//! The headline of a market: its price and its last day.

use rust_decimal::prelude::ToPrimitive as _;
use tribune_page::parts::signed;
use tribune_page::text::{age, padded, sum};

use super::book::Bests;
use super::prelude::*;

/// Places of percentages on a page.
pub(crate) const RATIO_PLACES: u32 = 3;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// What a headline says of the last day.
pub(crate) struct DayFigures {
    pub(crate) last: Option<Price>,
    pub(crate) open: Option<Price>,
    pub(crate) high: Option<Price>,
    pub(crate) low: Option<Price>,
    pub(crate) change_pct: Option<Decimal>,
    /// `None` if the answer says nothing of it.
    pub(crate) volume: Option<Quantity>,
    pub(crate) turnover: Option<Notional>,
    pub(crate) window: Option<(Time, Time)>,
    /// Why figures are not known, where that is not because nothing was traded.
    pub(crate) unknown: Option<String>,
}

impl DayFigures {
    pub(crate) fn headline(&self, bests: Option<&Bests>, page: &Page<'_>) -> Headline {
        let places = self.places(bests);
        let price = |price: Price| page.money(padded(&price.to_string(), places));
        let window = self.window();
        let unknown = self.unknown.as_deref().unwrap_or("nothing was traded in that time");
        let of_day = |label: &str, value: Option<Amount>| figure(format!("{window} {label}"), value, unknown);
        let mut figures = vec![of_day("high", self.high.map(price)), of_day("low", self.low.map(price))];
        if let Some(volume) = self.volume {
            figures.push(of_day("volume", Some(page.size(sum(&volume.to_string())))));
        }
        let turnover = self.turnover.map(|worth| page.money(sum(&worth.to_string())));
        figures.push(of_day("turnover", turnover));
        let of_book = bests.map(|bests| bests.figures(page.base(), page.quote(), places));
        figures.extend(of_book.into_iter().flatten());
        let none = match self.unknown {
            Some(_) => "unknown",
            None => "not traded",
        };
        let last = self.last.map_or_else(|| Amount::plain(none), price);
        let mut headline = page.headline("Last price", last, figures);
        headline.change = self.change_pct.map(|change| {
            let shown = change.round_dp(RATIO_PLACES).normalize();
            let amount = Amount::new(signed(&shown.to_string()), format!("% in {window}"));
            (amount, tone_of(shown.to_f64()))
        });
        headline
    }

    /// `24 h`, unless figures are of less.
    fn window(&self) -> String {
        let span = self.window.map(|(start, end)| end.millis().abs_diff(start.millis()));
        match span {
            Some(millis) if millis.abs_diff(DAY_MS) > MINUTE_MS => age(millis),
            _ => "24 h".to_owned(),
        }
    }

    /// A price has as many places as the finest of them: it does not jump when a zero ends it.
    fn places(&self, bests: Option<&Bests>) -> usize {
        let prices = [self.last, self.open, self.high, self.low].into_iter().flatten();
        let own = places_of(prices);
        bests.map_or(own, |bests| own.max(bests.places()))
    }
}
