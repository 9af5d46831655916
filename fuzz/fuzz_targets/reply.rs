//! A model's answer as server-sent events: it means the same however it is cut into chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tribune_agent::text_of_stream;

fuzz_target!(|stream: &[u8]| {
    let whole = text_of_stream(std::iter::once(stream));
    assert_eq!(text_of_stream(stream.chunks(1)), whole);
    assert_eq!(text_of_stream(stream.chunks(7)), whole);
});
