//! Times on an axis, all in UTC.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::Element;

/// A time span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    from: i64,
    to: i64,
}

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The first Monday after the epoch, which was a Thursday.
const MONDAY: i64 = 4 * DAY;

/// Tick steps that divide the next larger unit.
const STEPS: [(i64, &[i64]); 4] = [
    (SECOND, &[1, 2, 5, 10, 15, 30]),
    (MINUTE, &[1, 2, 5, 10, 15, 30]),
    (HOUR, &[1, 2, 3, 6, 12]),
    (DAY, &[1, 2, 3, 7, 14]),
];
/// Longer steps, in months.
const LONG_STEPS: [i64; 14] = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000, 60_000, 120_000];
const MONTH: i64 = 30 * DAY;

impl Window {
    /// At least a second long.
    pub fn new(from: Timestamp, to: Timestamp) -> Self {
        let (from, to) = (from.as_millisecond(), to.as_millisecond());
        Self { from, to: to.max(from + SECOND) }
    }

    pub fn millis(self) -> i64 {
        self.to - self.from
    }

    /// From 0 at the start to 1 at the end; clamped.
    pub fn share(self, at: Timestamp) -> f64 {
        let since = at.as_millisecond() - self.from;
        (since as f64 / self.millis() as f64).clamp(0.0, 1.0)
    }

    /// At most about `most` round times with their labels.
    pub fn ticks(self, most: usize) -> Vec<(Timestamp, String)> {
        let wanted = self.millis() / i64::try_from(most.clamp(1, 20)).unwrap_or(1);
        let mut steps = STEPS.iter().flat_map(|(unit, counts)| counts.iter().map(move |count| unit * count));
        match steps.find(|step| *step >= wanted) {
            Some(step) => self.even_ticks(step),
            None => self.month_ticks(wanted),
        }
    }

    fn even_ticks(self, step: i64) -> Vec<(Timestamp, String)> {
        let origin = if step >= 7 * DAY { MONDAY } else { 0 };
        let first = (self.from - origin).div_euclid(step) * step + origin;
        (0..=41)
            .map(|index| first + index * step)
            .filter(|at| (self.from..=self.to).contains(at))
            .filter_map(|at| Timestamp::from_millisecond(at).ok())
            .map(|at| (at, even_label(at, step)))
            .collect()
    }

    fn month_ticks(self, wanted: i64) -> Vec<(Timestamp, String)> {
        let wanted = wanted / MONTH;
        let longest = LONG_STEPS[LONG_STEPS.len() - 1];
        let step = LONG_STEPS.into_iter().find(|step| *step >= wanted).unwrap_or(longest);
        let Some(first) = self.first_year(step / 12) else {
            return Vec::new();
        };
        let moments = first.series(step.months()).take(200).map_while(midnight);
        moments
            .take_while(|at| at.as_millisecond() <= self.to)
            .filter(|at| at.as_millisecond() >= self.from)
            .map(|at| (at, month_label(at)))
            .collect()
    }

    /// The start of the last year at or before the window, in steps of `step` years.
    fn first_year(self, step: i64) -> Option<Date> {
        let from = Timestamp::from_millisecond(self.from).ok()?;
        let year = from.to_zoned(TimeZone::UTC).year();
        let step = i16::try_from(step.max(1)).ok()?;
        Date::new(year.div_euclid(step) * step, 1, 1).ok()
    }
}

