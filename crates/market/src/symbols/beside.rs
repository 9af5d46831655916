//! What words mean by what stands beside them.

use super::id::Kind;
use super::interval::{self, Length};
use super::parse::{Meaning, Part};
use super::text::Word;
use super::words::Sense;
use crate::model::Interval;

/// What may follow "is XMR trading" without asking for a price.
const AFTER_TRADING: &[&str] = &[
    "again", "anymore", "halted", "live", "now", "or", "right", "still", "today", "yet",
];

/// Said of an amount, these ask what it costs to trade it.
const DEALING: &[&str] = &["buy", "buying", "sell", "selling", "trade"];

pub(super) fn settle(words: &[Word], parts: &mut [Part<'_>]) {
    let neighbours = Neighbours { words };
    for at in 0..parts.len() {
        neighbours.length_of_candles(parts, at);
    }
    neighbours.status(parts);
    if neighbours.names_amount(parts) {
        neighbours.ask_for_cost(parts);
    }
}

struct Neighbours<'w> {
    words: &'w [Word],
}

impl Neighbours<'_> {
    fn first_word(&self, part: &Part<'_>) -> &str {
        self.words.get(part.start).map_or("", |word| word.folded.as_str())
    }

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
            Meaning::Sense(Sense::Day) if leads && self.first_word(&parts[at + 1]).starts_with("candle") => {
                Meaning::Interval(Interval::D1)
            }
            Meaning::Sense(Sense::Market) if parts[at].words == 1 => {
                match interval::of_one(self.words, parts[at].start) {
                    // "Ninety minute candles" are not those of one.
                    Some(_) if leads && before.is_some_and(is_counted) => Meaning::NoInterval,
                    Some(Length::Interval(interval)) => Meaning::Interval(interval),
                    Some(Length::Missing) => Meaning::NoInterval,
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
        let asked = matches!(self.first_word(is), "is" | "are") && matches!(asset.meaning, Meaning::Mention(_));
        let alone = after
            .first()
            .is_none_or(|part| AFTER_TRADING.contains(&self.first_word(part)));
        if asked && alone && trading.words == 1 && self.first_word(trading) == "trading" {
            trading.meaning = Meaning::Sense(Sense::Wants(Kind::ExchangeInfo));
        }
    }

    /// "500,000 dollars of", "$2 million worth of".
    fn names_amount(&self, parts: &[Part<'_>]) -> bool {
        let is_of = |part: &Part<'_>| part.words == 1 && self.first_word(part) == "of";
        let mut ofs = (0..parts.len()).filter(|at| is_of(&parts[*at]));
        ofs.any(|of| self.ends_in_amount(&parts[..of]))
    }

    fn ends_in_amount(&self, rest: &[Part<'_>]) -> bool {
        let rest = match rest.split_last() {
            Some((last, before)) if self.first_word(last) == "worth" => before,
            _ => rest,
        };
        let Some((last, before)) = rest.split_last() else {
            return false;
        };
        let numbered = |part: &Part<'_>| matches!(part.meaning, Meaning::Neutral);
        let counted = rest.iter().rev().take_while(|part| numbered(part));
        let tagged = counted
            .filter_map(|part| self.words.get(part.start))
            .any(|word| word.tagged);
        let in_money = matches!(&last.meaning, Meaning::Mention(mention) if mention.is_money());
        tagged || (in_money && before.last().is_some_and(numbered))
    }

    /// The price of an amount is what the book asks for it.
    fn ask_for_cost(&self, parts: &mut [Part<'_>]) {
        let cost = Meaning::Sense(Sense::Wants(Kind::OrderBookL2));
        for part in parts {
            let asked = match part.meaning {
                Meaning::Sense(Sense::Wants(Kind::Ticker)) => true,
                Meaning::Sense(Sense::Market) => DEALING.contains(&self.first_word(part)),
                _ => false,
            };
            if asked {
                part.meaning = cost.clone();
            }
        }
    }
}

/// Whether this may count what follows it.
fn is_counted(part: &Part<'_>) -> bool {
    matches!(part.meaning, Meaning::Neutral | Meaning::Unknown)
}
