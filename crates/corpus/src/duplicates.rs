//! The mark by which a text is known again.

use sha2::{Digest, Sha256};
use tribune_core::JsonObject;

use crate::read::Record;
use crate::read::mapping::as_given;

/// The field that has a document's [`content_hash`].
pub(crate) const FIELD: &str = "content_hash";

/// SHA-256 of a text's bytes, in hexadecimal.
pub fn content_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The record's hash, put among its fields if it is not there: the index is asked for it later.
pub(crate) fn with_content_hash(record: &mut Record) -> String {
    let hash = content_hash(&record.text);
    if record.fields.get(FIELD).and_then(|value| value.as_str()) == Some(&hash) {
        return hash;
    }
    let mut fields = JsonObject::new();
    // First, because only so much of the fields is searched.
    fields.insert(FIELD.to_owned(), hash.clone().into());
    if let Some(other) = record.fields.shift_remove(FIELD) {
        fields.insert(as_given(FIELD), other);
    }
    fields.append(&mut record.fields);
    record.fields = fields;
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha_256_of_the_text_s_bytes() {
        assert_eq!(
            content_hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
