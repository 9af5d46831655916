//! Writes a page with the sample board and the real style sheets, to look at while changing how something is drawn:
//! `cargo run -p tribune-draw --example look -- /tmp/look.html`

use std::error::Error;

use tribune_core::Links;
use tribune_draw::{regions, sample};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("say which file to write")?;
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/assets");
    let board = sample::board();
    let parts: String = regions(&board, &Links::new(""))
        .iter()
        .map(|region| region.element.to_string())
        .collect();
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
