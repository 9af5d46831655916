//! Rows of one kind, as `{columns, rows}` on the wire, and how many of them fit in an answer.

use std::io;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What the rows of all tables of an answer may take on the wire.
const MAX_TABLE_BYTES: usize = 72_000;

/// A value that is written as one row of cells.
pub trait Row: Sized {
    const COLUMNS: &'static [&'static str];
    /// A tuple with one element a column.
    type Cells: Serialize + DeserializeOwned;
    fn cells(&self) -> Self::Cells;
    fn from_cells(cells: Self::Cells) -> Self;
}

/// Defines a struct that is written as one row, each field under the name of its column.
macro_rules! row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty = $column:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name { $($(#[$doc])* pub(crate) $field: $type),* }

        impl $crate::kinds::table::Row for $name {
            const COLUMNS: &'static [&'static str] = &[$($column),*];
            type Cells = ($($type,)*);
            fn cells(&self) -> Self::Cells {
                ($(self.$field.clone(),)*)
            }
            fn from_cells(($($field,)*): Self::Cells) -> Self {
                Self { $($field),* }
            }
        }
    };
}
pub(crate) use row;

#[derive(Debug, Clone, PartialEq)]
pub struct Table<R> {
    pub rows: Vec<R>,
    /// How many did not fit, and on which side.
    dropped: usize,
    keep: Keep,
}

/// Which rows stay when not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    First,
    Last,
}

impl<R: Row> Table<R> {
    /// As many rows as fit in an answer with so many tables.
    pub fn fitted(rows: Vec<R>, keep: Keep, tables: usize) -> Self {
        Self::within(rows, keep, MAX_TABLE_BYTES / tables)
    }

    fn within(mut rows: Vec<R>, keep: Keep, budget: usize) -> Self {
        let mut spent = 0;
        let mut fits = |row: &&R| {
            spent += wire_bytes(&row.cells());
            spent <= budget
        };
        let kept = match keep {
            Keep::First => rows.iter().take_while(&mut fits).count(),
            Keep::Last => rows.iter().rev().take_while(&mut fits).count(),
        };
        let dropped = rows.len() - kept;
        match keep {
            Keep::First => rows.truncate(kept),
            Keep::Last => drop(rows.drain(..dropped)),
        }
        Self { rows, dropped, keep }
    }

    /// Counts rows that were left out before.
    #[must_use]
    pub const fn with_left_out(mut self, rows: usize) -> Self {
        self.dropped += rows;
        self
    }

    /// Says how many rows are missing, if any are.
    pub fn cut(&self) -> Option<String> {
        let place = match self.keep {
            Keep::First => "after the last",
            Keep::Last => "before the first",
        };
        let dropped = self.dropped;
        let cut = format!("{dropped} rows {place} that is listed do not fit in one answer and are left out");
        (dropped > 0).then_some(cut)
    }
}

impl<R> From<Vec<R>> for Table<R> {
    /// All of them.
    fn from(rows: Vec<R>) -> Self {
        Self { rows, dropped: 0, keep: Keep::First }
    }
}

/// What a row takes in an answer, which holds its JSON twice: as structure, and as a string in which quotes are escaped.
fn wire_bytes(cells: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let escaped = bytes.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count();
            self.0 += 2 * bytes.len() + escaped;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // With the comma behind it, which stands twice too.
    let mut counter = Counter(2);
    match serde_json::to_writer(&mut counter, cells) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

#[derive(Serialize)]
struct Wire<'a, C> {
    columns: &'a [&'a str],
    rows: Vec<C>,
}

impl<R: Row> Serialize for Table<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire { columns: R::COLUMNS, rows: self.rows.iter().map(Row::cells).collect() };
        wire.serialize(serializer)
    }
}

impl<'de, R: Row> Deserialize<'de> for Table<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Kept<C> {
            rows: Vec<C>,
        }
        let kept = Kept::<R::Cells>::deserialize(deserializer)?;
        let rows: Vec<R> = kept.rows.into_iter().map(R::from_cells).collect();
        Ok(rows.into())
    }
}

impl<R> JsonSchema for Table<R> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Table".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Clone)]
    struct Sample(u64);

    impl Row for Sample {
        const COLUMNS: &'static [&'static str] = &["a", "b", "c", "d"];
        type Cells = (u64, String, Option<String>, String);
        fn cells(&self) -> Self::Cells {
            let price = "64033.37000000".to_owned();
            (1_700_000_000_000 + self.0, price, None, "0.5".to_owned())
        }
        fn from_cells(cells: Self::Cells) -> Self {
            Self(cells.0 - 1_700_000_000_000)
        }
    }

    /// An answer holds its JSON twice, the second time as a string: rows take no more than they may, and as much as they
    /// can.
    #[test]
    fn rows_take_the_bytes_they_are_counted_for() {
        for budget in [0, 90, 91, 5_000, 72_000] {
            let rows: Vec<Sample> = (0..1_000).map(Sample).collect();
            let mut table = Table::within(rows, Keep::First, budget);
            assert_eq!(table.rows.len() + table.dropped, 1_000);
            let on_wire = |rows: &[Sample]| {
                let cells: Vec<_> = rows.iter().map(Row::cells).collect();
                let json = json!(cells).to_string();
                let escaped = json!(json).to_string();
                json.len() + escaped.len()
            };
            let frame = on_wire(&[]);
            assert!(on_wire(&table.rows) <= budget + frame, "{budget}");
            let next = Sample(table.rows.len() as u64);
            table.rows.push(next);
            assert!(on_wire(&table.rows) + 4 > budget + frame, "one more fits into {budget}");
        }
    }

    #[test]
    fn tables_are_read_back_from_their_json() {
        let table = Table::fitted(vec![Sample(1), Sample(2)], Keep::Last, 1);
        let written = json!(table);
        assert_eq!(written["columns"], json!(["a", "b", "c", "d"]));
        let read: Table<Sample> = serde_json::from_value(written.clone()).expect("a table");
        assert_eq!(json!(read), written);
    }
}
