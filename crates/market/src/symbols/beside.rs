//! What words mean by what stands beside them.

use super::id::{AnalyticsKind, Kind};
use super::interval::{self, Length};
use super::parse::{Meaning, Part};
use super::text::{Gap, Word};
use super::words::{self, Sense};
use crate::model::Interval;

/// What may follow "is XMR trading" without asking for a price.
const AFTER_TRADING: &[&str] = &[
    "again", "anymore", "halted", "live", "now", "or", "right", "still", "today", "yet",
];

/// Said of an amount, these ask what it costs to trade it.
const DEALING: &[&str] = &[
    "buy",
    "buying",
    "dump",
    "dumping",
    "exit",
    "liquidate",
    "offload",
    "purchase",
    "sell",
    "selling",
    "swap",
    "swapping",
    "trade",
    "trading",
    "unload",
    "unwind",
    "unwinding",
];

pub(super) fn settle(words: &[Word], parts: &mut [Part<'_>]) {
    let neighbours = Neighbours { words };
    let millions = neighbours.millions(parts);
    for at in 0..parts.len() {
        neighbours.length_of_candles(parts, at);
    }
    neighbours.status(parts);
    neighbours.stream(parts);
    neighbours.most(parts);
    if millions || neighbours.names_amount(parts) || neighbours.deals_in_amount(parts) {
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

    /// "Buy 1m doge", "5m usdt of eth": an amount in millions, and no length of candles.
    fn millions(&self, parts: &mut [Part<'_>]) -> bool {
        let wants = |wanted: fn(Kind) -> bool| {
            let wish =
                move |part: &Part<'_>| matches!(part.meaning, Meaning::Sense(Sense::Wants(kind)) if wanted(kind));
            parts.iter().any(wish)
        };
        if wants(|kind| matches!(kind, Kind::Klines(_))) {
            return false;
        }
        let costs = wants(|kind| matches!(kind, Kind::OrderBookL2 | Kind::Ticker));
        let deals = |part: &Part<'_>| DEALING.contains(&self.first_word(part));
        let dealing = parts.iter().any(deals);
        let is_amount = |at: usize| {
            let article = at > 0 && self.first_word(&parts[at - 1]) == "a";
            let before = at.checked_sub(1 + usize::from(article)).map(|before| &parts[before]);
            let behind = parts.get(at + 1);
            let dealt = before.is_some_and(deals);
            let of = |part: Option<&Part<'_>>| part.is_some_and(|part| self.first_word(part) == "of");
            let asset = behind.is_some_and(|part| matches!(part.meaning, Meaning::Mention(_)));
            let money = behind.is_some_and(|part| is_money(part) || self.begins_with_money(part));
            let traded = behind.is_some_and(|part| self.first_word(part) == "market");
            money
                || (dealt && of(behind))
                || ((dealt || of(before)) && asset)
                || (traded && (costs || dealing))
                || self.words[parts[at].start].tagged
        };
        let written = |at: &usize| {
            let part = &parts[*at];
            let timed = matches!(part.meaning, Meaning::Interval(_)) && part.words == 1;
            timed && self.first_word(part).ends_with('m')
        };
        let amounts: Vec<usize> = (0..parts.len()).filter(written).filter(|at| is_amount(*at)).collect();
        for at in &amounts {
            parts[*at].meaning = Meaning::Neutral;
        }
        !amounts.is_empty()
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

    /// "Sell 25 BTC", "a 300k usdt doge purchase", "$500 btc".
    fn deals_in_amount(&self, parts: &[Part<'_>]) -> bool {
        let dealing = |part: &Part<'_>| DEALING.contains(&self.first_word(part));
        let numbered = |part: &Part<'_>| matches!(part.meaning, Meaning::Neutral) && self.first_word(part) != "1";
        let deals = (0..parts.len()).filter(|at| dealing(&parts[*at]));
        let mut behind = deals.map(|at| &parts[at + 1..]);
        let trios = behind.any(|rest| {
            let amount = rest.iter().take_while(|part| numbered(part)).count();
            amount > 0 && rest.get(amount).is_some_and(is_asset)
        });
        let counted = |at: usize| {
            let (before, asset) = (&parts[..at], &parts[at]);
            let joined = self.begins_with_money(asset) && before.last().is_some_and(numbered);
            is_asset(asset) && (joined || self.ends_in_amount(before))
        };
        trios || (parts.iter().any(dealing) && (0..parts.len()).any(counted))
    }

    /// "Usdt doge" has become one market.
    fn begins_with_money(&self, part: &Part<'_>) -> bool {
        part.words > 1 && words::is_money(&self.first_word(part).to_uppercase())
    }

    /// "At which price was most bitcoin traded".
    fn most(&self, parts: &mut [Part<'_>]) {
        for at in 2..parts.len() {
            let most = self.first_word(&parts[at - 2]) == "most" && is_asset(&parts[at - 1]);
            if most && matches!(self.first_word(&parts[at]), "traded" | "trading" | "volume") {
                parts[at].meaning = Meaning::Sense(Sense::Wants(Kind::Analytics(AnalyticsKind::VolumeProfile)));
            }
        }
    }

    /// "btcusdt@trade", as the exchange names its streams.
    fn stream(&self, parts: &mut [Part<'_>]) {
        let trade = parts
            .iter_mut()
            .find(|part| part.gap == Gap::Stream && self.first_word(part) == "trade");
        if let Some(trade) = trade {
            trade.meaning = Meaning::Sense(Sense::Wants(Kind::Trades));
        }
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
        let in_money = is_money(last);
        tagged || (in_money && before.last().is_some_and(numbered))
    }

    /// The price of an amount is what the book asks for it.
    fn ask_for_cost(&self, parts: &mut [Part<'_>]) {
        let cost = Meaning::Sense(Sense::Wants(Kind::OrderBookL2));
        for part in parts {
            let asked = match part.meaning {
                Meaning::Sense(Sense::Wants(Kind::Ticker)) => true,
                Meaning::Sense(Sense::Deal) => DEALING.contains(&self.first_word(part)),
                _ => false,
            };
            if asked {
                part.meaning = cost.clone();
            }
        }
    }
}

fn is_asset(part: &Part<'_>) -> bool {
    matches!(&part.meaning, Meaning::Mention(mention) if !mention.is_money())
}

fn is_money(part: &Part<'_>) -> bool {
    matches!(&part.meaning, Meaning::Mention(mention) if mention.is_money())
}

/// Whether this may count what follows it.
fn is_counted(part: &Part<'_>) -> bool {
    matches!(part.meaning, Meaning::Neutral | Meaning::Unknown)
}
