//! The part of the protobuf encoding that ONNX files need.

pub enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message with their numbers. A malformed one is `None` and the last: the message ends within it, or
/// its wire type is unknown.
pub fn fields(mut bytes: &[u8]) -> impl Iterator<Item = Option<(u64, Value<'_>)>> {
    std::iter::from_fn(move || {
        let field = (!bytes.is_empty()).then(|| field(&mut bytes))?;
        if field.is_none() {
            bytes = &[];
        }
        Some(field)
    })
}

fn field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let key = number(bytes)?;
    let length = match key & 7 {
        0 => return Some((key >> 3, Value::Number(number(bytes)?))),
        1 => 8,
        2 => number(bytes)?,
        5 => 4,
        _ => return None,
    };
    let value = bytes.split_off(..usize::try_from(length).ok()?)?;
    Some((key >> 3, Value::Bytes(value)))
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
}

/// The numbers of a packed field.
pub fn packed(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(number(&mut bytes)?);
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
        let fields: Vec<_> = fields(&bytes).map(|field| field.expect("is one")).collect();
        assert!(matches!(fields[0], (1, Value::Number(150))));
        assert!(matches!(fields[1], (2, Value::Bytes(b"hi"))));
        assert!(matches!(fields[2], (3, Value::Bytes([0, 0, 0x80, 0x3f]))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            fields(&bytes).for_each(drop);
            drop(packed(&bytes));
        }
    }
}
