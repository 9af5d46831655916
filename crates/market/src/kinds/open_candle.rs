//! The candle that is open now, as far as the streams tell: what a search for candles finds.

use super::klines::change;
use super::prelude::*;
use tribune_binance::candles::open_time;

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
    let candle = |opened: Millis, last_price: Price, seen: Option<Seen>| OpenCandle {
        interval: interval.as_str().to_owned(),
        open_time: Time::from_millis(opened),
        last_price,
        seen,
    };
    let of_tape = || {
        let tracked = market.feed.lookup(&symbol.name)?;
        let until = market.heard_until(&tracked);
        let opened = open_time(interval, until)?;
        let recent = tracked.tape.recent(opened);
        recent.complete_from.filter(|from| *from <= opened)?;
        let prices = || recent.trades().map(|trade| trade.price);
        let mut sizes = recent.trades().map(|trade| trade.quantity);
        let seen = Seen {
            open_price: prices().next()?,
            high_price: prices().max()?,
            low_price: prices().min()?,
            volume_base: sizes.try_fold(Quantity::ZERO, Quantity::checked_add)?,
        };
        let provenance = Provenance::new(market, Origin::Stream, Some(until), market.last_word(&tracked));
        Some((provenance, candle(opened, prices().last()?, Some(seen))))
    };
    let of_day = || {
        let day = market.feed.board.lookup(&symbol.name)?;
        let opened = open_time(interval, market.exchange_now())?;
        let provenance = Provenance::new(market, Origin::Stream, day.exchange_time, day.received);
        let is_of_it = provenance.as_of().as_millisecond() >= opened;
        is_of_it.then(|| (provenance, candle(opened, day.last, None)))
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
    fn what(&self, _about: &About) -> Option<String> {
        Some(format!("{} candles", self.interval))
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        self.snippet(about).into_iter().collect()
    }

    fn snippet(&self, about: &About) -> Option<String> {
        let (name, base, quote) = (about.name(), about.base(), about.quote());
        let (interval, began, last) = (&self.interval, self.began(), self.last_price);
        let Some(seen) = &self.seen else {
            return Some(format!(
                "{name}: the {interval} candle that is open began at {began}; its close so far is {last} {quote}. Fetch it for the candles."
            ));
        };
        let (open, high, low, volume) = (seen.open_price, seen.high_price, seen.low_price, seen.volume_base);
        Some(format!(
            "{name}, {interval} candle since {began}: open {open}, high {high}, low {low}, last {last} {quote}; volume {volume} {base}."
        ))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let mut headline = page.headline("Last price", page.money(self.last_price), Vec::new());
        if let Some(seen) = &self.seen {
            let unit = format!("% since {}", self.began());
            headline.change = change(seen.open_price, self.last_price, unit);
            headline.figures = vec![
                Figure::new("Highest", page.money(seen.high_price)),
                Figure::new("Lowest", page.money(seen.low_price)),
                Figure::new("Volume", page.size(seen.volume_base)),
            ];
        }
        Some(headline)
    }

    fn shown(&self) -> &'static str {
        "last_price high_price low_price volume_base"
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
