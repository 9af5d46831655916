//! Lengths of candles in words: `1h`, `4 hour`, `15-min`, `one week`, and `1M` beside `1m`.

use super::text::Word;
use super::words::{self, Sense};
use crate::model::Interval;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// The exchange has candles of it.
    Interval(Interval),
    /// Says until when: "the next 3 days".
    Span,
    /// A length that no candle has, with the candles that tell of so long a time.
    Missing(Interval),
}

const SPAN_BEFORE: &[&str] = &[
    "last", "past", "previous", "over", "within", "next", "in", "since", "this",
];

/// What is drawn of candles of a length, however many it takes.
const AVERAGED: &[&str] = &["atr", "average", "dma", "ema", "ma", "moving", "rsi", "sma", "wma"];

/// The lengths of candles that most people look at, and that of three days: from one to seven is far.
const USUAL: &[Interval] = &[
    Interval::S1,
    Interval::M1,
    Interval::M5,
    Interval::M15,
    Interval::H1,
    Interval::H4,
    Interval::D1,
    Interval::D3,
    Interval::W1,
    Interval::Mo1,
];

/// How many candles a document of them has.
const CANDLES: i64 = 120;

const UNITS: &[(&str, &[&str])] = &[
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("m", &["m", "min", "mins", "minute", "minutes", "minutely"]),
    ("h", &["h", "hr", "hrs", "hour", "hours", "hourly"]),
    ("d", &["d", "day", "days", "daily"]),
    ("w", &["w", "wk", "wks", "week", "weeks", "weekly"]),
    ("M", &["mo", "mos", "mth", "mths", "mnth", "month", "months", "monthly"]),
    ("y", &["y", "yr", "yrs", "year", "years"]),
];

/// Parts of an hour: "half-hour candles", "every quarter of an hour".
const PARTS: &[(&str, u32)] = &[("half", 30), ("quarter", 15)];

const NUMBERS: &[(&str, u32)] = &[
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("twelve", 12),
    ("fifteen", 15),
    ("twenty", 20),
    ("thirty", 30),
    ("sixty", 60),
];

/// The length that the words at `at` name, and how many words that takes.
pub(super) fn length(words: &[Word], at: usize) -> Option<(Length, usize)> {
    let word = words.get(at)?;
    if let Some(interval) = compact(word) {
        return Some((Length::Interval(interval), 1));
    }
    if let Some((count, unit)) = written(&word.folded).filter(|_| is_averaged(words, at + 1)) {
        return averaged(count, unit).map(|interval| (Length::Interval(interval), 1));
    }
    if let Some((count, unit)) = written(&word.folded).filter(|_| words::sense(&word.folded).is_none()) {
        return Some((stretch(words, at, count, unit), 1));
    }
    if let Some(found) = part_of_hour(words, at) {
        return Some(found);
    }
    // "2026 monthly candles" are of a year, and not so many months.
    let count = number(&word.folded).filter(|_| !is_year(&word.folded))?;
    let next = words.get(at + 1)?;
    let unit = unit(&next.folded)?;
    // A letter alone is a unit only as "4 h"; "1 m" keeps its case as "1m" does.
    let unit = if next.text == "M" { "M" } else { unit };
    // "Last 50 hourly candles".
    let several = next.folded.ends_with("ly") && is_span(words, at);
    let interval = match exact(1, unit).filter(|_| several) {
        None if is_averaged(words, at + 2) => averaged(count, unit),
        one => one,
    };
    Some((
        interval.map_or_else(|| stretch(words, at, count, unit), Length::Interval),
        2,
    ))
}

fn is_averaged(words: &[Word], at: usize) -> bool {
    words
        .get(at)
        .is_some_and(|word| AVERAGED.contains(&word.folded.as_str()))
}

/// The candles of an average over so long a time: those of its unit, if there are enough of them.
fn averaged(count: u32, unit: &str) -> Option<Interval> {
    let one = exact(1, unit)?;
    // "4 hour EMA" is drawn of such candles, "3 day average" of days.
    if let Some(candles) = exact(count, unit).filter(|_| matches!(unit, "m" | "h")) {
        return Some(candles);
    }
    Some(reaching(one, i64::from(count).saturating_mul(one.millis())))
}

