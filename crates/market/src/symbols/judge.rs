//! Which of the markets that a question names convince beside what else it says.

use super::everyday;
use super::gather::Question;
use super::parse::{Mention, Standing};
use super::search::MatchedOn;

/// Markets that one question can ask for.
const MAX_MENTIONS: usize = 10;

/// Gives up mentions that do not convince beside what is left over, and what is named twice.
pub(super) fn judge(question: &mut Question<'_>) {
    let (understood, surely, unknown) = (question.understood(), question.surely_understood(), question.unknown);
    let (telling, dealing) = (question.telling, question.dealing);
    let about_markets = telling || dealing || question.about_markets;
    let market_words = question.market_words;
    give_up(question, |mention| match mention.standing {
        Standing::Sure | Standing::Guess => true,
        // Eleven dollars are mostly that.
        Standing::Distinct if mention.is_money() => unknown == 0 || (telling && understood >= 0.6),
        Standing::Distinct if is_famous(mention) => about_markets || understood > 0.25,
        // "LDO regulator circuit".
        Standing::Distinct if mention.on == MatchedOn::Ticker => about_markets || understood > 0.5,
        Standing::Distinct => about_markets || understood >= 0.2,
        // "Honda CRV price", "PSG match".
        Standing::Acronym => unknown == 0 || market_words > unknown || (dealing && surely > 0.5),
        Standing::Terse { capitals } if telling || dealing || (capitals && is_famous(mention)) => surely >= 0.5,
        Standing::Terse { .. } => surely > 0.5,
        // "Vitamin C".
        Standing::Capitals if mention.is_letter() => unknown == 0,
        Standing::Capitals => unknown == 0 || (telling && understood >= 0.6),
        Standing::Familiar => unknown == 0 || ((telling || dealing) && surely > 0.5),
        Standing::Ordinary => unknown == 0 && telling,
    });
    name_once(&mut question.mentions);
}

fn is_famous(mention: &Mention<'_>) -> bool {
    mention.on == MatchedOn::Ticker && mention.tickers.iter().any(|ticker| everyday::is_famous(ticker))
}

/// "Solana (SOLUSDC)" names one market, the more exactly named one.
fn name_once(mentions: &mut Vec<Mention<'_>>) {
    let mut once: Vec<Mention<'_>> = Vec::new();
    for mention in mentions.drain(..) {
        let same = once.iter().position(|other| is_same(other, &mention));
        match same {
            Some(at) if mention.on < once[at].on => once[at] = mention,
            None if once.len() < MAX_MENTIONS => once.push(mention),
            _ => {}
        }
    }
    *mentions = once;
}

/// Whether two mentions are of one market, or one is of an asset and the other of a market of it.
fn is_same(a: &Mention<'_>, b: &Mention<'_>) -> bool {
    let (Some(first), Some(second)) = (a.symbols.first(), b.symbols.first()) else {
        return false;
    };
    let asset = !a.tickers.is_empty() || !b.tickers.is_empty();
    first == second || (asset && first.base == second.base)
}

/// Drops mentions; their words are then words that mean nothing.
pub(super) fn give_up<'t>(question: &mut Question<'t>, keep: impl Fn(&Mention<'t>) -> bool) {
    let unknown = &mut question.unknown;
    question.mentions.retain(|mention| {
        let kept = keep(mention);
        *unknown += if kept { 0 } else { mention.words };
        kept
    });
}
