//! Times that are over: "the last 30 days", "an hour ago", "in October", "on 2025-01-01". Candles tell of them, and
//! what is asked of a longer time is answered by longer ones.

use jiff::civil::Date;

use super::interval::{self, is_year, number, reaching, span, unit, written};
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

const MONTHS: &[&[&str]] = &[
    &["january", "jan"],
    &["february", "feb"],
    &["march", "mar"],
    &["april", "apr"],
    &["may"],
    &["june", "jun"],
    &["july", "jul"],
    &["august", "aug"],
    &["september", "sep", "sept"],
    &["october", "oct"],
    &["november", "nov"],
    &["december", "dec"],
];

/// Months that are also words or names, and short forms: only beside what makes them dates.
const UNSURE_MONTHS: &[&str] = &[
    "march", "april", "may", "june", "august", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct",
    "nov", "dec",
];

/// Whoever says these beside a date says which day it is, or will be.
const NOW: &[&str] = &["current", "currently", "live", "now", "today", "will"];

/// Before one of the former these make it the end of a time, or what another is compared with.
const UP_TO: &[&str] = &["and", "than", "till", "to", "until", "versus", "vs", "with"];

/// The candles that tell of the time that the words at `at` name, and how many words that takes. None, if it is not over.
pub(super) fn past(words: &[Word], at: usize, today: Date) -> Option<(Option<Interval>, usize)> {
    let over = since(words, at).or_else(|| ago(words, at));
    if let Some((interval, taken)) = over {
        return Some((Some(interval), taken));
    }
    let (date, taken) = date(words, at)?;
    let interval = date.candles(today).filter(|_| !is_of_now(words));
    Some((interval, taken))
}

fn is_of_now(words: &[Word]) -> bool {
    let now = |at: usize| NOW.contains(&folded(words, at));
    let up_to = |at: usize| at > 0 && UP_TO.contains(&folded(words, at - 1));
    let compared = |at: usize| matches!(folded(words, at + 1), "compared" | "than" | "versus" | "vs");
    (0..words.len()).any(|at| now(at) && !up_to(at) && !compared(at))
}

/// A date as far as it is said.
#[derive(Debug, Default)]
struct Said {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
}

impl Said {
    /// Whether a number behind a month is its year or day.
    fn take(&mut self, number: &str) -> bool {
        let (year, day) = (year(number), day(number));
        self.year = self.year.or(year);
        self.day = self.day.or(day);
        year.is_some() || day.is_some()
    }

    /// The candles that reach back to it. None, if it is yet to come.
    fn candles(&self, today: Date) -> Option<Interval> {
        let usual = if self.month.is_some() {
            Interval::D1
        } else {
            Interval::W1
        };
        let days = today.since(self.begins(today)?).ok()?.get_days();
        // Today's candle is one of them.
        let back = i64::from(days).saturating_add(1).saturating_mul(Interval::D1.millis());
        (days >= 0).then(|| reaching(usual, back))
    }

    /// Its first day; of a month without a year the last one that has begun.
    fn begins(&self, today: Date) -> Option<Date> {
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        let of_year = |year| Date::new(year, month, day).or_else(|_| Date::new(year, month, 1)).ok();
        match self.year {
            Some(year) => of_year(year),
            None => of_year(today.year())
                .filter(|date| *date <= today)
                .or_else(|| of_year(today.year() - 1)),
        }
    }
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
    over.then(|| (interval::ago(count, unit), from - at + 3 + of))
}

/// "1 November 2026", "in October", "since 2021".
fn date(words: &[Word], at: usize) -> Option<(Said, usize)> {
    let before = at.checked_sub(1).map_or("", |before| folded(words, before));
    let dated = BEFORE_DATE.contains(&before);
    if let Some(said) = calendar_day(words, at) {
        return Some((said, 3));
    }
    let leading = day(folded(words, at)).filter(|_| month(folded(words, at + 1)).is_some());
    let from = at + usize::from(leading.is_some());
    let name = folded(words, from);
    let Some(month) = month(name) else {
        let mut said = Said::default();
        return (dated && is_year(name) && said.take(name)).then_some((said, 1));
    };
    let mut said = Said {
        month: Some(month),
        day: leading,
        ..Said::default()
    };
    let numbers = (from + 1..from + 3)
        .take_while(|at| said.take(folded(words, *at)))
        .count();
    let sure = leading.is_some() || numbers > 0 || dated || !UNSURE_MONTHS.contains(&name);
    sure.then_some((said, from - at + 1 + numbers))
}

/// `2025-01-31`
fn calendar_day(words: &[Word], at: usize) -> Option<Said> {
    let [first, second, third] = words.get(at..at + 3)? else {
        return None;
    };
    let joined = |word: &Word| matches!(word.gap, Gap::Pair | Gap::Slash);
    let said = Said {
        year: Some(year(&first.folded)?),
        month: Some(day(&second.folded).filter(|month| *month <= 12)?),
        day: Some(day(&third.folded)?),
    };
    (joined(second) && joined(third)).then_some(said)
}

/// The number of a month.
fn month(text: &str) -> Option<i8> {
    let place = MONTHS.iter().position(|names| names.contains(&text))?;
    i8::try_from(place + 1).ok()
}

fn year(text: &str) -> Option<i16> {
    text.parse().ok().filter(|_| is_year(text))
}

/// `31`, `1st`
fn day(text: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| text.strip_suffix(end));
    let day = digits.unwrap_or(text).parse().ok();
    day.filter(|day| (1..=31).contains(day))
}

#[cfg(test)]
mod tests {
    use super::super::text::words;
    use super::*;

    const TODAY: Date = jiff::civil::date(2026, 11, 16);

    #[test]
    fn times_that_are_over_have_candles_that_fit() {
        for (text, candles, taken) in [
            ("last 30 days", "1d", 3),
            ("past 7 days", "4h", 3),
            ("last 7d", "4h", 2),
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
            ("24 hours ago", "15m", 3),
            ("last 12 hours", "15m", 3),
            ("last 10 days", "4h", 3),
            ("last 6 months", "3d", 3),
            ("last 5 years", "1M", 3),
            ("5 days ago", "4h", 3),
            ("a few weeks ago", "1d", 4),
            ("1 november 2026", "1d", 3),
            ("November 1st", "1d", 2),
            ("october", "1d", 1),
            ("2025-01-31", "1w", 3),
        ] {
            let found = past(&words(text), 0, TODAY);
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
            assert_eq!(past(&words(text), 0, TODAY), None, "{text}");
        }
        assert_eq!(past(&words("in 2021"), 1, TODAY), Some((Some(Interval::Mo1), 1)));
        assert_eq!(past(&words("since march"), 1, TODAY), Some((Some(Interval::D3), 1)));
        for text in ["in 2035", "in december 2027", "on 17 november 2026"] {
            let found = past(&words(text), 1, TODAY).map(|(interval, _)| interval);
            assert_eq!(found, Some(None), "{text} is yet to come");
        }
        for text in [
            "january 2024 to now",
            "march 1 2025 vs now",
            "january price: now vs then",
        ] {
            let found = past(&words(text), 0, TODAY).and_then(|(interval, _)| interval);
            assert!(found.is_some(), "{text}");
        }
        assert_eq!(past(&words("16 november 2026 price now"), 0, TODAY), Some((None, 3)));
    }
}
