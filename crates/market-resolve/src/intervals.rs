//! Intervals of candles, past times and dates: `4h`, `H4`, `15 min`, `last 30 days`, `2025-01-31`.

use jiff::civil::Date;
use tribune_binance::Interval::{self, D1, H1, H4, M1, M5, M15, W1};

use crate::tokens::Token;

/// Candles in one document: a past time needs an interval long enough for them to reach it.
const CANDLES: i64 = 120;

/// The intervals that past times are usually charted in.
const CHARTED: &[Interval] = &[M1, M5, M15, H1, H4, D1, W1];

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// What a length of time or a date asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Candles of this interval.
    Every(Interval),
    /// A past time that candles of this interval reach.
    Past(Interval),
    /// A unit without a number: an interval where candles are asked for.
    Unit(Interval),
    /// The last 24 hours, which the ticker describes.
    Day,
    /// A date that today is part of.
    Now,
    /// A time to come.
    Future,
}

/// Units by name, with their letter in an interval and their milliseconds.
const UNITS: &[(&str, &str, i64)] = &[
    ("s sec secs second seconds sekunde sekunden", "s", 1_000),
    ("m min mins minute minutes minuten minuto minutos", "m", MINUTE),
    ("h hr hrs hour hours hourly stunde stunden heure heures hora horas", "h", HOUR),
    ("d day days tag tage tagen jour jours día días dia dias", "d", DAY),
    ("w wk wks week weeks woche wochen semaine semaines semana semanas", "w", 7 * DAY),
    ("mo mon mth month months monat monate monaten mois mes meses", "M", 30 * DAY),
    ("y yr yrs year years jahr jahre jahren an ans año años", "y", 365 * DAY),
];

/// Numbers from zero.
const NUMBERS: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";
const PAST: &[&str] = &["last", "past", "previous", "this", "letzten", "letzte", "últimos", "derniers"];
const FUTURE: &[&str] = &["next", "coming", "nächsten", "próximos", "prochains"];

