//! Markdown tables.

use pulldown_cmark::Alignment;

use crate::{Element, Node};

/// A table whose first row is its head. It can be wider than the page, so it is focusable for scrolling.
pub(super) fn table(mut rows: Vec<Node>, is_cited: bool) -> Element {
    let body = rows.split_off(rows.len().min(1));
    let mut table = Element::new("table").children(rows);
    if !body.is_empty() {
        table.push(Element::new("tbody").children(body));
    }
    let class = if is_cited { "scroll cited" } else { "scroll" };
    Element::classed("div", class).with("tabindex", "0").child(table)
}

pub(super) fn cell(is_head: bool, alignment: Option<Alignment>, inner: Vec<Node>) -> Element {
    let cell = if is_head { Element::new("th").with("scope", "col") } else { Element::new("td") };
    let cell = match alignment {
        Some(Alignment::Right) => cell.class("number"),
        Some(Alignment::Center) => cell.class("middle"),
        _ => cell,
    };
    cell.children(inner)
}
