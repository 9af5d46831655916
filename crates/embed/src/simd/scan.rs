//! Dot products of one int8 vector with many.

use super::{Kind, Level, portable};

/// Queries are padded with zeros to whole registers.
const LANES: usize = 64;

/// Rows of signed bytes in records of `stride` bytes, each row `offset` bytes into its record.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub records: &'a [u8],
    pub stride: usize,
    pub offset: usize,
    pub dimensions: usize,
}

impl Rows<'_> {
    pub fn count(&self) -> usize {
        self.records.len() / self.stride
    }
}

/// Panics unless each row is inside its record, and query and result fit the rows.
pub(super) fn check(query: &[i8], rows: Rows<'_>, out: &[i32]) {
    assert!(rows.offset + rows.dimensions <= rows.stride, "a row is longer than its record");
    assert_eq!(rows.count(), out.len(), "room for other rows than there are");
    assert_eq!(query.len(), rows.dimensions.next_multiple_of(LANES), "a query of other dimensions than the rows");
}

/// Writes the dot product of `query` with each row to `out`.
pub fn dots(level: Level, query: &[i8], rows: Rows<'_>, out: &mut [i32]) {
    check(query, rows, out);
    match level.0 {
        Kind::Portable => {
            for (record, out) in rows.records.chunks_exact(rows.stride).zip(out) {
                *out = portable::dot(query, &record[rows.offset..][..rows.dimensions]);
            }
        }
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => super::x86::dots_avx2(query, rows, out),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => super::x86::dots_avx512(query, rows, out),
    }
}