/// The shortest candles, of this length at least, that reach back so far; the longest there are, if none do.
pub(super) fn reaching(least: Interval, back: i64) -> Interval {
    let mut longer = USUAL.iter().filter(|length| length.millis() >= least.millis());
    let enough = longer.find(|length| length.millis() * CANDLES >= back);
    enough.copied().unwrap_or(Interval::Mo1)
}

/// Years of which there are prices, or will be.
const YEARS: std::ops::RangeInclusive<u32> = 2009..=2099;

pub(super) fn is_year(text: &str) -> bool {
    text.len() == 4 && text.parse().is_ok_and(|year| YEARS.contains(&year))
}

/// The candles that tell of so long a time: enough of them to see it, and long enough to reach its beginning.
pub(super) fn span(count: u32, unit: &str) -> Interval {
    reaching(usual(count, unit), millis(count, unit))
}

/// The candles that tell of what was so long ago: of the moment as well as of what followed.
pub(super) fn ago(count: u32, unit: &str) -> Interval {
    reaching(usual(count, unit), millis(count, unit).saturating_add(1))
}

fn millis(count: u32, unit: &str) -> i64 {
    let one = match unit {
        "y" => 365 * Interval::D1.millis(),
        _ => exact(1, unit).map_or(0, Interval::millis),
    };
    one.saturating_mul(i64::from(count))
}

/// The candles in which people look at so long a time.
fn usual(count: u32, unit: &str) -> Interval {
    match (unit, count) {
        ("s" | "m", _) | ("h", ..=2) => Interval::M1,
        ("h", ..=24) => Interval::M5,
        ("h", _) | ("d", ..=14) => Interval::H1,
        ("d", ..=366) | ("w", ..=26) | ("M", ..=12) => Interval::D1,
        ("d" | "w" | "M", _) | ("y", ..=5) => Interval::W1,
        _ => Interval::Mo1,
    }
}

fn part_of_hour(words: &[Word], at: usize) -> Option<(Length, usize)> {
    let (_, minutes) = PARTS.iter().find(|(name, _)| *name == words[at].folded)?;
    let linking = |word: &&Word| matches!(word.folded.as_str(), "a" | "an" | "of");
    let linked = words[at + 1..].iter().take_while(linking).count();
    let unit = unit(&words.get(at + 1 + linked)?.folded)?;
    (unit == "h").then(|| (stretch(words, at, *minutes, "m"), 2 + linked))
}

/// The length that a unit alone names: "day candles" are of one day.
pub(super) fn of_one(words: &[Word], at: usize) -> Option<Length> {
    let word = words.get(at)?;
    let foreign = foreign_unit(&word.folded);
    let several = word.folded.ends_with('s');
    let english = || unit(&word.folded).filter(|_| !several && word.folded.len() > 2);
    Some(stretch(words, at, 1, foreign.or_else(english)?))
}

fn stretch(words: &[Word], at: usize, count: u32, unit: &str) -> Length {
    if is_span(words, at) {
        return Length::Span;
    }
    exact(count, unit).map_or_else(|| Length::Missing(span(count, unit)), Length::Interval)
}

fn is_span(words: &[Word], at: usize) -> bool {
    at > 0 && SPAN_BEFORE.contains(&words[at - 1].folded.as_str())
}

/// `1h`, `15min`, `H4`; only `1M` in this case is a month.
fn compact(word: &Word) -> Option<Interval> {
    if let Ok(interval) = word.text.parse() {
        return Some(interval);
    }
    if let Some((count, unit)) = written(&word.folded) {
        return exact(count, unit);
    }
    // As charting programs write it.
    let (letter, count) = word.folded.split_at_checked(1)?;
    let known = matches!(letter, "m" | "h" | "d" | "w") && !count.starts_with('0');
    exact(number(count).filter(|_| known)?, letter)
}

/// `30d`, `15min`: how many of which unit.
pub(super) fn written(folded: &str) -> Option<(u32, &'static str)> {
    let digits = folded
        .find(|c: char| !c.is_ascii_digit())
        .filter(|digits| *digits > 0)?;
    let (count, letters) = folded.split_at(digits);
    let count = number(count).filter(|count| *count > 0)?;
    Some((count, unit(letters)?))
}

