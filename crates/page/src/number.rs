//! Numbers for people: grouped digits, a real minus sign, ages in a fitting unit.

/// As wide as a plus sign, and never at the end of a line.
pub const MINUS: char = '\u{2212}';
/// Larger numbers are written with a power of ten.
const MOST_WRITTEN_OUT: f64 = 1e15;
const MOST_PLACES: usize = 12;

/// An exact decimal with its digits in groups: `-1234567.8900` is `−1,234,567.8900`. Other text is unchanged.
pub fn grouped(text: &str) -> String {
    let Some((sign, whole, fraction)) = parts(text) else {
        return text.to_owned();
    };
    let mut written = String::with_capacity(text.len() + whole.len() / 3 + 2);
    written.extend(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    if let Some(fraction) = fraction {
        written.push('.');
        written.push_str(fraction);
    }
    written
}

/// Whether a text is a decimal that [`grouped`] would group.
pub fn is_decimal(text: &str) -> bool {
    parts(text).is_some()
}

/// Whether a decimal has a sign.
pub fn is_signed(text: &str) -> bool {
    matches!(parts(text), Some((Some(_), ..)))
}

/// Sign, digits before the point, digits after it.
fn parts(text: &str) -> Option<(Option<char>, &str, Option<&str>)> {
    let (sign, digits) = match text.chars().next()? {
        '+' => (Some('+'), &text[1..]),
        '-' => (Some(MINUS), &text[1..]),
        MINUS => (Some(MINUS), &text[MINUS.len_utf8()..]),
        _ => (None, text),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (all_digits(whole) && fraction.is_none_or(all_digits)).then_some((sign, whole, fraction))
}

/// With a fixed number of decimal places.
pub fn fixed(value: f64, places: usize) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    if value.abs() >= MOST_WRITTEN_OUT || places > MOST_PLACES {
        return format!("{value:.2e}").replace('-', "\u{2212}");
    }
    let written = format!("{value:.places$}");
    let is_zero = !written.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    match written.strip_prefix('-') {
        // A rest below half of the last place is rounding.
        Some(zero) if is_zero => grouped(zero),
        _ => grouped(&written),
    }
}

/// Always with a sign.
pub fn signed(value: f64, places: usize) -> String {
    let written = fixed(value, places);
    let is_zero = !written.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if value > 0.0 && !is_zero { format!("+{written}") } else { written }
}

/// About four significant digits, for sums in sentences: `12,346`, `3.142`, `0.001235`.
pub fn short(value: f64) -> String {
    fixed(value, places_for(value, 4))
}

/// The decimal places needed for `digits` significant digits.
fn places_for(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let first = value.abs().log10().floor() as i32;
    usize::try_from(digits - 1 - first).unwrap_or(0)
}

/// For axes, where there is little room: `950`, `1.2k`, `35M`.
pub fn compact(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")];
    let size = value.abs();
    if size >= MOST_WRITTEN_OUT || !value.is_finite() {
        return fixed(value, 0);
    }
    let unit = UNITS.iter().find(|(unit, _)| size >= *unit);
    let (scaled, suffix) = unit.map_or((value, ""), |(unit, suffix)| (value / unit, *suffix));
    let written = fixed(scaled, places_for(scaled, 3));
    let trimmed = if written.contains('.') && !written.contains('e') {
        written.trim_end_matches('0').trim_end_matches('.')
    } else {
        &written
    };
    format!("{trimmed}{suffix}")
}

/// An age: `0.4 s`, `42 s`, `3 min`, `5 h`, `12 d`.
pub fn age(ms: u64) -> String {
    const SECOND: u64 = 1000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match ms {
        ..10_000 => format!("{}.{}\u{a0}s", ms / SECOND, ms % SECOND / 100),
        10_000..MINUTE => format!("{}\u{a0}s", ms / SECOND),
        MINUTE..HOUR => format!("{}\u{a0}min", ms / MINUTE),
        _ if ms < 2 * DAY => format!("{}\u{a0}h", ms / HOUR),
        _ => format!("{}\u{a0}d", grouped(&(ms / DAY).to_string())),
    }
}

/// The change in percent, with sign; `None` if it cannot be computed.
pub fn change(from: f64, to: f64) -> Option<String> {
    let percent = (to - from) / from.abs() * 100.0;
    percent.is_finite().then(|| format!("{}\u{a0}%", signed(percent, 2)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_decimals_are_grouped() {
        for (given, written) in [
            ("-1234567.8900", "−1,234,567.8900"),
            ("+1.703", "+1.703"),
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("123456", "123,456"),
            ("0.00001234", "0.00001234"),
            ("−1234", "−1,234"),
            ("1e-8", "1e-8"),
            ("1,000", "1,000"),
            ("12.", "12."),
            (".5", ".5"),
            ("-", "-"),
            ("", ""),
            ("no liquidity", "no liquidity"),
            ("١٢٣٤", "١٢٣٤"),
        ] {
            assert_eq!(grouped(given), written);
        }
    }

    #[test]
    fn floats_have_fixed_places() {
        assert_eq!(fixed(-1234.5, 2), "−1,234.50");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(1e18, 2), "1.00e18");
        assert_eq!(fixed(f64::NAN, 2), "unknown");
        assert_eq!(signed(0.5, 1), "+0.5");
        assert_eq!(signed(0.01, 1), "0.0");
        assert_eq!(short(12345.6), "12,346");
        assert_eq!(short(2.34567), "2.346");
        assert_eq!(short(0.00123456), "0.001235");
        assert_eq!(short(0.0), "0");
    }

    #[test]
    fn axis_labels_are_compact() {
        for (value, written) in [
            (0.0, "0"),
            (950.0, "950"),
            (1234.0, "1.23k"),
            (35_000_000.0, "35M"),
            (-2_500_000_000.0, "−2.5B"),
            (0.05, "0.05"),
            (1e18, "1.00e18"),
        ] {
            assert_eq!(compact(value), written);
        }
    }

    #[test]
    fn ages_use_fitting_units() {
        for (ms, written) in [
            (0, "0.0\u{a0}s"),
            (449, "0.4\u{a0}s"),
            (9_999, "9.9\u{a0}s"),
            (10_000, "10\u{a0}s"),
            (180_000, "3\u{a0}min"),
            (7_200_000, "2\u{a0}h"),
            (172_800_000, "2\u{a0}d"),
            (u64::MAX, "213,503,982,334\u{a0}d"),
        ] {
            assert_eq!(age(ms), written);
        }
    }

    #[test]
    fn change_is_percent_of_old_value() {
        assert_eq!(change(200.0, 203.0).as_deref(), Some("+1.50\u{a0}%"));
        assert_eq!(change(-2.0, -3.0).as_deref(), Some("−50.00\u{a0}%"));
        assert_eq!(change(0.0, 1.0), None);
        assert_eq!(change(f64::NAN, 1.0), None);
    }

    proptest! {
        #[test]
        fn grouping_keeps_every_digit(given in r"[+-]?[0-9]{1,40}(\.[0-9]{1,30})?") {
            let back: String = grouped(&given).replace(',', "").replace(MINUS, "-");
            prop_assert_eq!(back, given);
        }

        #[test]
        fn other_text_is_unchanged(given in "\\PC*") {
            prop_assume!(!is_decimal(&given));
            prop_assert_eq!(grouped(&given), given);
        }

        #[test]
        fn every_float_can_be_written(value: f64, places in 0usize..400) {
            for written in [fixed(value, places), signed(value, places), short(value), compact(value)] {
                prop_assert!(!written.contains("NaN") && !written.contains("inf"), "{}", written);
                prop_assert!(written.chars().count() <= 40, "{}", written);
            }
        }
    }
}
