//! Draws an answer's figures by their names: a headline, charts, tables, and all other figures in one panel.

use serde_json::Value;
use tribune_core::JsonObject;
use tribune_page::parts::{cell, panel, table};
use tribune_page::text::{capitalised, dash, finite, padded, places};
use tribune_page::{Amount, Cell, Column, Content, Figure, Headline, Panel, Width};

use super::charts::charts;
use super::names::{amount, is_named, label, tone, unit};
use super::{KNOWN, Page};
use crate::kinds::columns_and_rows;

/// Figures and rows that a panel has at most; the text has all.
const MOST: usize = 48;
const MOST_ROWS: usize = 100;
/// Deeper parts are left to the JSON.
const DEEPEST: usize = 2;
const UNKNOWN: &str = "it is not known";
/// Drawn as charts.
const CHARTED: [&str; 4] = ["klines", "bids", "asks", "volume_by_row"];
const NOTES: [(&str, &str); 4] = [
    ("bands", "Resting orders near the mid. Sums are exact where they are complete."),
    ("components", "Each component has from 0 to 100 points."),
    (
        "cost_to_trade",
        "Market orders filled from the known levels, compared with the mid, without fees, hidden orders and changes of the book meanwhile.",
    ),
    ("trades", "Newest first."),
];
/// Columns with a bar behind each number.
const BARRED: [&str; 5] = ["quantity_base", "volume_share_pct", "score", "emptiness", "cost_bps"];

/// The headline, and panels for everything else.
pub(super) fn drawn(page: &Page<'_>) -> (Option<Headline>, Vec<Panel>) {
    let (headline, figures) = (headline(page), &page.named.figures);
    let shown: Vec<&str> = headline.iter().flat_map(|_| headline_names(page)).map(|(name, _)| name).collect();
    let mut panels = charts(figures, page);
    let why = reason(figures);
    let mut list = Vec::new();
    for (name, value) in figures.iter().filter(|(name, _)| is_named(name) && !CHARTED.contains(&name.as_str())) {
        let rows = KNOWN.into_iter().find(|(key, ..)| key == name).zip(rows_of(value));
        match rows {
            Some(((key, title, width), rows)) => panels.push(table_panel(key, title, width, rows, page)),
            None if shown.contains(&name.as_str()) => {}
            None => add(label(name), name, value, why, page, 1, &mut list),
        }
    }
    if !list.is_empty() {
        list.truncate(MOST);
        let note = Some(standing(figures)).filter(|note| !note.is_empty());
        panels.push(Panel { note, ..panel("figures", "Figures", Width::Whole, Content::Figures(list)) });
    }
    (headline, panels)
}

/// The names of the headline's figures, and whether each is the change of the first.
fn headline_names<'a>(page: &'a Page<'_>) -> impl Iterator<Item = (&'a str, bool)> {
    let names = page.named.headline.split_ascii_whitespace();
    names.map(|name| name.strip_prefix('+').map_or((name, false), |name| (name, true)))
}

fn headline(page: &Page<'_>) -> Option<Headline> {
    let figures = &page.named.figures;
    let all = headline_names(page).filter_map(|(name, is_change)| Some((name, is_change, figures.get(name)?)));
    let (changes, figures): (Vec<_>, Vec<_>) = all.partition(|(_, is_change, _)| *is_change);
    let mut shown: Vec<Figure> = figures.iter().map(|(name, _, value)| figure(name, value, page)).collect();
    // Prices have as many places as the finest of them: they do not jump when a zero ends one.
    let mut money: Vec<&mut Amount> = shown.iter_mut().filter_map(|figure| figure.value.as_mut()).collect();
    money.retain(|amount| amount.unit.as_deref() == Some(page.about.quote()) && finite(&amount.text).is_some());
    let finest = places(money.iter().map(|amount| amount.text.as_str()));
    for amount in money {
        amount.text = padded(&amount.text, finest);
    }
    let mut shown = shown.into_iter();
    let first = shown.next()?;
    let change = changes.first().and_then(|(name, _, value)| Some((amount(name, value, page)?, tone(name, value))));
    Some(Headline {
        label: first.label,
        value: first.value.unwrap_or_else(|| Amount::plain("unknown")),
        change,
        as_of: Some(page.provenance.as_of()),
        age_ms: Some(page.age_ms),
        figures: shown.collect(),
    })
}