fn exact(count: u32, unit: &str) -> Option<Interval> {
    // Sixty minutes are an hour; but a week's candles begin on Mondays and seven days' would not.
    let (count, unit) = match unit {
        "m" if count > 0 && count.is_multiple_of(60) => (count / 60, "h"),
        _ => (count, unit),
    };
    format!("{count}{unit}").parse().ok()
}

/// The letter of a unit of time.
pub(super) fn unit(text: &str) -> Option<&'static str> {
    let unit = UNITS.iter().find(|(_, names)| names.contains(&text));
    unit.map(|(unit, _)| *unit).or_else(|| foreign_unit(text))
}

/// A letter that stands for a unit of time.
pub(super) fn letter(text: &str) -> Option<&'static str> {
    let mut letters = UNITS.iter().map(|(letter, _)| *letter);
    letters.find(|letter| *letter == text)
}

fn foreign_unit(text: &str) -> Option<&'static str> {
    match words::sense(text) {
        Some(Sense::Unit(unit)) => Some(unit),
        _ => None,
    }
}

pub(super) fn number(text: &str) -> Option<u32> {
    let spelt = NUMBERS.iter().find(|(name, _)| *name == text);
    match spelt {
        Some((_, number)) => Some(*number),
        None if text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::words;
    use super::*;

    fn read(text: &str) -> Option<(Length, usize)> {
        length(&words(text), 0)
    }

    #[test]
    fn lengths_are_read_in_every_usual_form() {
        for (text, interval) in [
            ("1h", "1h"),
            ("1H", "1h"),
            ("60h", ""),
            ("60 minutes", "1h"),
            ("240m", "4h"),
            ("10 minute", ""),
            ("2.5 minute", ""),
            ("0m", ""),
            ("4 hour", "4h"),
            ("4-hour", "4h"),
            ("four hours", "4h"),
            ("15 min", "15m"),
            ("15mins", "15m"),
            ("15M", "15m"),
            ("1m", "1m"),
            ("1M", "1M"),
            ("1 m", "1m"),
            ("1 M", "1M"),
            ("1 month", "1M"),
            ("1mo", "1M"),
            ("1mth", "1M"),
            ("1 mth", "1M"),
            ("four hourly", "4h"),
            ("8-hourly", "8h"),
            ("half-hour", "30m"),
            ("half hourly", "30m"),
            ("half an hour", "30m"),
            ("quarter of an hour", "15m"),
            ("half day", ""),
            ("quarterly", ""),
            ("one week", "1w"),
            ("3D", "3d"),
            ("H4", "4h"),
            ("m15", "15m"),
            ("1s", "1s"),
            ("h", ""),
            ("hour", ""),
            ("0h", ""),
            ("m01", ""),
            ("99999999999999999999h", ""),
            ("1é", ""),
            ("é1", ""),
        ] {
            let found = match read(text) {
                Some((Length::Interval(interval), _)) => interval.as_str(),
                _ => "",
            };
            assert_eq!(found, interval, "{text}");
        }
        assert_eq!(read("7 days"), Some((Length::Missing(Interval::H4), 2)));
        assert_eq!(read("1 year"), Some((Length::Missing(Interval::W1), 2)));
        assert_eq!(
            read("200 day moving average"),
            Some((Length::Interval(Interval::D3), 2))
        );
        for (text, candles) in [
            ("7d ma", "1d"),
            ("14d rsi", "1d"),
            ("20w sma", "1w"),
            ("14 day atr", "1d"),
            ("4h rsi", "4h"),
            ("4 hour rsi", "4h"),
            ("50 hour ma", "1h"),
            ("3 day ma", "1d"),
        ] {
            let interval = candles.parse().expect("an interval");
            assert_eq!(
                read(text).map(|(length, _)| length),
                Some(Length::Interval(interval)),
                "{text}"
            );
        }
        assert_eq!(read("2026 monthly"), None, "a year");
        assert_eq!(read("4 Stunden"), Some((Length::Interval(Interval::H4), 2)));
        assert_eq!(read("30d"), Some((Length::Missing(Interval::D1), 1)));
        assert_eq!(read("24h"), None, "tickers tell of it");
        assert_eq!(length(&words("last 3 days"), 1), Some((Length::Span, 2)));
    }
}
