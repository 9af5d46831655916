//! Words as they are known here: runs without spaces are divided, case endings come off, misspelt wishes are
//! respelt. A word that stays unknown stays as it was typed.

use super::assets::Assets;
use super::everyday;
use super::table::SymbolTable;
use super::text::{Gap, Word};
use super::words;

/// Most letters that a name or word has that is looked for in a run without spaces.
const MAX_RUN_CHARS: usize = 12;

/// Fewest letters that are left of a word without its ending.
const MIN_STEM_CHARS: usize = 3;

/// Endings of Russian nouns, the longer first.
const ENDINGS: &[&str] = &[
    "ами", "ом", "ой", "ов", "ам", "ах", "ем", "а", "у", "е", "ы", "и", "ю", "я",
];

pub(super) fn known(table: &SymbolTable, typed: Vec<Word>) -> Vec<Word> {
    let mut words = Vec::with_capacity(typed.len());
    for word in typed {
        if is_known(table, &word.folded) {
            words.push(word);
        } else if word.folded.chars().any(unspaced) {
            words.extend(divided(table, word));
        } else {
            words.push(respelt(word));
        }
    }
    words
}

fn is_known(table: &SymbolTable, folded: &str) -> bool {
    let assets = Assets::known();
    let said = words::sense(folded).is_some() || words::longest(folded) > 0;
    let named = !assets.called(folded).is_empty() || assets.longest(folded) > 0;
    said || named || table.lookup(folded).is_some() || table.has_base(&folded.to_uppercase())
}

/// Letters of scripts that put no spaces between words, or put particles behind them.
const fn unspaced(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// `比特币价格` is a name and a wish: the longest known words from left to right, and what is left between them.
fn divided(table: &SymbolTable, word: Word) -> Vec<Word> {
    let letters: Vec<char> = word.folded.chars().collect();
    let mut pieces: Vec<(String, bool)> = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let (length, known) = next_piece(table, &letters[at..]);
        let piece: String = letters[at..at + length].iter().collect();
        match pieces.last_mut() {
            Some((left_over, false)) if !known => left_over.push_str(&piece),
            _ => pieces.push((piece, known)),
        }
        at += length;
    }
    if !pieces.iter().any(|(_, known)| *known) {
        return vec![word];
    }
    let pieces = pieces.into_iter().enumerate();
    pieces
        .map(|(place, (folded, _))| Word {
            text: folded.clone(),
            folded,
            gap: if place == 0 { word.gap } else { Gap::Loose },
            ..word.clone()
        })
        .collect()
}

/// How many letters the next word has, and whether it is a known one.
fn next_piece(table: &SymbolTable, rest: &[char]) -> (usize, bool) {
    let plain = rest.iter().take_while(|letter| !unspaced(**letter)).count();
    let most = rest.len().min(MAX_RUN_CHARS);
    // `K线` is one word, `BTC价格` are two.
    let known = (plain + 1..=most).rev().find(|length| {
        let piece: String = rest[..*length].iter().collect();
        is_known(table, &piece)
    });
    match known {
        Some(length) => (length, true),
        None if plain > 0 => (plain, true),
        None => (1, false),
    }
}

fn respelt(word: Word) -> Word {
    let meant = if everyday::is_ordinary(&word.folded) {
        None
    } else {
        nominative(&word.folded).or_else(|| words::respelt(&word.folded).map(str::to_owned))
    };
    match meant {
        Some(folded) => Word {
            text: folded.clone(),
            folded,
            ..word
        },
        None => word,
    }
}

/// The name that a Russian word is a case of: `биткоина`, `соланы`.
fn nominative(folded: &str) -> Option<String> {
    if !folded.starts_with(|letter| matches!(letter, '\u{400}'..='\u{4ff}')) {
        return None;
    }
    let stems = ENDINGS.iter().filter_map(|ending| folded.strip_suffix(ending));
    let named = |name: &String| !Assets::known().called(name).is_empty();
    stems
        .filter(|stem| stem.chars().count() >= MIN_STEM_CHARS)
        .flat_map(|stem| [stem.to_owned(), format!("{stem}а")])
        .find(named)
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::super::text::words;
    use super::*;

    #[test]
    fn words_are_taken_apart_and_brought_into_the_form_that_is_known() {
        let table = table();
        for (typed, meant) in [
            ("比特币价格", "比特币 价格"),
            ("以太坊的价格是多少", "以太坊 的 价格 是 多少"),
            ("BTC价格", "btc 价格"),
            ("BTC15分钟K线", "btc15 分钟 k线"),
            ("15分钟K线", "15 分钟 k线"),
            ("4時間足", "4 時間 足"),
            ("비트코인의 가격", "비트코인 의 가격"),
            ("币安人生", "币安人生"),
            ("币安人生USDT", "币安人生usdt"),
            ("未知之物", "未知之物"),
            ("цена биткоина", "цена биткоин"),
            ("курс соланы", "курс солана"),
            ("цена дома", "цена дома"),
            ("btc candels", "btc candles"),
            ("national ticket", "national ticket"),
        ] {
            let known: Vec<String> = known(&table, words(typed))
                .into_iter()
                .map(|word| word.folded)
                .collect();
            assert_eq!(known.join(" "), meant, "{typed}");
        }
    }
}
