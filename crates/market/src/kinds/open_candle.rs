//! The candle that is open now, as far as the streams tell: what a search for candles finds.

use serde::{Deserialize, Serialize};
use tribune_page::{Amount, Figure, Headline};

use super::klines::change;
use super::{About, Answer, Figures, Provenance, Time};
use crate::id::Kind;
use crate::kinds::Page;
use crate::market::{Market, Origin};
use tribune_binance::candles::open_time;
use tribune_binance::model::{Interval, Symbol};
use tribune_binance::number::{Price, Quantity};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenCandle {
    interval: String,
    open_time: Time,
    last_price: Price,
    /// Absent where not every trade of it was seen.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Seen {
    open_price: Price,
    high_price: Price,
    low_price: Price,
    volume_base: Quantity,
}

/// Without asking the exchange: from the tape where it has every trade, else the last price of the day.
pub(super) fn at_hand(market: &Market, symbol: &Symbol, interval: Interval) -> Option<Answer> {
    let of_tape = || {
        let tracked = market.feed.lookup(&symbol.name)?;
        let until = market.heard_until(&tracked);
        let opened = open_time(interval, until)?;
        let recent = tracked.tape.recent(opened);
        if recent.complete_from.is_none_or(|from| from > opened) {
            return None;
        }
        let prices = || recent.trades().map(|trade| trade.price);
        let volume = recent
            .trades()
            .try_fold(Quantity::ZERO, |sum, trade| sum.checked_add(trade.quantity))?;
        let figures = OpenCandle {
            interval: interval.as_str().to_owned(),
            open_time: Time::from_millis(opened),
            last_price: prices().last()?,
            seen: Some(Seen {
                open_price: prices().next()?,
                high_price: prices().max()?,
                low_price: prices().min()?,
                volume_base: volume,
            }),
        };
        let provenance = Provenance::new(market, Origin::Stream, Some(until), market.last_word(&tracked));
        Some((provenance, figures))
    };
    let of_day = || {
        let day = market.feed.board.lookup(&symbol.name)?;
        let opened = open_time(interval, market.exchange_now())?;
        let figures = OpenCandle {
            interval: interval.as_str().to_owned(),
            open_time: Time::from_millis(opened),
            last_price: day.last,
            seen: None,
        };
        let provenance = Provenance::new(market, Origin::Stream, day.exchange_time, day.received);
        (provenance.as_of().as_millisecond() >= opened).then_some((provenance, figures))
    };
    let (provenance, figures) = of_tape().or_else(of_day)?;
    Answer::new(Kind::Klines(interval), symbol, provenance, figures).ok()
}

impl OpenCandle {
    /// When it began, to the second only where several begin in a minute.
    fn began(&self) -> String {
        let format = match self.interval.as_str() {
            "1s" => "%Y-%m-%d %H:%M:%SZ",
            _ => "%Y-%m-%d %H:%MZ",
        };
        self.open_time.0.strftime(format).to_string()
    }
}

impl Figures for OpenCandle {
    fn what(&self, _about: &About) -> String {
        format!("{} candles", self.interval)
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        self.snippet(about).into_iter().collect()
    }

    fn snippet(&self, about: &About) -> Option<String> {
        let (name, interval, began) = (about.name(), &self.interval, self.began());
        Some(match &self.seen {
            Some(seen) => format!(
                "{name}, {interval} candle since {began}: open {}, high {}, low {}, last {} {}; volume {} {}.",
                seen.open_price,
                seen.high_price,
                seen.low_price,
                self.last_price,
                about.quote(),
                seen.volume_base,
                about.base()
            ),
            None => format!(
                "{name}: the {interval} candle that is open began at {began}; its close so far is {} {}. Fetch it for the candles.",
                self.last_price,
                about.quote()
            ),
        })
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let price = |price: Price| Amount::new(price.to_string(), page.quote());
        let seen = self.seen.as_ref();
        let figures = seen.map_or_else(Vec::new, |seen| {
            vec![
                Figure::new("Highest", price(seen.high_price)),
                Figure::new("Lowest", price(seen.low_price)),
                Figure::new("Volume", Amount::new(seen.volume_base.to_string(), page.base())),
            ]
        });
        Some(Headline {
            change: seen.and_then(|seen| {
                let unit = format!("% since {}", self.began());
                change(seen.open_price, self.last_price, unit)
            }),
            figures,
            ..page.headline("Last price", price(self.last_price))
        })
    }

    fn shown(&self) -> Vec<&'static str> {
        vec!["last_price", "high_price", "low_price", "volume_base"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::price;

    #[test]
    fn one_second_candle_begins_at_a_second() {
        let began = |interval: Interval| {
            let candle = OpenCandle {
                interval: interval.as_str().to_owned(),
                open_time: Time::from_millis(1_794_834_427_000),
                last_price: price("1"),
                seen: None,
            };
            candle.began()
        };
        assert_eq!(began(Interval::S1), "2026-11-16 13:07:07Z");
        assert_eq!(began(Interval::M1), "2026-11-16 13:07Z");
    }
}