/// A figure of the headline; a best price has its quantity beside it.
fn figure(name: &str, value: &Value, page: &Page<'_>) -> Figure {
    let (price, quantity) = (value.get("price"), value.get("quantity_base").and_then(Value::as_str));
    match amount(if price.is_some() { "price" } else { name }, price.unwrap_or(value), page) {
        Some(shown) => Figure {
            tone: tone(name, value),
            note: quantity.map(|quantity| format!("for {quantity} {}", page.about.base())),
            ..Figure::new(label(name), shown)
        },
        None => Figure::unknown(label(name), reason(&page.named.figures)),
    }
}

fn reason(fields: &JsonObject) -> &str {
    fields.get("reason").and_then(Value::as_str).unwrap_or(UNKNOWN)
}

/// How far figures can be trusted: their standing and a note.
pub(super) fn standing(fields: &JsonObject) -> String {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    match (text("standing").map(capitalised), text("note")) {
        (Some(standing), Some(note)) => format!("{standing}: {note}."),
        (standing, note) => standing.or_else(|| note.map(str::to_owned)).map_or_else(String::new, |all| all + "."),
    }
}

/// Adds a figure, or the parts of one: `why` says why it is null.
fn add(
    label_of_it: String,
    name: &str,
    value: &Value,
    why: &str,
    page: &Page<'_>,
    depth: usize,
    list: &mut Vec<Figure>,
) {
    match value {
        Value::Null => list.push(Figure::unknown(label_of_it, why)),
        // A figure that is missing as a whole.
        Value::Object(fields)
            if fields.len() == 2 && fields.contains_key("reason") && fields.values().any(Value::is_null) =>
        {
            list.push(Figure::unknown(label_of_it, reason(fields)));
        }
        Value::Object(fields) if depth <= DEEPEST => {
            for (name, value) in fields.iter().filter(|(name, _)| is_named(name)) {
                let part = format!("{label_of_it}: {}", label(name));
                add(part, name, value, reason(fields), page, depth + 1, list);
            }
        }
        value => {
            let shown = amount(name, value, page);
            list.extend(shown.map(|shown| Figure { tone: tone(name, value), ..Figure::new(label_of_it, shown) }));
        }
    }
}

/// The names of a table's columns, and its rows.
type Rows<'a> = (Vec<&'a str>, Vec<Vec<&'a Value>>);

/// The rows of a table, or of a list of objects.
fn rows_of(value: &Value) -> Option<Rows<'_>> {
    if let Some((columns, rows)) = columns_and_rows(value) {
        let rows = rows.iter().filter_map(Value::as_array);
        return Some((
            columns.iter().filter_map(Value::as_str).collect(),
            rows.map(|row| row.iter().collect()).collect(),
        ));
    }
    let objects: Vec<&JsonObject> = value.as_array()?.iter().filter_map(Value::as_object).collect();
    let mut columns: Vec<&str> = Vec::new();
    for name in objects.iter().copied().flat_map(JsonObject::keys) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut rows = Vec::new();
    for object in objects {
        rows.push(columns.iter().map(|name| object.get(*name).unwrap_or(&Value::Null)).collect());
    }
    Some((columns, rows))
}

/// A table with the columns that have something to show; or that it is empty.
fn table_panel(key: &'static str, title: &str, width: Width, (columns, rows): Rows<'_>, page: &Page<'_>) -> Panel {
    if rows.is_empty() {
        return panel(key, title, width, Content::Missing("there are none".to_owned()));
    }
    let rows = &rows[..rows.len().min(MOST_ROWS)];
    let mut shown: Vec<(Column, Vec<Cell>)> = Vec::new();
    for (at, name) in columns.iter().enumerate() {
        let values: Vec<&Value> = rows.iter().filter_map(|row| row.get(at).copied()).collect();
        let is_shown = |value: &&Value| !value.is_null() && !value.is_array() && !value.is_object();
        if (is_named(name) || *name == "reason") && values.iter().any(is_shown) {
            shown.push(column(name, &values, page));
        }
    }
    let (columns, cells): (Vec<Column>, Vec<Vec<Cell>>) = shown.into_iter().unzip();
    let row = |at: usize| cells.iter().filter_map(|column| column.get(at).cloned()).collect();
    let rows = (0..rows.len()).map(row).collect();
    let note = NOTES.iter().find(|(known, _)| *known == key).map(|(_, note)| (*note).to_owned());
    let standing = Some(standing(&page.named.figures)).filter(|standing| !standing.is_empty());
    let note = note.into_iter().chain(standing).reduce(|note, standing| format!("{note} {standing}"));
    Panel { note, ..panel(key, title, width, table(columns, rows)) }
}

