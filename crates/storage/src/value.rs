//! Parameters of statements and columns of rows.
//!
//! Columns have two types that sort the same in both databases: text and 64-bit integers. An id is its usual 36
//! characters, so that people can read and type it. A time is microseconds since 1970, truncated. A day is the number of
//! its digits, `20261116`. A priority is its rank, 0 for the most urgent. Lists of texts are JSON.

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::postgres::{PgRow, Postgres};
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{Decode, Row as _, Type};
use tribune_core::{Error, Result, UserId};
use uuid::Uuid;

/// A bound parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
}

/// The time as it is stored: truncated to the microsecond.
pub(crate) fn truncate_time(time: Timestamp) -> Result<Timestamp> {
    timestamp(microseconds(time))
}

fn microseconds(time: Timestamp) -> i64 {
    // Timestamps end with the year 9999, so this always fits.
    i64::try_from(time.as_nanosecond().div_euclid(1_000)).unwrap_or(i64::MAX)
}

fn timestamp(microseconds: i64) -> Result<Timestamp> {
    // Not `from_microsecond`, which rejects the last representable second.
    let nanoseconds = i128::from(microseconds) * 1_000;
    Timestamp::from_nanosecond(nanoseconds).map_err(|error| unreadable("a time").caused_by(error))
}

fn day_number(date: Date) -> i64 {
    i64::from(date.year()) * 10_000 + i64::from(date.month()) * 100 + i64::from(date.day())
}

fn date(day_number: i64) -> Result<Date> {
    let year = i16::try_from(day_number.div_euclid(10_000)).ok();
    let rest = day_number.rem_euclid(10_000);
    // Both parts have two digits.
    let date = year.and_then(|year| Date::new(year, (rest / 100) as i8, (rest % 100) as i8).ok());
    date.ok_or_else(|| unreadable("a day"))
}

pub(crate) fn unreadable(what: &str) -> Error {
    Error::internal(format!(
        "{what} in the database cannot be read: something else than Tribune seems to have written it"
    ))
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<&UserId> for Value {
    fn from(user: &UserId) -> Self {
        user.as_str().into()
    }
}

impl From<Uuid> for Value {
    fn from(id: Uuid) -> Self {
        id.hyphenated().to_string().into()
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(Some(number))
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        microseconds(time).into()
    }
}

impl From<Option<Timestamp>> for Value {
    fn from(time: Option<Timestamp>) -> Self {
        Self::Integer(time.map(microseconds))
    }
}

impl From<Date> for Value {
    fn from(date: Date) -> Self {
        day_number(date).into()
    }
}

impl From<Option<Date>> for Value {
    fn from(date: Option<Date>) -> Self {
        Self::Integer(date.map(day_number))
    }
}

/// A result row, read by column name.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Row {
    /// Text, a number, or an option of one.
    pub(crate) fn get<T>(&self, column: &'static str) -> Result<T>
    where
        T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>,
    {
        let value = match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        };
        value.map_err(|error| unreadable("a row").caused_by(error))
    }

    pub(crate) fn count(&self, column: &'static str) -> Result<u64> {
        u64::try_from(self.get::<i64>(column)?).map_err(|error| unreadable("a count").caused_by(error))
    }

    pub(crate) fn uuid(&self, column: &'static str) -> Result<Uuid> {
        Uuid::try_parse(&self.get::<String>(column)?).map_err(|error| unreadable("an id").caused_by(error))
    }

    pub(crate) fn user(&self, column: &'static str) -> Result<UserId> {
        UserId::new(&self.get::<String>(column)?).map_err(|error| unreadable("a user's name").caused_by(error))
    }

    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp> {
        timestamp(self.get(column)?)
    }

    pub(crate) fn maybe_time(&self, column: &'static str) -> Result<Option<Timestamp>> {
        self.get::<Option<i64>>(column)?.map(timestamp).transpose()
    }

    pub(crate) fn maybe_date(&self, column: &'static str) -> Result<Option<Date>> {
        self.get::<Option<i64>>(column)?.map(date).transpose()
    }

    pub(crate) fn texts(&self, column: &'static str) -> Result<Vec<String>> {
        Ok(self.maybe_texts(column)?.unwrap_or_default())
    }

    pub(crate) fn maybe_texts(&self, column: &'static str) -> Result<Option<Vec<String>>> {
        let stored: Option<String> = self.get(column)?;
        let read = stored.map(|stored| serde_json::from_str(&stored)).transpose();
        read.map_err(|error| unreadable("a list").caused_by(error))
    }
}

/// The rows that hold something: an outer join without a match gives one without an id.
pub(crate) fn with_id(rows: &[Row]) -> Result<Vec<&Row>> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        if row.get::<Option<String>>("id")?.is_some() {
            found.push(row);
        }
    }
    Ok(found)
}

/// A digest as it is stored.
pub(crate) fn hex(sha256: [u8; 32]) -> String {
    sha256.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A list of texts as it is stored.
pub(crate) fn json(texts: &[String]) -> Result<String> {
    serde_json::to_string(texts)
        .map_err(|error| Error::internal("a list could not be written as JSON").caused_by(error))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date as day;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_become_the_number_of_their_digits() {
        assert_eq!(day_number(day(2026, 11, 16)), 20_261_116);
        assert_eq!(date(20_261_116).expect("a day"), day(2026, 11, 16));
        for wrong in [0, 20_261_316, 20_260_230, i64::MIN, i64::MAX] {
            assert!(date(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_before_1970_are_truncated() {
        let time: Timestamp = "1969-12-31T23:59:59.123456789Z".parse().expect("a time");
        let cut: Timestamp = "1969-12-31T23:59:59.123456Z".parse().expect("a time");
        assert_eq!(truncate_time(time).expect("a time"), cut);
        assert_eq!(truncate_time(cut).expect("a time"), cut);
    }

    #[test]
    fn first_and_last_timestamps_survive() {
        for time in [Timestamp::MIN, Timestamp::MAX] {
            let stored = truncate_time(time).expect("a time");
            assert!((time - stored).total(jiff::Unit::Microsecond).expect("a span") < 1.0);
        }
    }

    proptest! {
        #[test]
        fn day_numbers_sort_and_round_trip(a in -9999_i16..=9999, b in 1_i8..=12, c in 1_i8..=28,
                                                    x in -9999_i16..=9999, y in 1_i8..=12, z in 1_i8..=28) {
            let (one, other) = (day(a, b, c), day(x, y, z));
            prop_assert_eq!(one.cmp(&other), day_number(one).cmp(&day_number(other)));
            prop_assert_eq!(date(day_number(one)).expect("a day"), one);
        }
    }
}
