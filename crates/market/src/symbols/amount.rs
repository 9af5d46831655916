//! Amounts: whoever names one asks what it costs to trade it, and the order book tells.

use super::beside::is_asset;
use super::id::Kind;
use super::parse::{Meaning, Part};
use super::text::Word;
use super::words::{self, Sense};

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

/// Said of what somebody has to pay, and never of a candle.
const COSTING: &[&str] = &["cost", "costs", "worth"];

/// Makes amounts of what looks like lengths of candles, and wishes for a cost of what is said of amounts.
pub(super) fn settle(words: &[Word], parts: &mut [Part<'_>]) {
    let amounts = Amounts { words };
    if amounts.millions(parts) || amounts.names_amount(parts) || amounts.deals_in_amount(parts) {
        amounts.ask_for_cost(parts);
    }
}

struct Amounts<'w> {
    words: &'w [Word],
}

impl Amounts<'_> {
    fn is_said(&self, part: Option<&Part<'_>>, said: &[&str]) -> bool {
        part.is_some_and(|part| part.words == 1 && said.contains(&part.first_word(self.words)))
    }

    /// "Buy 1m doge", "5m usdt of eth": an amount in millions, and no length of candles. Whether there is one.
    fn millions(&self, parts: &mut [Part<'_>]) -> bool {
        let candles = |part: &Part<'_>| matches!(part.meaning, Meaning::Sense(Sense::Wants(Kind::Klines(_))));
        if parts.iter().any(candles) {
            return false;
        }
        let looks_like = |at: &usize| self.is_length_in_m(&parts[*at]) && self.is_amount(parts, *at);
        let amounts: Vec<usize> = (0..parts.len()).filter(looks_like).collect();
        for at in &amounts {
            parts[*at].meaning = Meaning::Neutral;
        }
        !amounts.is_empty()
    }

    fn is_length_in_m(&self, part: &Part<'_>) -> bool {
        let timed = matches!(part.meaning, Meaning::Interval(_) | Meaning::NoInterval(_));
        timed && part.words == 1 && part.first_word(self.words).ends_with('m')
    }

    /// Whether what stands beside a length shows that it is an amount.
    fn is_amount(&self, parts: &[Part<'_>], at: usize) -> bool {
        let article = usize::from(at > 0 && self.is_said(parts.get(at - 1), &["a"]));
        let before = at.checked_sub(1 + article).and_then(|before| parts.get(before));
        let behind = parts.get(at + 1);
        let says = |said: &[&str]| parts.iter().any(|part| self.is_said(Some(part), said));
        let dealt = self.is_said(before, DEALING);
        let asset = behind.is_some_and(|part| matches!(part.meaning, Meaning::Mention(_)));
        let money = behind.is_some_and(|part| is_money(part) || self.begins_with_money(part));
        let tagged = self.words.get(parts[at].start).is_some_and(|word| word.tagged);
        // "A 5m market sell".
        let order = self.is_said(behind, &["market"]) && (says(COSTING) || says(DEALING));
        // "45m sol price" is of so many minutes.
        let priced = |part: &Part<'_>| matches!(part.meaning, Meaning::Sense(Sense::Wants(Kind::Ticker)));
        let no_candle = matches!(parts[at].meaning, Meaning::NoInterval(_)) && !parts[at..].iter().any(priced);
        let counted = dealt || no_candle || self.is_said(before, &["of"]) || says(COSTING);
        money || tagged || order || (counted && asset) || (dealt && self.is_said(behind, &["of"]))
    }

    /// "500,000 dollars of", "$2 million worth of".
    fn names_amount(&self, parts: &[Part<'_>]) -> bool {
        let is_of = |part: &Part<'_>| part.words == 1 && part.first_word(self.words) == "of";
        let mut ofs = (0..parts.len()).filter(|at| is_of(&parts[*at]));
        ofs.any(|of| self.ends_in_amount(&parts[..of]))
    }

    /// "Sell 25 BTC", "a 300k usdt doge purchase", "$500 btc".
    fn deals_in_amount(&self, parts: &[Part<'_>]) -> bool {
        let dealing = |part: &Part<'_>| DEALING.contains(&part.first_word(self.words));
        let numbered = |part: &Part<'_>| matches!(part.meaning, Meaning::Neutral) && part.first_word(self.words) != "1";
        let deals = (0..parts.len()).filter(|at| dealing(&parts[*at]));
        let mut behind = deals.map(|at| &parts[at + 1..]);
        let trios = behind.any(|rest| {
            let amount = rest.iter().take_while(|part| numbered(part)).count();
            // "Buy 20k of pepe".
            let of = usize::from(self.is_said(rest.get(amount), &["of"]));
            amount > 0 && rest.get(amount + of).is_some_and(is_asset)
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
        part.words > 1 && words::is_money(&part.first_word(self.words).to_uppercase())
    }

    fn ends_in_amount(&self, rest: &[Part<'_>]) -> bool {
        let rest = match rest.split_last() {
            Some((last, before)) if last.first_word(self.words) == "worth" => before,
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
                Meaning::Sense(Sense::Deal) => DEALING.contains(&part.first_word(self.words)),
                _ => false,
            };
            if asked {
                part.meaning = cost.clone();
            }
        }
    }
}

fn is_money(part: &Part<'_>) -> bool {
    matches!(&part.meaning, Meaning::Mention(mention) if mention.is_money())
}
