//! Times of events in milliseconds. Clients can ask the exchange for microseconds, and a recorder may have; whoever
//! listens here has not.

use std::borrow::Cow;

/// The fields of events that are times, in all of them.
const TIME_FIELDS: [&str; 5] = ["\"E\"", "\"T\"", "\"t\"", "\"O\"", "\"C\""];
const MILLIS_DIGITS: usize = 13;

/// The same event with times in milliseconds; others are as they were, byte for byte.
pub fn in_millis(data: &str) -> Cow<'_, str> {
    if !field_values(data, "\"E\"").any(|(_, digits)| is_finer(digits)) {
        return Cow::Borrowed(data);
    }
    let mut excess: Vec<(usize, usize)> = TIME_FIELDS
        .iter()
        .flat_map(|field| field_values(data, field))
        .filter(|(_, digits)| is_finer(*digits))
        .map(|(at, digits)| (at + MILLIS_DIGITS, at + digits))
        .collect();
    excess.sort_unstable();
    let mut text = String::with_capacity(data.len());
    let mut done = 0;
    for (start, end) in excess {
        text.push_str(&data[done..start]);
        done = end;
    }
    text.push_str(&data[done..]);
    Cow::Owned(text)
}

/// Micro- or nanoseconds. Ids have fewer digits.
const fn is_finer(digits: usize) -> bool {
    digits == 16 || digits == 19
}

/// Where the numbers of a field are, and how many digits each has.
fn field_values<'a>(data: &'a str, field: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    data.match_indices(field).filter_map(move |(at, _)| {
        let rest = data[at + field.len()..].trim_start().strip_prefix(':')?.trim_start();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        Some((data.len() - rest.len(), digits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_and_nanoseconds_become_milliseconds() {
        for (fine, millis) in [
            (
                r#"{"e":"trade","E":1750000040123456,"t":4829175534,"p":"1","T":1750000040123999}"#,
                r#"{"e":"trade","E":1750000040123,"t":4829175534,"p":"1","T":1750000040123}"#,
            ),
            (
                r#"{"e":"kline", "E": 1750000040123456789, "k": {"t": 1750000040000000000, "s": "T"}}"#,
                r#"{"e":"kline", "E": 1750000040123, "k": {"t": 1750000040000, "s": "T"}}"#,
            ),
            (
                r#"{"e":"depthUpdate","E":1750000040123,"U":1750000040123456}"#,
                r#"{"e":"depthUpdate","E":1750000040123,"U":1750000040123456}"#,
            ),
            (r#"{"E":"1750000040123456","T":}"#, r#"{"E":"1750000040123456","T":}"#),
        ] {
            assert_eq!(in_millis(fine), millis);
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "(\"[ETtOC]\" ?:? ?[0-9]{0,20}|[a-zäé {}])*") {
            let _ = in_millis(&text);
        }
    }
}
