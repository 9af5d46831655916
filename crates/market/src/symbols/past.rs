//! Times that are over: "the last 30 days", "an hour ago", "in October", "on 2025-01-01". Candles tell of them, and
//! what is asked of a longer time is answered by longer ones.

use super::interval::{number, span, unit, written};
use super::text::{Gap, Word};
use crate::model::Interval;

/// Words before a length that make it one that is over.
const OVER: &[&str] = &[
    "last",
    "past",
    "previous",
    "prior",
    "over",
    "these",
    "letzten",
    "letzte",
    "letzter",
    "últimos",
    "últimas",
    "ultimos",
    "ultimas",
    "derniers",
    "dernières",
    "ultimi",
    "ultime",
    "последние",
    "последних",
];

/// Numbers that are not exact.
const SOME: &[(&str, u32)] = &[("a", 1), ("an", 1), ("couple", 2), ("few", 3), ("several", 5)];

/// Words before a month or a year that make it a date.
const BEFORE_DATE: &[&str] = &[
    "around", "between", "during", "early", "end", "from", "in", "last", "late", "mid", "of", "on", "since", "year",
];

const MONTHS: &[&str] = &[
    "january",
    "february",
    "september",
    "october",
    "november",
    "december",
    "july",
];

/// Months that are also words or names, and short forms: only beside what makes them dates.
const UNSURE_MONTHS: &[&str] = &[
    "march", "april", "may", "june", "august", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct",
    "nov", "dec",
];

/// Years of which there are prices.
const YEARS: std::ops::RangeInclusive<u32> = 2009..=2099;

/// Whoever says these beside a date says which day it is, or will be.
const NOW: &[&str] = &["current", "currently", "live", "now", "today", "will"];

/// The candles that tell of the time that the words at `at` name, and how many words that takes. None, if it is not over.
pub(super) fn past(words: &[Word], at: usize) -> Option<(Option<Interval>, usize)> {
    let over = since(words, at).or_else(|| ago(words, at));
    if let Some((interval, taken)) = over {
        return Some((Some(interval), taken));
    }
    let (interval, taken) = date(words, at)?;
    let now = words.iter().any(|word| NOW.contains(&word.folded.as_str()));
    Some((Some(interval).filter(|_| !now), taken))
}

fn folded(words: &[Word], at: usize) -> &str {
    words.get(at).map_or("", |word| word.folded.as_str())
}

fn counted(text: &str) -> Option<u32> {
    let some = SOME.iter().find(|(name, _)| *name == text);
    some.map(|(_, count)| *count).or_else(|| number(text))
}

/// "Last 30 days", "past few weeks", "this month"; not "the last day", of which tickers tell, and not what will be.
fn since(words: &[Word], at: usize) -> Option<(Interval, usize)> {
    let first = folded(words, at);
    if first == "this" {
        if words.iter().any(|word| word.folded == "will") {
            return None;
        }
        let unit = unit(folded(words, at + 1)).filter(|unit| matches!(*unit, "h" | "w" | "M" | "y"))?;
        return Some((span(1, unit), 2));
    }
    if !OVER.contains(&first) {
        return None;
    }
    let articles = usize::from(folded(words, at + 1) == "the");
    let from = at + 1 + articles;
    if let Some((count, unit)) = written(folded(words, from)).filter(|length| *length != (24, "h")) {
        return Some((span(count, unit), 2 + articles));
    }
    let (count, numbers) = match counted(folded(words, from)) {
        // "Couple of weeks".
        Some(count) => (count, 1 + usize::from(folded(words, from + 1) == "of")),
        None => (1, 0),
    };
    let named = folded(words, from + numbers);
    // "The last 50 hourly candles" are candles, and not hours.
    let unit = unit(named).filter(|_| !named.ends_with("ly"))?;
    let of_ticker = matches!((count, unit), (24, "h") | (1, "d") | (1, "s"));
    (!of_ticker).then(|| (span(count, unit), 1 + articles + numbers + 1))
}

