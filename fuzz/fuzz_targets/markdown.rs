//! Markdown as a page: no document brings an element, an attribute or an address of its own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tribune_page::{Element, markdown::markdown};

fuzz_target!(|text: &str| {
    let page = Element::new("main").children(markdown(text)).to_string();
    let lower = page.to_ascii_lowercase();
    for foreign in ["<script", "<img", "<iframe", "<style", "<svg", "href=\"javascript:", "href=\"data:", " onerror=\""]
    {
        assert!(!lower.contains(foreign), "{foreign} in {page}");
    }
    assert_eq!(page.matches('<').count(), page.matches('>').count(), "{page}");
});