fn midnight(date: Date) -> Option<Timestamp> {
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn month_label(at: Timestamp) -> String {
    let is_january = at.to_zoned(TimeZone::UTC).month() == 1;
    at.strftime(if is_january { "%Y" } else { "%b" }).to_string()
}

/// The date at midnight, else the time.
fn even_label(at: Timestamp, step: i64) -> String {
    let format = if at.as_millisecond().rem_euclid(DAY) == 0 {
        "%-d %b"
    } else if step < MINUTE {
        "%H:%M:%S"
    } else {
        "%H:%M"
    };
    at.strftime(format).to_string()
}

/// `2026-03-01T09:05:07.250Z` formatted for people; `None` for any other text.
pub fn moment(text: &str) -> Option<Element> {
    let is_exact = text.is_ascii() && text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
    let at: Timestamp = text.parse().ok().filter(|_| is_exact)?;
    let written = text[11..].trim_end_matches('Z').trim_end_matches(".000");
    let shown = format!("{} {written} UTC", &text[..10]);
    Some(Element::classed("time", "num").with("datetime", at.to_string()).text(shown))
}

/// To the minute, for sentences.
pub fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// To the second.
pub fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `from 2026-03-01 09:00 to 17:00 UTC`, with the date once if both are equal, or one time if both times are equal.
pub fn span(from: Timestamp, to: Timestamp) -> String {
    if from == to {
        return format!("at {}", minute(from));
    }
    let (first, last) = (from.strftime("%Y-%m-%d"), to.strftime("%Y-%m-%d"));
    let is_short = to.as_millisecond() - from.as_millisecond() < 10 * MINUTE;
    let time = if is_short { "%H:%M:%S" } else { "%H:%M" };
    let (begin, end) = (from.strftime(time), to.strftime(time));
    if first.to_string() == last.to_string() {
        format!("from {first} {begin} to {end} UTC")
    } else {
        format!("from {first} {begin} to {last} {end} UTC")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn labels(from: &str, to: &str, most: usize) -> Vec<String> {
        let ticks = Window::new(at(from), at(to)).ticks(most);
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_with_short_labels() {
        assert_eq!(labels("2026-03-01T20:10:00Z", "2026-03-02T04:10:00Z", 5), ["22:00", "2 Mar", "02:00", "04:00"]);
        assert_eq!(
            labels("2026-03-01T09:00:02Z", "2026-03-01T09:01:02Z", 4),
            ["09:00:15", "09:00:30", "09:00:45", "09:01:00"]
        );
        // 2 and 9 March 2026 are Mondays.
        assert_eq!(labels("2026-03-01T00:00:00Z", "2026-03-15T00:00:00Z", 3), ["2 Mar", "9 Mar"]);
        assert_eq!(labels("2025-09-20T00:00:00Z", "2026-08-01T00:00:00Z", 5), ["Oct", "2026", "Apr", "Jul"]);
        assert_eq!(labels("1999-06-01T00:00:00Z", "2031-06-01T00:00:00Z", 4), ["2000", "2010", "2020", "2030"]);
    }

    #[test]
    fn span_of_one_day_has_one_date() {
        let (from, to) = (at("2026-03-01T09:00:00Z"), at("2026-03-01T17:30:00Z"));
        assert_eq!(span(from, to), "from 2026-03-01 09:00 to 17:30 UTC");
        assert_eq!(span(from, from), "at 2026-03-01 09:00 UTC");
        let next = at("2026-03-02T09:00:00Z");
        assert_eq!(span(from, next), "from 2026-03-01 09:00 to 2026-03-02 09:00 UTC");
        let soon = at("2026-03-01T09:04:05Z");
        assert_eq!(span(from, soon), "from 2026-03-01 09:00:00 to 09:04:05 UTC");
    }

    proptest! {
        #[test]
        fn ticks_lie_inside_and_increase(
            a in Timestamp::MIN.as_millisecond()..Timestamp::MAX.as_millisecond(),
            span in 0i64..400_000 * DAY,
            most in 0usize..30,
        ) {
            let from = Timestamp::from_millisecond(a).expect("in range");
            let to = Timestamp::from_millisecond(a.saturating_add(span)).unwrap_or(Timestamp::MAX);
            let window = Window::new(from, to);
            let ticks = window.ticks(most);
            prop_assert!(ticks.len() <= 2 * most.clamp(1, 20) + 2, "{:?}", ticks);
            prop_assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for (moment, _) in ticks {
                prop_assert!(moment.as_millisecond() >= window.from && moment.as_millisecond() <= window.to);
                prop_assert!((0.0..=1.0).contains(&window.share(moment)));
            }
        }
    }

    #[test]
    fn iso_timestamps_are_formatted_for_people() {
        let shown = |text: &str| moment(text).map(|element| element.to_string());
        assert_eq!(
            shown("2026-03-01T09:05:07.250Z").as_deref(),
            Some("<time class=\"num\" datetime=\"2026-03-01T09:05:07.25Z\">2026-03-01 09:05:07.250 UTC</time>")
        );
        assert!(shown("2026-03-01T09:05:00.000Z").is_some_and(|text| text.contains(">2026-03-01 09:05:00 UTC<")));
        for text in ["2026-03-01", "64010.73", "", "2026-03-01T99:05:00.000Z", "2026-03-01é09:05:00.000Z"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
