//! The name of a record.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

/// Five bits per letter, without `i`, `l`, `o` and `u`, which are easily misread.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 13;
const RANDOM_BITS: u32 = 20;
const MAX_MILLIS: i64 = (1 << (63 - RANDOM_BITS)) - 1;

/// The time of a citation in milliseconds and 20 random bits: 13 letters and digits that sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(i64);

impl Token {
    /// Times before 1970 or after 2248 become the nearest that a token can hold.
    pub(super) fn new(at: Timestamp, random: u32) -> Self {
        let millis = at.as_millisecond().clamp(0, MAX_MILLIS);
        Self(millis << RANDOM_BITS | i64::from(random & ((1 << RANDOM_BITS) - 1)))
    }

    /// Only what [`fmt::Display`] prints is a token.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != LENGTH {
            return None;
        }
        let mut bits: u128 = 0;
        for byte in text.bytes() {
            let value = LETTERS.iter().position(|letter| *letter == byte)?;
            bits = bits << 5 | value as u128;
        }
        i64::try_from(bits).ok().map(Self)
    }

    /// Sorts as the token does.
    pub(super) const fn number(self) -> i64 {
        self.0
    }

    pub fn frozen_at(self) -> Timestamp {
        Timestamp::from_millisecond(self.0 >> RANDOM_BITS).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// How long ago the record was stored; zero for a time in the future.
    pub(super) fn age(self, now: Timestamp) -> Duration {
        let millis = now.as_millisecond().saturating_sub(self.frozen_at().as_millisecond());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in (0..LENGTH).rev() {
            let value = (self.0 as u128) >> (5 * place) & 31;
            write!(f, "{}", char::from(LETTERS[value as usize]))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a moment")
    }

    #[test]
    fn token_is_thirteen_letters() {
        assert_eq!(Token::new(at(0), 0).to_string(), "0000000000000");
        assert_eq!(Token::new(at(0), 33).to_string(), "0000000000011");
        // 20 random bits are four letters, so one millisecond is 1 in the fifth from the end.
        assert_eq!(Token::new(at(1), 0).to_string(), "0000000010000");
        assert_eq!(Token::new(at(-5), 0).to_string(), "0000000000000");
        assert_eq!(Token(i64::MAX).to_string(), "7zzzzzzzzzzzz");
    }

    #[test]
    fn other_text_is_no_token() {
        for text in [
            "",
            "000000000000",
            "00000000000000",
            "8000000000000",
            "zzzzzzzzzzzzz",
            "000000000000I",
            "000000000000U",
            "00000000000A0",
            "../../etc/pas",
            "000000000000é",
            "0000000000é0",
        ] {
            assert_eq!(Token::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn tokens_round_trip_and_sort_by_time(
            a in 0..4_000_000_000_000i64, b in 0..4_000_000_000_000i64, random in 0u32..,
        ) {
            let (first, second) = (Token::new(at(a), random), Token::new(at(b), random));
            prop_assert_eq!(Token::parse(&first.to_string()), Some(first));
            prop_assert_eq!(first.frozen_at(), at(a));
            prop_assert_eq!(first.cmp(&second), a.cmp(&b));
            prop_assert_eq!(first.to_string().cmp(&second.to_string()), a.cmp(&b));
        }

        #[test]
        fn any_text_is_a_token_or_none(text in "\\PC{0,20}|[0-9a-z]{13}") {
            if let Some(token) = Token::parse(&text) {
                prop_assert_eq!(token.to_string(), text);
            }
        }
    }
}
