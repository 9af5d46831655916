//! The size of an answer on the wire, and how it is kept within the limits of hosts.

use serde_json::Value;

use crate::tool::JsonObject;

/// For schemas written with `json!`.
pub fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}

/// At most `max` characters of `text`, with an ellipsis where it was cut.
pub fn clip(text: &str, max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    match text.char_indices().nth(max) {
        None => text.into(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()).into(),
    }
}

/// The largest answer on the wire, in bytes.
pub const MAX_WIRE_BYTES: usize = 90_000;

/// How many bytes a text takes in an answer, which holds its JSON twice: as structure, and as a
/// string in which that JSON is escaped once more.
pub fn wire_bytes(text: &str) -> usize {
    text.bytes().map(wire_cost).sum()
}

/// The most that one byte costs: most texts are known to fit without counting.
pub const MAX_WIRE_COST: usize = 13;

const fn wire_cost(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' => 2 + 4,
        b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2 + 3,
        0..=0x1f => 6 + 7,
        _ => 2,
    }
}

/// As much of `text` as takes at most `budget` bytes on the wire.
pub fn within_wire(text: &str, budget: usize) -> &str {
    let mut spent = 0;
    let end = text.bytes().position(|byte| {
        spent += wire_cost(byte);
        spent > budget
    });
    end.map_or(text, |end| &text[..text.floor_char_boundary(end)])
}

/// Keeps fields in order while they fit, and adds a note if some did not. Returns their size.
pub fn bound_fields(fields: &mut JsonObject, max_bytes: usize) -> usize {
    let takes = |name: &str, value: &Value| wire_bytes(name) + wire_bytes(&value.to_string());
    let mut spent = 0;
    let before = fields.len();
    fields.retain(|name, value| {
        let bytes = takes(name, value);
        let fits = spent + bytes <= max_bytes;
        spent += if fits { bytes } else { 0 };
        fits
    });
    if fields.len() < before {
        let note = Value::from("fields too long for this answer are left out; the url has them all");
        spent += takes("metadata_cut", &note);
        fields.insert("metadata_cut".to_owned(), note);
    }
    spent
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wire_size_is_exact(text in "[\\x00-\\x7f]{0,60}|\\PC{0,40}") {
            let once = serde_json::to_string(&text).expect("JSON");
            let twice = serde_json::to_string(&once).expect("JSON");
            // Less the quotes around each, which are not the text's.
            prop_assert_eq!(once.len() - 2 + twice.len() - 2 - 4, wire_bytes(&text));
        }
    }
}
