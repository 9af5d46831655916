//! Parses dates as people write them.

use jiff::civil::Date;

const MONTHS: &str = "January February March April May June July August September October November December";
const WEEKDAYS: &str = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Day {
    Certain(Date),
    /// It looks like a date, but does not exist.
    Impossible,
    /// 03/04/2024 is in March or in April.
    Ambiguous,
    NotADate,
}

/// Parses `2024-05-28` with or without a time, `20240528`, `28/05/2024`, `28 May 2024` and `Tuesday, May 28, 2024`.
pub(super) fn day(text: &str) -> Day {
    let text = text.trim();
    if text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit()) {
        return civil(&text[..4], &text[4..6], &text[6..]);
    }
    // A time begins with `T` or a space after a date in numbers.
    let date = text.split(['T', 't', ' ']).next().unwrap_or_default();
    let in_numbers = ['-', '/', '.'].iter().find_map(|separator| {
        let parts: Vec<&str> = date.split(*separator).collect();
        <[&str; 3]>::try_from(parts).ok().filter(|parts| parts.iter().all(|part| is_number(part)))
    });
    match in_numbers {
        Some([year, month, day]) if year.len() == 4 => civil(year, month, day),
        Some([a, b, year]) if year.len() == 4 => day_or_month_first(a, b, year),
        Some(_) => Day::NotADate,
        None => in_words(text),
    }
}

fn is_number(part: &str) -> bool {
    (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
}

fn civil(year: &str, month: &str, day: &str) -> Day {
    let (Ok(year), Ok(month), Ok(day)) = (year.parse(), month.parse(), day.parse()) else {
        return Day::Impossible;
    };
    Date::new(year, month, day).map_or(Day::Impossible, Day::Certain)
}

fn day_or_month_first(a: &str, b: &str, year: &str) -> Day {
    match (civil(year, b, a), civil(year, a, b)) {
        (Day::Certain(one), Day::Certain(other)) if one != other => Day::Ambiguous,
        (Day::Certain(date), _) | (_, Day::Certain(date)) => Day::Certain(date),
        _ => Day::Impossible,
    }
}

/// A day, a month's name and a year, in any order, with or without the day of the week.
fn in_words(text: &str) -> Day {
    let mut months = Vec::new();
    let mut numbers = Vec::new();
    for word in text.split([' ', ',', '-', '/', '.']).filter(|word| !word.is_empty()) {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if is_number(digits) && matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th") {
            numbers.push(digits);
        } else if let Some(at) = MONTHS.split(' ').position(|month| abbreviates(word, month)) {
            months.push((at + 1).to_string());
        } else if !WEEKDAYS.split(' ').any(|day| abbreviates(word, day)) {
            return Day::NotADate;
        }
    }
    match (&months[..], &numbers[..]) {
        ([month], [year, day]) if year.len() == 4 && day.len() <= 2 => civil(year, month, day),
        ([month], [day, year]) if year.len() == 4 && day.len() <= 2 => civil(year, month, day),
        _ => Day::NotADate,
    }
}

fn abbreviates(word: &str, name: &str) -> bool {
    let head = name.get(..word.len());
    word.len() >= 3 && head.is_some_and(|head| head.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn unambiguous_dates_are_parsed() {
        for text in [
            "2024-05-28",
            " 2024-05-28T10:00:00+10:00",
            "2024-05-28 10:00",
            "2024-5-28",
            "2024/05/28",
            "20240528",
            "28/05/2024",
            "05/28/2024",
            "28 May 2024",
            "28th May, 2024",
            "Tuesday, 28 May 2024",
            "May 28, 2024",
            "28-May-2024",
        ] {
            assert_eq!(day(text), Day::Certain(date(2024, 5, 28)), "{text}");
        }
        assert_eq!(day("3/3/2024"), Day::Certain(date(2024, 3, 3)));
    }

    #[test]
    fn impossible_dates_differ_from_no_date() {
        for text in ["2024-13-45", "2023-02-29", "31/02/2024", "30 February 2024", "20241345", "2024-00-10"] {
            assert_eq!(day(text), Day::Impossible, "{text}");
        }
        assert_eq!(day("03/04/2024"), Day::Ambiguous);
        for text in ["", "last Tuesday", "May 2024", "2024", "1-2", "May June 2024", "é", "12345", "28 May"] {
            assert_eq!(day(text), Day::NotADate, "{text}");
        }
    }
}
