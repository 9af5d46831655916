//! What a question leaves out in words: "price, not the order book", "anything but bitcoin".

use std::collections::HashSet;

use super::parse::{Meaning, Part};
use super::text::{Gap, Word};
use super::words::Sense;

/// Words between what leaves out and what is left out, and between several of the latter.
const LINKS: &[&str] = &["a", "about", "an", "and", "any", "its", "me", "my", "or", "the", "us"];

/// Behind these a wish is left out only where another stands: "why is it not liquid" asks for liquidity.
const DENIALS: &[&str] = &["not", "no", "nicht"];

/// Takes what is left out from among the parts; the tickers and symbols that are not to be found.
pub(super) fn leave_out(words: &[Word], parts: &mut [Part<'_>]) -> HashSet<String> {
    let mut named = HashSet::new();
    let cues: Vec<usize> = (0..parts.len()).filter(|at| is_cue(&parts[*at])).collect();
    for cue in cues {
        let reach = reach(words, parts, cue);
        let others = || (0..parts.len()).filter(|at| !reach.contains(at)).map(|at| &parts[at]);
        let wished_else = others().any(is_wish) || (is_aside(words, parts, cue) && others().any(is_asset));
        // "No BTC trades?" is about BTC.
        let leaves_assets = words[parts[cue].start].folded != "no";
        for at in reach {
            let part = &mut parts[at];
            let left_out = match &part.meaning {
                Meaning::Mention(mention) if leaves_assets => {
                    named.extend(mention.tickers.iter().cloned());
                    if mention.tickers.is_empty() {
                        named.extend(mention.symbols.first().map(|symbol| symbol.name.to_string()));
                    }
                    true
                }
                _ => wished_else && is_wish(part),
            };
            if left_out {
                part.meaning = Meaning::Neutral;
            }
        }
    }
    named
}

fn is_cue(part: &Part<'_>) -> bool {
    matches!(part.meaning, Meaning::Sense(Sense::Not))
}

fn is_wish(part: &Part<'_>) -> bool {
    matches!(
        part.meaning,
        Meaning::Interval(_) | Meaning::Sense(Sense::Wants(_) | Sense::Every(_) | Sense::Candles(_))
    )
}

fn is_asset(part: &Part<'_>) -> bool {
    matches!(part.meaning, Meaning::Mention(_))
}

/// "Bitcoin, not the order book", "solana but not candles": what is left out stands apart from what is said of the asset.
fn is_aside(words: &[Word], parts: &[Part<'_>], cue: usize) -> bool {
    let part = &parts[cue];
    let denies = part.words == 1 && DENIALS.contains(&part.first_word(words));
    let article = parts.get(cue + 1).is_some_and(|next| next.first_word(words) == "the");
    !denies || part.gap == Gap::List || article
}

/// The assets, or else the wishes, behind a cue: up to a comma or any other word.
fn reach(words: &[Word], parts: &[Part<'_>], cue: usize) -> Vec<usize> {
    let linking = |part: &Part<'_>| LINKS.contains(&part.first_word(words));
    let mut reached: Vec<usize> = Vec::new();
    for at in cue + 1..parts.len() {
        let part = &parts[at];
        let apart = part.gap == Gap::List && !reached.is_empty();
        let alike = reached
            .first()
            .is_none_or(|first| is_asset(&parts[*first]) == is_asset(part));
        if !apart && alike && (is_asset(part) || is_wish(part)) {
            reached.push(at);
        } else if apart || !linking(part) {
            break;
        }
    }
    reached
}
