//! The part of the protobuf encoding that ONNX files need. Ranges are relative to the whole file, so that tensors are
//! not copied.

use std::ops::Range;

pub enum Value {
    Number(u64),
    Bytes(Range<usize>),
    /// A fixed-width number; no field that we read has one.
    Fixed,
}

/// Iterates over the fields of a message. Ends after a malformed field, which is `None`: the message ends within it, or its
/// wire type is unknown.
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Fields<'a> {
    pub fn of(bytes: &'a [u8], range: Range<usize>) -> Self {
        let end = range.end.min(bytes.len());
        Self { bytes, at: range.start.min(end), end }
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes[self.at..self.end].first()?;
            self.at += 1;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<Range<usize>> {
        let length = usize::try_from(length).ok()?;
        if length > self.end - self.at {
            return None;
        }
        let range = self.at..self.at + length;
        self.at = range.end;
        Some(range)
    }

    fn field(&mut self) -> Option<(u64, Value)> {
        let key = self.number()?;
        let value = match key & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.number()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl Iterator for Fields<'_> {
    type Item = Option<(u64, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.at = self.end;
        }
        Some(field)
    }
}

/// The numbers of a packed field.
pub fn packed(bytes: &[u8], range: Range<usize>) -> Option<Vec<u64>> {
    let mut fields = Fields::of(bytes, range);
    let mut numbers = Vec::new();
    while fields.at < fields.end {
        numbers.push(fields.number()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_read_in_order() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 0, 0, 0x80, 0x3f];
        let fields: Vec<_> = Fields::of(&bytes, 0..bytes.len()).map(|field| field.expect("is one")).collect();
        assert!(matches!(fields[0], (1, Value::Number(150))));
        assert!(matches!(&fields[1], (2, Value::Bytes(range)) if &bytes[range.clone()] == b"hi"));
        assert!(matches!(fields[2], (3, Value::Fixed)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), start in 0usize..70) {
            Fields::of(&bytes, start..bytes.len() + 3).for_each(drop);
            drop(packed(&bytes, start..bytes.len() + 3));
        }
    }
}
