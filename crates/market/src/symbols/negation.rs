//! What a question leaves out in words: "price, not the order book", "anything but bitcoin".

use std::collections::HashSet;

use super::parse::{Meaning, Part};
use super::text::{Gap, Word};
use super::words::Sense;

/// Words between what leaves out and what is left out, and between several of the latter.
const LINKS: &[&str] = &["a", "an", "and", "any", "its", "my", "or", "the"];

/// Takes what is left out from among the parts; the tickers and symbols that are not to be found.
pub(super) fn leave_out(words: &[Word], parts: &mut [Part<'_>]) -> HashSet<String> {
    let mut named = HashSet::new();
    let cues: Vec<usize> = (0..parts.len()).filter(|at| is_cue(&parts[*at])).collect();
    for cue in cues {
        let reach = reach(words, parts, cue);
        let wished_else = (0..parts.len()).any(|at| !reach.contains(&at) && is_wish(&parts[at]));
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
                // "Why is it not liquid" asks for liquidity.
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
    matches!(part.meaning, Meaning::Sense(Sense::Wants(_)))
}

/// The assets, or else the wishes, behind a cue: up to a comma or any other word.
fn reach(words: &[Word], parts: &[Part<'_>], cue: usize) -> Vec<usize> {
    let is_asset = |part: &Part<'_>| matches!(part.meaning, Meaning::Mention(_));
    let linking = |part: &Part<'_>| LINKS.contains(&words[part.start].folded.as_str());
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
