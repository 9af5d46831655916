//! Document ids survive text, addresses and JSON unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use percent_encoding::percent_decode_str;
use tribune_core::{DocumentId, Links};

fuzz_target!(|text: &str| {
    let Ok(id) = DocumentId::parse(text) else {
        return;
    };
    assert_eq!(id.to_string(), text);
    assert_eq!(DocumentId::new(id.scheme(), id.key()), Ok(id.clone()));
    let segment = id.to_path_segment();
    assert!(segment.is_ascii() && !segment.contains(['/', '?', '#', '"', '<', ' ']), "{segment}");
    assert_eq!(percent_decode_str(&segment).decode_utf8().as_deref(), Ok(text));
    let address = Links::new("https://tribune.example.org").citation(&id, Some(1));
    assert!(address.parse::<http::Uri>().is_ok() || address.len() > usize::from(u16::MAX), "{address}");
    let json = serde_json::to_string(&id).expect("JSON");
    assert_eq!(serde_json::from_str::<DocumentId>(&json).expect("the same id"), id);
});
