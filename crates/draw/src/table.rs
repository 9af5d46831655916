//! Rows of the same kind.

use tribune_core::Links;
use tribune_core::view::{Cell, Column, Table};

use crate::chart::{Place, nothing};
use crate::figures::{marker, tone_class};
use crate::number::grouped;
use crate::svg::percent;
use crate::{Element, Node, time};

pub fn table(shown: &Table, place: Place<'_>, links: &Links) -> Element {
    if shown.rows.is_empty() {
        return nothing("There are no rows.");
    }
    let named = format!("panel-{}-title", place.key);
    let head = Element::new("tr").children(shown.columns.iter().map(head));
    let rows = shown.rows.iter().map(|cells| row(cells, &shown.columns, links));
    let table = Element::new("table")
        .with("aria-labelledby", named.clone())
        .child(Element::new("thead").child(head))
        .child(Element::new("tbody").children(rows));
    scrolled(table, named)
}

/// What is too wide for a phone is scrolled, and so has to be reached by keyboard.
pub fn scrolled(table: Element, named_by: String) -> Element {
    Element::new("div")
        .class("scroll")
        .with("role", "group")
        .with("tabindex", "0")
        .with("aria-labelledby", named_by)
        .child(table)
}

fn head(column: &Column) -> Element {
    let class = if column.is_number { "number" } else { "words" };
    Element::new("th")
        .class(class)
        .with("scope", "col")
        .text(column.title.clone())
}

fn row(cells: &[Cell], columns: &[Column], links: &Links) -> Element {
    let nothing = Cell::default();
    let cells = (0..columns.len()).map(|index| {
        let is_number = columns[index].is_number;
        cell(cells.get(index).unwrap_or(&nothing), is_number, index == 0, links)
    });
    Element::new("tr").children(cells)
}

fn cell(cell: &Cell, is_number: bool, is_first: bool, links: &Links) -> Element {
    let mut class = String::from(if is_number { "number" } else { "words" });
    if let Some(tone) = tone_class(cell.tone) {
        class.push(' ');
        class.push_str(tone);
    }
    let bar = cell.share.map(bar);
    if bar.is_some() {
        class.push_str(" barred");
    }
    let element = if is_first {
        Element::new("th").with("scope", "row")
    } else {
        Element::new("td")
    };
    let text = if is_number {
        grouped(&cell.text)
    } else {
        cell.text.clone()
    };
    let shown: Node = match &cell.link {
        Some(id) => Element::new("a")
            .with("href", links.citation(id, None))
            .text(text)
            .into(),
        None => time::moment(&cell.text)
            .unwrap_or_else(|| Element::new("span").text(text))
            .into(),
    };
    let marker = marker(cell.tone, &cell.text);
    element.class(class).children(bar).children(marker).child(shown)
}

/// A bar behind what a cell says. Only for the eye: the cell says the same.
pub fn bar(share: f64) -> Element {
    let length = Element::new("rect")
        .with("width", percent(share))
        .with("height", "100%");
    Element::new("svg")
        .class("bar-behind")
        .with("aria-hidden", "true")
        .child(length)
}

#[cfg(test)]
mod tests {
    use tribune_core::DocumentId;

    use super::*;

    #[test]
    fn cells_have_their_heads_their_links_and_their_bars() {
        let column = |title: &str, is_number| Column {
            title: title.to_owned(),
            is_number,
        };
        let shown = Table {
            columns: vec![column("Pair", false), column("Cost", true), column("Note", false)],
            rows: vec![vec![
                Cell {
                    text: "<BTC>".to_owned(),
                    link: Some(DocumentId::parse("ticker:BTCUSDT").expect("an id")),
                    ..Cell::default()
                },
                Cell {
                    text: "-1234.50".to_owned(),
                    share: Some(0.25),
                    ..Cell::default()
                },
            ]],
        };
        let place = Place {
            key: "costs",
            width: tribune_core::view::Width::Half,
        };
        insta::assert_snapshot!(
            table(&shown, place, &Links::new("http://here"))
                .to_string()
                .replace("><", ">\n<")
        );
    }
}