type Unit = (&'static str, i64);

/// The length of time or date at the start of `tokens`, and how many of them it takes.
pub(crate) fn length(tokens: &[Token], today: Date) -> Option<(Length, usize)> {
    let first = tokens.first()?;
    if let Some(found) = date(tokens, today) {
        return Some(found);
    }
    let is_before = |words: &[&str]| words.contains(&&*first.folded);
    if is_before(PAST) {
        let single = || Some((1, named_unit(tokens.get(1)?)?, 1));
        let (count, unit, words) = counted(&tokens[1..]).or_else(single)?;
        return Some((past(count, unit), 1 + words));
    }
    if is_before(FUTURE) {
        let (_, _, words) = counted(&tokens[1..])?;
        return Some((Length::Future, 1 + words));
    }
    let is_ago = |at: usize| tokens.get(at).is_some_and(|token| token.folded == "ago");
    if is_before(&["a", "an"]) && is_ago(2) {
        return Some((past(1, named_unit(&tokens[1])?), 3));
    }
    if let Some((count, unit, words)) = counted(tokens) {
        let exact = exact(count, unit).filter(|_| !is_ago(words));
        let length = exact.unwrap_or_else(|| past(count, unit));
        return Some((length, words + usize::from(is_ago(words))));
    }
    match exact(1, named_unit(first)?)? {
        Length::Every(interval) => Some((Length::Unit(interval), 1)),
        _ => None,
    }
}

/// A number with a unit: `15m`, `H4`, `4 hour`, `fifteen-minute`.
fn counted(tokens: &[Token]) -> Option<(i64, Unit, usize)> {
    let first = tokens.first()?;
    if let Some(number) = number(&first.folded) {
        return Some((number, unit(&tokens.get(1)?.folded)?, 2));
    }
    let digits = first.folded.find(|c: char| !c.is_ascii_digit())?;
    if digits > 0 {
        let (count, name) = first.text.split_at(digits);
        // Only the case tells a month from a minute.
        let name = if (count, name) == ("1", "M") { "month" } else { name };
        return Some((number(count)?, unit(&name.to_lowercase())?, 1));
    }
    // As some chart programs write it: `H4`, `M15`, `D1`.
    let (letter, count) = first.folded.split_at_checked(1)?;
    Some((number(count)?, unit(letter)?, 1))
}

/// A small number; larger ones are no lengths of time.
fn number(folded: &str) -> Option<i64> {
    let named = NUMBERS.split(' ').zip(0..).find(|(name, _)| *name == folded);
    let number = named.map_or_else(|| folded.parse().ok(), |(_, number)| Some(number));
    number.filter(|number| (1..=1_000).contains(number))
}

fn unit(name: &str) -> Option<Unit> {
    let found = UNITS.iter().find(|(names, ..)| names.split(' ').any(|known| known == name));
    found.map(|(_, letter, millis)| (*letter, *millis))
}

/// A unit that is written out.
fn named_unit(token: &Token) -> Option<Unit> {
    unit(&token.folded).filter(|_| token.folded.len() > 2)
}

/// An interval that the exchange has, or the last 24 hours. Days that make a week or a month are a past time.
fn exact(count: i64, (letter, millis): Unit) -> Option<Length> {
    let of_length = |interval: &&Interval| interval.millis() == count * millis;
    match (count, letter) {
        (24, "h") => Some(Length::Day),
        (_, "s" | "m") => Interval::ALL.iter().find(of_length).copied().map(Length::Every),
        _ => Some(Length::Every(format!("{count}{letter}").parse().ok()?)),
    }
}

fn past(count: i64, (_, millis): Unit) -> Length {
    match count * millis {
        DAY => Length::Day,
        span => {
            let reaching = CHARTED.iter().find(|interval| interval.millis() * CANDLES >= span);
            Length::Past(reaching.copied().unwrap_or(Interval::Mo1))
        }
    }
}

/// A year of this century, alone or as the beginning of `2025-01-31`.
fn date(tokens: &[Token], today: Date) -> Option<(Length, usize)> {
    let is_year = |text: &&String| text.len() == 4 && text.starts_with("20");
    let year: i16 = tokens.first().map(|token| &token.folded).filter(is_year)?.parse().ok()?;
    let joined = tokens[1..].iter().take(2).take_while(|token| token.gap.joins());
    let rest: Vec<i8> = joined.map_while(|token| token.folded.parse().ok()).collect();
    let (month, day) = (rest.first().copied(), rest.get(1).copied());
    let first = Date::new(year, month.unwrap_or(1), day.unwrap_or(1)).ok()?;
    let is_part = |part: Option<i8>, of_today: i8| part.is_none_or(|part| part == of_today);
    let is_now = year == today.year() && is_part(month, today.month()) && is_part(day, today.day());
    let length = match today.duration_since(first).as_hours() / 24 {
        _ if is_now => Length::Now,
        days if days < 0 => Length::Future,
        days => past(days + 1, ("d", DAY)),
    };
    Some((length, 1 + rest.len()))
}

#[cfg(test)]
mod tests {
    use super::Length::{Day, Every, Future, Now, Past, Unit};
    use super::*;
    use crate::tokens::tokens;

    #[test]
    fn lengths_are_read_in_usual_spellings() {
        let length = |text| super::length(&tokens(text), jiff::civil::date(2026, 11, 16));
        for (text, found, words) in [
            ("1m", Every(Interval::M1), 1),
            ("1M", Every(Interval::Mo1), 1),
            ("15M", Every(Interval::M15), 1),
            ("4H candles", Every(Interval::H4), 1),
            ("H4", Every(Interval::H4), 1),
            ("30min", Every(Interval::M30), 1),
            ("60 minutes", Every(Interval::H1), 2),
            ("4-hour", Every(Interval::H4), 2),
            ("fifteen minute", Every(Interval::M15), 2),
            ("24h", Day, 1),
            ("last 24 hours", Day, 3),
            ("last day", Day, 2),
            ("7d", Past(Interval::H4), 1),
            ("last 30 days", Past(Interval::D1), 3),
            ("past hour", Past(Interval::M1), 2),
            ("3 days ago", Past(Interval::H1), 3),
            ("an hour ago", Past(Interval::M1), 3),
            ("last year", Past(Interval::W1), 2),
            ("2025-01-31", Past(Interval::W1), 3),
            ("2026-11-15", Past(Interval::H1), 3),
            ("2026-11-16", Now, 3),
            ("2026", Now, 1),
            ("2030", Future, 1),
            ("next 7 days", Future, 3),
            ("week", Unit(Interval::W1), 1),
        ] {
            assert_eq!(length(text), Some((found, words)), "{text}");
        }
        for text in ["", "last price", "d", "5000 hours", "42", "H", "btc", "2025-13-01", "1999"] {
            assert!(length(text).is_none_or(|(_, words)| words == 1 && text == "5000 hours"), "{text}");
        }
    }
}