fn column(name: &str, values: &[&Value], page: &Page<'_>) -> (Column, Vec<Cell>) {
    let texts: Vec<Option<String>> =
        values.iter().map(|value| amount(name, value, page).map(|amount| amount.text)).collect();
    let is_number = texts.iter().flatten().all(|text| finite(text).is_some());
    let finest = places(texts.iter().flatten().map(String::as_str).filter(|_| is_number));
    let number = |value: &Value| value.as_f64().or_else(|| finite(value.as_str()?)).map(f64::abs);
    let largest = values.iter().filter_map(|value| number(value)).fold(0.0, f64::max);
    let is_barred = BARRED.contains(&name) && largest > 0.0;
    let cells = values.iter().zip(texts).map(|(value, text)| Cell {
        tone: tone(name, value),
        link: value.as_str().filter(|_| name == "symbol").map(|symbol| format!("ticker:{symbol}")),
        share: number(value).filter(|_| is_barred).map(|number| number / largest),
        ..cell(text.map_or_else(dash, |text| if is_number { padded(&text, finest) } else { text }))
    });
    let unit = unit(name, page).filter(|_| is_number).map(|unit| format!(" ({unit})"));
    (Column { title: format!("{}{}", label(name), unit.unwrap_or_default()), is_number }, cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_line_up_and_dash_the_unknown() {
        let table = json!({
            "columns": ["symbol", "last_price", "price_change_pct", "volume_share_pct"],
            "rows": [["AAAUSDT", "1.5", 2.5, 80.0], ["BBBUSDT", "0.25", null, 20.0]],
        });
        Page::example(|page| {
            let panel = table_panel("gainers", "Gainers", Width::Whole, rows_of(&table).expect("rows"), page);
            assert_eq!((panel.key, &*panel.title), ("gainers", "Gainers"));
            let Content::Table(shown) = &panel.content else { panic!("{panel:?}") };
            let titles: Vec<&str> = shown.columns.iter().map(|column| &*column.title).collect();
            assert_eq!(titles, ["Symbol", "Last price (USDT)", "Change (%)", "Share (%)"]);
            let text = |row: usize| -> Vec<&str> { shown.rows[row].iter().map(|cell| &*cell.text).collect() };
            assert_eq!(
                (text(0), text(1)),
                (vec!["AAAUSDT", "1.50", "+2.50", "80.00"], vec!["BBBUSDT", "0.25", "–", "20.00"])
            );
            assert_eq!(shown.rows[0][0].link.as_deref(), Some("ticker:AAAUSDT"));
            assert_eq!((shown.rows[0][3].share, shown.rows[1][3].share), (Some(1.0), Some(0.25)));
        });
    }

    #[test]
    fn missing_figures_have_reasons() {
        Page::example(|page| {
            let mut list = Vec::new();
            let bands = json!({"value": null, "reason": "the book has no bids"});
            assert_eq!(rows_of(&bands), None);
            add("Bands".to_owned(), "bands", &bands, UNKNOWN, page, 1, &mut list);
            let parts = json!({"ofi_base": null, "reason": "not watched yet"});
            add("Imbalance".to_owned(), "imbalance", &parts, UNKNOWN, page, 1, &mut list);
            let parts = json!({"vwap": "1.5", "trades": null, "standing": "exact", "reason": "not counted"});
            add("Flow".to_owned(), "flow", &parts, UNKNOWN, page, 1, &mut list);
            let notes: Vec<_> = list.iter().map(|figure| (&*figure.label, figure.note.as_deref())).collect();
            let expected = [
                ("Bands", Some("the book has no bids")),
                ("Imbalance", Some("not watched yet")),
                ("Flow: Average price", None),
                ("Flow: Trades", Some("not counted")),
            ];
            assert_eq!(notes, expected);
        });
    }
}
