//! Rows of one kind, as `{columns, rows}` on the wire, and how many of them fit in an answer.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// What the rows of an answer may take on the wire.
const MAX_TABLE_BYTES: usize = 72_000;

/// A value that is written as one row of cells.
pub trait Row {
    const COLUMNS: &'static [&'static str];
    /// A tuple with one element a column.
    fn cells(&self) -> impl Serialize;
}

#[derive(Debug, Clone, PartialEq)]
pub struct Table<R>(pub Vec<R>);

/// Which rows stay when not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    First,
    Last,
}

impl<R: Row> Table<R> {
    /// As many rows as fit in an answer.
    pub fn fitted(rows: Vec<R>, keep: Keep) -> Self {
        Self::within(rows, keep, MAX_TABLE_BYTES)
    }

    fn within(mut rows: Vec<R>, keep: Keep, budget: usize) -> Self {
        let mut spent = 0;
        let mut fits = |row: &&R| {
            spent += wire_bytes(&row.cells());
            spent <= budget
        };
        match keep {
            Keep::First => rows.truncate(rows.iter().take_while(&mut fits).count()),
            Keep::Last => drop(rows.drain(..rows.len() - rows.iter().rev().take_while(&mut fits).count())),
        }
        Self(rows)
    }
}

impl Keep {
    /// Says how many rows of an answer are not listed, if any are not.
    pub fn cut(self, listed: usize, all: usize) -> Option<String> {
        let place = match self {
            Self::First => "after the last",
            Self::Last => "before the first",
        };
        let missing = all.checked_sub(listed).filter(|missing| *missing > 0)?;
        Some(format!("{missing} rows {place} that is listed do not fit in one answer and are left out"))
    }
}

/// What a row and its comma take in an answer, which holds its JSON twice: as structure, and as a string in which quotes
/// are escaped.
fn wire_bytes(cells: &impl Serialize) -> usize {
    let json = serde_json::to_string(cells).unwrap_or_default();
    2 * (json.len() + 1) + json.matches(['"', '\\']).count()
}

impl<R: Row> Serialize for Table<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<C> {
            columns: &'static [&'static str],
            rows: Vec<C>,
        }
        Wire { columns: R::COLUMNS, rows: self.0.iter().map(Row::cells).collect() }.serialize(serializer)
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
        fn cells(&self) -> impl Serialize {
            let price = "64033.37000000".to_owned();
            (1_700_000_000_000 + self.0, price, None::<String>, "0.5".to_owned())
        }
    }

    /// An answer holds its JSON twice, the second time as a string: rows take no more than they may, and as much as they
    /// can.
    #[test]
    fn row_sizes_are_counted_exactly() {
        for budget in [0, 90, 91, 5_000, 72_000] {
            let rows: Vec<Sample> = (0..1_000).map(Sample).collect();
            let mut table = Table::within(rows, Keep::First, budget);
            let on_wire = |rows: &[Sample]| {
                let cells: Vec<_> = rows.iter().map(Row::cells).collect();
                let json = json!(cells).to_string();
                let escaped = json!(json).to_string();
                json.len() + escaped.len()
            };
            let frame = on_wire(&[]);
            assert!(on_wire(&table.0) <= budget + frame, "{budget}");
            let next = Sample(table.0.len() as u64);
            table.0.push(next);
            assert!(on_wire(&table.0) + 4 > budget + frame, "one more fits into {budget}");
        }
    }

    #[test]
    fn missing_rows_are_counted() {
        let table = Table::fitted(vec![Sample(1), Sample(2)], Keep::Last);
        assert_eq!((json!(table)["columns"].clone(), Keep::Last.cut(2, 2)), (json!(["a", "b", "c", "d"]), None));
        assert!(Keep::First.cut(2, 5).is_some_and(|cut| cut.starts_with("3 rows after the last")));
    }
}