/// "Two days ago", "an hour earlier".
fn ago(words: &[Word], at: usize) -> Option<(Interval, usize)> {
    let article = folded(words, at) == "a" && matches!(folded(words, at + 1), "few" | "couple");
    let from = at + usize::from(article);
    let count = counted(folded(words, from))?;
    let of = usize::from(folded(words, from + 1) == "of");
    let unit = unit(folded(words, from + 1 + of))?;
    let over = matches!(folded(words, from + 2 + of), "ago" | "earlier" | "back");
    over.then(|| (span(count, unit), from - at + 3 + of))
}

fn date(words: &[Word], at: usize) -> Option<(Interval, usize)> {
    let before = at.checked_sub(1).map_or("", |before| folded(words, before));
    let dated = BEFORE_DATE.contains(&before);
    if let Some(taken) = calendar_day(words, at) {
        return Some((Interval::D1, taken));
    }
    let day = usize::from(is_day(folded(words, at)) && is_month(folded(words, at + 1)));
    let month = folded(words, at + day);
    if is_month(month) {
        let rest = at + day + 1;
        let numbers = (rest..rest + 2).take_while(|at| is_day(folded(words, *at)) || is_year(folded(words, *at)));
        let numbers = numbers.count();
        let sure = day > 0 || numbers > 0 || dated || MONTHS.contains(&month);
        return sure.then_some((Interval::D1, day + 1 + numbers));
    }
    (dated && is_year(month)).then_some((Interval::W1, 1))
}

/// `2025-01-31`
fn calendar_day(words: &[Word], at: usize) -> Option<usize> {
    let three = words.get(at..at + 3)?;
    let joined = three[1..].iter().all(|word| matches!(word.gap, Gap::Pair | Gap::Slash));
    let numbers = is_year(&three[0].folded) && three[1..].iter().all(|word| is_day(&word.folded));
    (joined && numbers).then_some(3)
}

fn is_month(text: &str) -> bool {
    MONTHS.contains(&text) || UNSURE_MONTHS.contains(&text)
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && text.parse().is_ok_and(|year| YEARS.contains(&year))
}

/// `31`, `1st`
fn is_day(text: &str) -> bool {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| text.strip_suffix(end));
    digits
        .unwrap_or(text)
        .parse()
        .is_ok_and(|day: u8| (1..=31).contains(&day))
}

#[cfg(test)]
mod tests {
    use super::super::text::words;
    use super::*;

    #[test]
    fn times_that_are_over_have_candles_that_fit() {
        for (text, candles, taken) in [
            ("last 30 days", "1d", 3),
            ("past 7 days", "1h", 3),
            ("last 7d", "1h", 2),
            ("last 10 minutes", "1m", 3),
            ("last 4 hours", "5m", 3),
            ("past few weeks", "1d", 3),
            ("past couple of months", "1d", 4),
            ("last year", "1w", 2),
            ("this week", "1d", 2),
            ("over the month", "1d", 3),
            ("over 10 years", "1M", 3),
            ("an hour ago", "1m", 3),
            ("two days ago", "1h", 3),
            ("a few weeks ago", "1d", 4),
            ("1 november 2026", "1d", 3),
            ("November 1st", "1d", 2),
            ("october", "1d", 1),
            ("2025-01-31", "1d", 3),
        ] {
            let found = past(&words(text), 0);
            let found = found.map(|(interval, words)| (interval.map(Interval::as_str), words));
            assert_eq!(found, Some((Some(candles), taken)), "{text}");
        }
        for text in [
            "last day",
            "last 24 hours",
            "last 24h",
            "last price",
            "last 50 hourly candles",
            "this minute",
            "this day",
            "this year it will rise",
            "may",
            "march",
            "4 hours",
            "2024",
            "2025-13-99",
            "99999999999 days ago",
            "",
        ] {
            assert_eq!(past(&words(text), 0), None, "{text}");
        }
        assert_eq!(past(&words("in 2021"), 1), Some((Some(Interval::W1), 1)));
        assert_eq!(past(&words("since march"), 1), Some((Some(Interval::D1), 1)));
        assert_eq!(past(&words("16 november 2026 price now"), 0), Some((None, 3)));
    }
}
