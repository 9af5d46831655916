//! What words mean by what stands beside them.

use super::id::{AnalyticsKind, Kind};
use super::interval::{self, Length};
use super::parse::{Meaning, Part};
use super::text::{Gap, Word};
use super::words::Sense;
use crate::model::Interval;

/// What may follow "is XMR trading" without asking for a price.
const AFTER_TRADING: &[&str] = &[
    "again", "anymore", "halted", "live", "now", "or", "right", "still", "today", "yet",
];

pub(super) fn settle(words: &[Word], parts: &mut [Part<'_>]) {
    let neighbours = Neighbours { words };
    for at in 0..parts.len() {
        neighbours.length_of_candles(parts, at);
    }
    neighbours.status(parts);
    neighbours.stream(parts);
    neighbours.most(parts);
}

struct Neighbours<'w> {
    words: &'w [Word],
}

impl Neighbours<'_> {
    /// "Day candles", "minute chart", "24h candles".
    fn length_of_candles(&self, parts: &mut [Part<'_>], at: usize) {
        let is_candles = |part: Option<&Part<'_>>| {
            part.is_some_and(|part| matches!(part.meaning, Meaning::Sense(Sense::Wants(Kind::Klines(_)))))
        };
        let before = at.checked_sub(1).map(|before| &parts[before]);
        let leads = is_candles(parts.get(at + 1));
        // "Candles day", "candles of btc day".
        let follows = match before.map(|part| &part.meaning) {
            Some(Meaning::Mention(_)) => parts.iter().any(|part| is_candles(Some(part))),
            _ => is_candles(before),
        };
        if !leads && !follows {
            return;
        }
        let meaning = match parts[at].meaning {
            // A chart of 24 hours may have candles of any length.
            Meaning::Sense(Sense::Day) if leads && parts[at + 1].first_word(self.words).starts_with("candle") => {
                Meaning::Interval(Interval::D1)
            }
            Meaning::Sense(Sense::Market | Sense::Unit(_)) if parts[at].words == 1 => {
                match interval::of_one(self.words, parts[at].start) {
                    // "Ninety minute candles" are not those of one.
                    Some(Length::Interval(one)) if leads && before.is_some_and(is_counted) => Meaning::NoInterval(one),
                    Some(Length::Interval(interval)) => Meaning::Interval(interval),
                    Some(Length::Missing(span)) => Meaning::NoInterval(span),
                    Some(Length::Span) | None => return,
                }
            }
            _ => return,
        };
        parts[at].meaning = meaning;
    }

    /// "Is XMR trading": whether it can be traded, and not at what price.
    fn status(&self, parts: &mut [Part<'_>]) {
        let [is, asset, trading, after @ ..] = parts else {
            return;
        };
        let asked = matches!(is.first_word(self.words), "is" | "are") && matches!(asset.meaning, Meaning::Mention(_));
        let alone = after
            .first()
            .is_none_or(|part| AFTER_TRADING.contains(&part.first_word(self.words)));
        if asked && alone && trading.words == 1 && trading.first_word(self.words) == "trading" {
            trading.meaning = Meaning::Sense(Sense::Wants(Kind::ExchangeInfo));
        }
    }

    /// "At which price was most bitcoin traded".
    fn most(&self, parts: &mut [Part<'_>]) {
        for at in 2..parts.len() {
            let most = parts[at - 2].first_word(self.words) == "most" && is_asset(&parts[at - 1]);
            if most
                && matches!(
                    parts[at].first_word(self.words),
                    "trade" | "traded" | "trading" | "volume"
                )
            {
                parts[at].meaning = Meaning::Sense(Sense::Wants(Kind::Analytics(AnalyticsKind::VolumeProfile)));
            }
        }
    }

    /// "btcusdt@trade", as the exchange names its streams.
    fn stream(&self, parts: &mut [Part<'_>]) {
        let trade = parts
            .iter_mut()
            .find(|part| part.gap == Gap::Stream && part.first_word(self.words) == "trade");
        if let Some(trade) = trade {
            trade.meaning = Meaning::Sense(Sense::Wants(Kind::Trades));
        }
    }
}

pub(super) fn is_asset(part: &Part<'_>) -> bool {
    matches!(&part.meaning, Meaning::Mention(mention) if !mention.is_money())
}

/// Whether this may count what follows it.
fn is_counted(part: &Part<'_>) -> bool {
    matches!(part.meaning, Meaning::Neutral | Meaning::Unknown)
}
