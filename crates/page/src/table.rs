//! Tables.

use crate::model::{Cell, Column, Hrefs, Table};

use crate::chart::{Slot, empty_panel};
use crate::figures::{marker, toned};
use crate::number::grouped;
use crate::svg::percent;
use crate::{Element, Node, time};

pub fn table(shown: &Table, slot: Slot<'_>, hrefs: Hrefs<'_>) -> Element {
    if shown.rows.is_empty() {
        return empty_panel("There are no rows.");
    }
    let named = format!("panel-{}-title", slot.key);
    let head = Element::new("tr").children(shown.columns.iter().map(head));
    let rows = shown.rows.iter().map(|cells| row(cells, &shown.columns, hrefs));
    let table = Element::new("table")
        .with("aria-labelledby", named.clone())
        .child(Element::new("thead").child(head))
        .child(Element::new("tbody").children(rows));
    scrolled(table, named)
}

/// Makes a wide table scrollable, also by keyboard.
pub fn scrolled(table: Element, named_by: String) -> Element {
    Element::classed("div", "scroll")
        .with("role", "group")
        .with("tabindex", "0")
        .with("aria-labelledby", named_by)
        .child(table)
}

fn head(column: &Column) -> Element {
    let class = if column.is_number { "number" } else { "words" };
    Element::classed("th", class).with("scope", "col").text(column.title.clone())
}

fn row(cells: &[Cell], columns: &[Column], hrefs: Hrefs<'_>) -> Element {
    let nothing = Cell::default();
    let cells = (0..columns.len()).map(|index| {
        let is_number = columns[index].is_number;
        cell(cells.get(index).unwrap_or(&nothing), is_number, index == 0, hrefs)
    });
    Element::new("tr").children(cells)
}

fn cell(cell: &Cell, is_number: bool, is_first: bool, hrefs: Hrefs<'_>) -> Element {
    let mut class = toned(if is_number { "number" } else { "words" }, cell.tone);
    let bar = cell.share.map(bar);
    if bar.is_some() {
        class.push_str(" barred");
    }
    let element = if is_first { Element::new("th").with("scope", "row") } else { Element::new("td") };
    let text = if is_number { grouped(&cell.text) } else { cell.text.clone() };
    let shown: Node = match &cell.link {
        Some(id) => Element::new("a").with("href", hrefs(id)).text(text).into(),
        None => time::moment(&cell.text).unwrap_or_else(|| Element::new("span").text(text)).into(),
    };
    let marker = marker(cell.tone, &cell.text);
    element.class(class).children(bar).children(marker).child(shown)
}

/// A bar behind a cell's text. Decorative: the text has the same value.
pub fn bar(share: f64) -> Element {
    let length = Element::new("rect").with("width", percent(share)).with("height", "100%");
    Element::classed("svg", "bar-behind").with("aria-hidden", "true").child(length)
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn cells_have_heads_links_and_bars() {
        let column = |title: &str, is_number| Column { title: title.to_owned(), is_number };
        let shown = Table {
            columns: vec![column("Pair", false), column("Cost", true), column("Note", false)],
            rows: vec![vec![
                Cell { text: "<BTC>".to_owned(), link: Some("ticker:BTCUSDT".to_owned()), ..Cell::default() },
                Cell { text: "-1234.50".to_owned(), share: Some(0.25), ..Cell::default() },
            ]],
        };
        let slot = Slot { key: "costs", width: crate::Width::Half };
        insta::assert_snapshot!(
            table(&shown, slot, &|id| format!("http://here/data/{id}")).to_string().replace("><", ">\n<")
        );
    }
}
