//! Writes a page with the sample board and the real style sheets, to look at while changing how something is drawn:
//! `cargo run -p tribune-page --example look -- /tmp/look.html`

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use std::error::Error;

use tribune_page::{regions, sample};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("say which file to write")?;
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/assets");
    let board = sample::board();
    let parts: String =
        regions(&board, &|id| format!("/data/{id}")).iter().map(|region| region.element.to_string()).collect();
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Look</title><link rel=\"stylesheet\" href=\"{assets}/tribune.css\">\
         <link rel=\"stylesheet\" href=\"{assets}/board.css\">\
         <main><h1>{}</h1><div class=\"board\">{parts}</div></main></html>",
        board.title
    );
    std::fs::write(path, page)?;
    Ok(())
}
