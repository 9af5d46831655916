//! Lengths of candles in words: `1h`, `4 hour`, `15-min`, `one week`, and `1M` beside `1m`.

use super::text::Word;
use crate::model::Interval;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// The exchange has candles of it.
    Interval(Interval),
    /// A length of time that no candle has, or that says since when: "the last 3 days".
    Span,
}

const SPAN_BEFORE: &[&str] = &["last", "past", "previous", "over", "within", "next", "in", "since"];

const UNITS: &[(&str, &[&str])] = &[
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("m", &["m", "min", "mins", "minute", "minutes"]),
    ("h", &["h", "hr", "hrs", "hour", "hours"]),
    ("d", &["d", "day", "days"]),
    ("w", &["w", "wk", "week", "weeks"]),
    ("M", &["mo", "month", "months"]),
];

const NUMBERS: &[(&str, u32)] = &[
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("eight", 8),
    ("twelve", 12),
    ("fifteen", 15),
    ("thirty", 30),
];

/// The length that the words at `at` name, and how many words that takes.
pub(super) fn length(words: &[Word], at: usize) -> Option<(Length, usize)> {
    let word = words.get(at)?;
    if let Some(interval) = compact(word) {
        return Some((Length::Interval(interval), 1));
    }
    let count = number(&word.folded)?;
    let next = words.get(at + 1)?;
    let unit = unit(&next.folded)?;
    // A letter alone is a unit only as "4 h"; "1 m" keeps its case as "1m" does.
    let unit = if next.text == "M" { "M" } else { unit };
    let since = at > 0 && SPAN_BEFORE.contains(&words[at - 1].folded.as_str());
    let interval = exact(count, unit).filter(|_| !since);
    Some((interval.map_or(Length::Span, Length::Interval), 2))
}

/// `1h`, `15min`, `H4`; only `1M` in this case is a month.
fn compact(word: &Word) -> Option<Interval> {
    if let Ok(interval) = word.text.parse() {
        return Some(interval);
    }
    let digits = word.folded.find(|c: char| !c.is_ascii_digit())?;
    if digits > 0 {
        let (count, letters) = word.folded.split_at(digits);
        return exact(number(count)?, unit(letters)?);
    }
    // As charting programs write it.
    let (letter, count) = word.folded.split_at_checked(1)?;
    let known = matches!(letter, "m" | "h" | "d" | "w") && !count.starts_with('0');
    exact(number(count).filter(|_| known)?, letter)
}

fn exact(count: u32, unit: &str) -> Option<Interval> {
    format!("{count}{unit}").parse().ok()
}

fn unit(text: &str) -> Option<&'static str> {
    let unit = UNITS.iter().find(|(_, names)| names.contains(&text));
    unit.map(|(unit, _)| *unit)
}

fn number(text: &str) -> Option<u32> {
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
        assert_eq!(read("7 days"), Some((Length::Span, 2)));
        assert_eq!(length(&words("last 3 days"), 1), Some((Length::Span, 2)));
    }
}
